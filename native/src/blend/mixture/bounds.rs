//! The bounds of a mixture, and the error for one that is invalid.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

pub const MAX_ROWS_PER_STEP: i64 = 1 << 20;
pub const MAX_OFFSET: i64 = 1 << 42;
pub const MAX_ROWS: i64 = 1 << 62;

/// Why a mixture is invalid: a sentence of fact and one of remedy.
#[derive(Debug)]
pub struct Error(pub String);

impl From<Error> for PyErr {
    fn from(error: Error) -> Self {
        PyValueError::new_err(error.0)
    }
}
