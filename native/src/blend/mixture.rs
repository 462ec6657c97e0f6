//! Mixtures in closed form: from any row of a blend to its source and index, and back.
//!
//!     whole.rs      weights in whole rows per step
//!     schedule.rs   shares that change along the rows; ramps.rs its knots, due.rs one source between two of them
//!     timeline.rs   plans, each from a step on
//!
//! Event-time merge, which is stride scheduling (Waldspurger, 1995) without its state: every row of every source
//! has an exact time, and a blend is all rows in order of time. All arithmetic is exact, on 64- and 128-bit integers.

use std::sync::Arc;

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

mod bounds;
mod due;
mod ramps;
mod schedule;
mod timeline;
mod whole;

use bounds::{Error, MAX_OFFSET, MAX_ROWS};
use ramps::{Kind, Shares};
use schedule::{MAX_SOURCES, Schedule};
use timeline::{Plan, Timeline};
use whole::Whole;

/// `MixturePlan` of the Python module.
#[pyclass(frozen)]
struct MixturePlan(Arc<Plan>);

#[pymethods]
impl MixturePlan {
    #[staticmethod]
    fn whole(weights: Vec<i64>) -> PyResult<Self> {
        Ok(Self(Arc::new(Plan::Whole(Whole::new(weights)?))))
    }

    #[staticmethod]
    fn schedule(
        py: Python<'_>,
        kind: &str,
        rows_per_step: i64,
        steps: Vec<i64>,
        shares: PyBuffer<i64>,
    ) -> PyResult<Self> {
        let kind = match kind {
            "constant" | "stepped" => Kind::Stepped,
            "linear" => Kind::Linear,
            "cosine" => Kind::Cosine,
            _ => {
                let message = format!("Unknown schedule `{kind}`. Use constant, stepped, linear or cosine.");
                return Err(PyValueError::new_err(message));
            }
        };
        let n_sources = shares.item_count().checked_div(steps.len()).unwrap_or(0);
        let shares = Shares {
            n_sources,
            values: shares.to_vec(py)?,
        };
        let plan = py.detach(|| Schedule::new(kind, rows_per_step, &steps, &shares))?;
        Ok(Self(Arc::new(Plan::Schedule(plan))))
    }

    #[getter]
    fn n_sources(&self) -> usize {
        self.0.n_sources()
    }

    #[getter]
    fn rows_per_step(&self) -> i64 {
        self.0.rows_per_step()
    }

    #[getter]
    fn weights(&self) -> Option<Vec<i64>> {
        match &*self.0 {
            Plan::Whole(plan) => Some(plan.weights.clone()),
            Plan::Schedule(_) => None,
        }
    }
}

/// `MixtureTimeline` of the Python module.
#[pyclass(frozen)]
struct MixtureTimeline(Timeline);

#[pymethods]
impl MixtureTimeline {
    #[new]
    fn new(py: Python<'_>, starts: Vec<i64>, plans: Vec<PyRef<'_, MixturePlan>>) -> PyResult<Self> {
        let plans: Vec<Arc<Plan>> = plans.iter().map(|it| it.0.clone()).collect();
        let (Some(first), Some(0)) = (plans.first(), starts.first()) else {
            return Err(PyValueError::new_err(
                "A mixture begins at step 0. Pass a plan that starts there.",
            ));
        };
        let mut made = Timeline::new(first.clone());
        py.detach(|| extend(&mut made, &starts[1..], &plans[1..]))?;
        Ok(Self(made))
    }

    fn extended(
        &self,
        py: Python<'_>,
        starts: Vec<i64>,
        plans: Vec<PyRef<'_, MixturePlan>>,
    ) -> PyResult<Self> {
        let plans: Vec<Arc<Plan>> = plans.iter().map(|it| it.0.clone()).collect();
        let mut made = self.0.clone();
        py.detach(|| extend(&mut made, &starts, &plans))?;
        Ok(Self(made))
    }

    #[getter]
    fn n_sources(&self) -> usize {
        self.0.n_sources()
    }

    #[getter]
    fn starts(&self) -> Vec<i64> {
        self.0.starts()
    }

    fn plans(&self, first: usize) -> Vec<(i64, MixturePlan)> {
        self.0
            .plans(first)
            .map(|(start, plan)| (start, MixturePlan(plan.clone())))
            .collect()
    }

