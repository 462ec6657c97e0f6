//! Work for Python outside the interpreter's lock.

use arrow_array::RecordBatch;
use arrow_pyarrow::PyArrowType;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// A record batch from or for Python.
pub type Batch = PyArrowType<RecordBatch>;

/// Does `work` without the interpreter's lock; its error becomes a ValueError.
pub fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> Result<T, String> + Send) -> PyResult<T> {
    py.detach(work).map_err(PyValueError::new_err)
}
