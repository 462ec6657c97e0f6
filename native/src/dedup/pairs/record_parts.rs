//! `RecordParts` of the Python module: the records that steps of bucket and pair finding pass on, by part.

use arrow_pyarrow::PyArrowType;
use pyo3::prelude::*;

use super::bucket_pairs::{members_of_shared, push_documents};
use super::packed_parts::{Parts, records};
use super::pair_cells::{announce_to_neighbours, push_pairs};
use crate::dedup::python::{Batch, detached};

#[pyclass]
struct RecordParts(Parts);

#[pymethods]
impl RecordParts {
    #[new]
    fn new() -> Self {
        Self(Parts::new())
    }

    fn __len__(&self) -> usize {
        self.0.held()
    }

    fn add_documents(&mut self, py: Python<'_>, batch: Batch) -> PyResult<()> {
        detached(py, || push_documents(&batch.0, &mut self.0))
    }

    fn add_shared(&mut self, py: Python<'_>, batch: Batch) -> PyResult<()> {
        detached(py, || {
            let members = members_of_shared(records(&batch.0)?);
            members.into_iter().for_each(|member| self.0.push(member));
            Ok(())
        })
    }

    fn add_pairs(&mut self, py: Python<'_>, batch: Batch) -> PyResult<()> {
        detached(py, || push_pairs(&batch.0, &mut self.0))
    }

    fn add_neighbours(&mut self, py: Python<'_>, batch: Batch) -> PyResult<()> {
        detached(py, || {
            let announcements = announce_to_neighbours(records(&batch.0)?);
            announcements.into_iter().for_each(|record| self.0.push(record));
            Ok(())
        })
    }

    fn drain(&mut self, py: Python<'_>) -> PyResult<Batch> {
        detached(py, || self.0.rows()).map(PyArrowType)
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<RecordParts>()
}