    fn rows_per_step(&self, step: i64) -> i64 {
        self.0.rows_per_step(step)
    }

    fn first_row(&self, step: i64) -> PyResult<i64> {
        if !(0..=MAX_OFFSET).contains(&step) {
            let message = format!("Step {step} is out of range. A blend has steps 0 to {MAX_OFFSET}.");
            return Err(PyValueError::new_err(message));
        }
        Ok(self.0.first_row(step))
    }

    fn piece_end(&self, step: i64) -> i64 {
        self.0.piece_end(step)
    }

    fn indivisible(&self, offset: i64, stop: i64, ranks: i64) -> PyResult<Option<(i64, i64)>> {
        if ranks < 1 {
            return Err(PyValueError::new_err("`ranks` is below 1. Use at least 1."));
        }
        Ok(self.0.indivisible(offset, stop, ranks))
    }

    fn counts(&self, py: Python<'_>, rows: PyBuffer<i64>, counts: PyBuffer<i64>) -> PyResult<()> {
        let rows = within(rows.to_vec(py)?, MAX_ROWS)?;
        let found: Vec<i64> = py.detach(|| rows.iter().flat_map(|&row| self.0.counts(row)).collect());
        counts.copy_from_slice(py, &found)
    }

    fn place(
        &self,
        py: Python<'_>,
        rows: PyBuffer<i64>,
        source: PyBuffer<i64>,
        index: PyBuffer<i64>,
    ) -> PyResult<()> {
        let rows = within(rows.to_vec(py)?, MAX_ROWS)?;
        let (mut sources, mut indices) = (vec![0; rows.len()], vec![0; rows.len()]);
        py.detach(|| self.0.place(&rows, &mut sources, &mut indices));
        source.copy_from_slice(py, &sources)?;
        index.copy_from_slice(py, &indices)
    }

    fn row_of(
        &self,
        py: Python<'_>,
        source: usize,
        index: PyBuffer<i64>,
        row: PyBuffer<i64>,
    ) -> PyResult<()> {
        let index = within(index.to_vec(py)?, MAX_ROWS)?;
        self.require_source(source)?;
        let find = |&it| self.0.row_of(source, it).unwrap_or(-1);
        let rows: Vec<i64> = py.detach(|| index.iter().map(find).collect());
        row.copy_from_slice(py, &rows)
    }

    fn step_of(&self, py: Python<'_>, rows: PyBuffer<i64>, step: PyBuffer<i64>) -> PyResult<()> {
        let rows = within(rows.to_vec(py)?, MAX_ROWS)?;
        let steps: Vec<i64> = py.detach(|| rows.iter().map(|&it| self.0.step_of(it)).collect());
        step.copy_from_slice(py, &steps)
    }

    fn steps_within(&self, py: Python<'_>, source: usize, rows: i64) -> PyResult<Option<i64>> {
        self.require_source(source)?;
        within(vec![rows], MAX_ROWS)?;
        Ok(py.detach(|| self.0.steps_within(source, rows)))
    }
}

impl MixtureTimeline {
    fn require_source(&self, source: usize) -> PyResult<()> {
        let n = self.0.n_sources();
        if source >= n {
            let message = format!("Source {source} is out of range. The mixture has {n} sources.");
            return Err(PyValueError::new_err(message));
        }
        Ok(())
    }
}

fn extend(timeline: &mut Timeline, starts: &[i64], plans: &[Arc<Plan>]) -> Result<(), Error> {
    if starts.len() != plans.len() {
        return Err(Error(
            "The numbers of steps and plans differ. Pass one plan for each step.".to_owned(),
        ));
    }
    starts
        .iter()
        .zip(plans)
        .try_for_each(|(&start, plan)| timeline.go_on(start, plan.clone()))
}

fn within(numbers: Vec<i64>, end: i64) -> PyResult<Vec<i64>> {
    match numbers.iter().find(|it| !(0..=end).contains(*it)) {
        Some(it) => Err(PyValueError::new_err(format!(
            "Row {it} is out of range. A blend has rows 0 to {end}."
        ))),
        None => Ok(numbers),
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<MixturePlan>()?;
    module.add_class::<MixtureTimeline>()
}

#[cfg(test)]
mod tests;
