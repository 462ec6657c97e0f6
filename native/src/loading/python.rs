//! Python's `balance_greedy` and `balance_karmarkar_karp`: from the costs of rows to the bin of each.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, UInt32Array, make_array};
use arrow_buffer::ScalarBuffer;
use arrow_data::ArrayData;
use arrow_pyarrow::PyArrowType;
use arrow_schema::DataType;
use pyo3::prelude::*;

use super::error::BalanceError;
use super::greedy::{Limit, greedy};
use super::groups::place_groups;
use super::karmarkar_karp::karmarkar_karp;

type Result<T> = std::result::Result<T, BalanceError>;

/// The most rows times bins of Karmarkar and Karp's method, which takes seconds for so many.
const MAX_DIFFERENCING_WORK: u64 = 100_000_000;

fn input(message: impl Into<String>) -> BalanceError {
    BalanceError::Input(message.into())
}

fn uint64(name: &str, array: ArrayData) -> Result<ScalarBuffer<u64>> {
    let array = make_array(array);
    if array.data_type() != &DataType::UInt64 {
        return Err(input(format!(
            "`{name}` must be a UInt64 array and is {}. Cast it.",
            array.data_type()
        )));
    }
    if array.null_count() > 0 {
        return Err(input(format!(
            "`{name}` has {} nulls. Fill them first.",
            array.null_count()
        )));
    }
    Ok(array.as_primitive::<UInt64Type>().values().clone())
}

/// Rows in groups, each placed in as many bins of its own.
struct Groups {
    costs: ScalarBuffer<u64>,
    ranges: Vec<Range<usize>>,
    bins: u32,
    threads: usize,
}

impl Groups {
    fn new(costs: ArrayData, ends: &[usize], bins: u32, threads: usize) -> Result<Self> {
        let costs = uint64("costs", costs)?;
        if u32::try_from(costs.len()).is_err() {
            return Err(input(format!(
                "{} rows are more than {}. Place them in several calls.",
                costs.len(),
                u32::MAX
            )));
        }
        let mut start = 0;
        let mut ranges = Vec::with_capacity(ends.len());
        for &end in ends {
            if end < start {
                return Err(input(format!(
                    "The end {end} stands after the end {start}. Pass `ends` in ascending order."
                )));
            }
            ranges.push(start..end);
            start = end;
        }
        if start != costs.len() {
            return Err(input(format!(
                "The last group ends at row {start}, and there are {} costs. Let the last group end there.",
                costs.len()
            )));
        }
        if bins == 0 || threads == 0 {
            let name = if bins == 0 { "bins" } else { "threads" };
            return Err(input(format!("`{name}` is 0. Pass 1 or more.")));
        }
        Ok(Self {
            costs,
            ranges,
            bins,
            threads,
        })
    }

    fn place(
        &self,
        place: impl Fn(Range<usize>) -> Result<Vec<u32>> + Sync,
    ) -> Result<PyArrowType<ArrayData>> {
        let bins = place_groups(&self.ranges, self.threads, place)?;
        Ok(PyArrowType(UInt32Array::from(bins).to_data()))
    }

    fn check_equal_counts(&self) -> Result<()> {
        match self
            .ranges
            .iter()
            .find(|range| range.len() % self.bins as usize > 0)
        {
            None => Ok(()),
            Some(range) => Err(input(format!(
                "The {} rows from row {} do not fill {} bins equally. Pass a number of bins that divides them.",
                range.len(),
                range.start,
                self.bins
            ))),
        }
    }

    fn check_differencing_work(&self) -> Result<()> {
        let work = |range: &Range<usize>| range.len() as u64 * u64::from(self.bins);
        match self
            .ranges
            .iter()
            .find(|range| work(range) > MAX_DIFFERENCING_WORK)
        {
            None => Ok(()),
            Some(range) => Err(input(format!(
                "Karmarkar and Karp's method takes too long for {} rows in {} bins: rows times bins may be \
                 {MAX_DIFFERENCING_WORK} at most. Use smaller groups, or `greedybinpacking`.",
                range.len(),
                self.bins
            ))),
        }
    }
}

/// The memory of each row, and the most that a bin may hold.
struct Memory {
    values: ScalarBuffer<u64>,
    per_bin: u64,
}

impl Memory {
    fn new(values: Option<ArrayData>, limit: Option<u64>, n_rows: usize) -> Result<Option<Self>> {
        let (values, per_bin) = match (values, limit) {
            (None, None) => return Ok(None),
            (Some(values), Some(limit)) => (uint64("memory", values)?, limit),
            (Some(_), None) => return Err(input("`memory` is given without `limit`. Pass both or neither.")),
            (None, Some(_)) => return Err(input("`limit` is given without `memory`. Pass both or neither.")),
        };
        if values.len() != n_rows {
            return Err(input(format!(
                "`memory` has {} values, and there are {n_rows} costs. Pass one value for each row.",
                values.len()
            )));
        }
        match values.iter().position(|&memory| memory > per_bin) {
            None => Ok(Some(Self { values, per_bin })),
            Some(row) => Err(BalanceError::NoRoom(format!(
                "Row {row} needs {} of memory, and the limit of a bin is {per_bin}. Raise the limit, or leave \
                 out the row.",
                values[row]
            ))),
        }
    }

    fn no_room(&self, row: usize, bins: u32) -> BalanceError {
        BalanceError::NoRoom(format!(
            "Row {row} needs {} of memory, and none of the {bins} bins has room for it below the limit of {}, \
             neither in the order of costs nor in that of memory. Raise the limit, or pass more bins.",
            self.values[row], self.per_bin
        ))
    }
}

#[pyfunction]
#[pyo3(signature = (costs, ends, bins, *, memory=None, limit=None, equal_counts=false, threads=1))]
#[allow(clippy::too_many_arguments)] // as Python passes them, all with names
fn balance_greedy(
    py: Python<'_>,
    costs: PyArrowType<ArrayData>,
    ends: Vec<usize>,
    bins: u32,
    memory: Option<PyArrowType<ArrayData>>,
    limit: Option<u64>,
    equal_counts: bool,
    threads: usize,
) -> Result<PyArrowType<ArrayData>> {
    py.detach(|| {
        let groups = Groups::new(costs.0, &ends, bins, threads)?;
        let memory = Memory::new(memory.map(|array| array.0), limit, groups.costs.len())?;
        if equal_counts {
            groups.check_equal_counts()?;
        }
        groups.place(|range| {
            let limit = memory.as_ref().map(|memory| Limit {
                memory: &memory.values[range.clone()],
                per_bin: memory.per_bin,
            });
            greedy(&groups.costs[range.clone()], bins, equal_counts, limit).map_err(|no_room| {
                let row = range.start + no_room.row;
                match &memory {
                    Some(memory) => memory.no_room(row, bins),
                    None => unreachable!("a bin without a limit has room"),
                }
            })
        })
    })
}

#[pyfunction]
#[pyo3(signature = (costs, ends, bins, *, threads=1))]
fn balance_karmarkar_karp(
    py: Python<'_>,
    costs: PyArrowType<ArrayData>,
    ends: Vec<usize>,
    bins: u32,
    threads: usize,
) -> Result<PyArrowType<ArrayData>> {
    py.detach(|| {
        let groups = Groups::new(costs.0, &ends, bins, threads)?;
        groups.check_differencing_work()?;
        groups.place(|range| Ok(karmarkar_karp(&groups.costs[range], bins)))
    })
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(balance_greedy, module)?)?;
    module.add_function(wrap_pyfunction!(balance_karmarkar_karp, module)?)?;
    Ok(())
}
