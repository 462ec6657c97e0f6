//! What the kernels refuse, and the Python exception of each.

use std::fmt;

use pyo3::PyErr;
use pyo3::exceptions::{PyLookupError, PyValueError};

/// Why rows are not placed; `Display` is a sentence of fact and one of remedy.
#[derive(Debug, PartialEq)]
pub enum BalanceError {
    /// The arguments contradict each other or ask for too much work (ValueError).
    Input(String),
    /// No bin has room for a row (LookupError).
    NoRoom(String),
}

impl fmt::Display for BalanceError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(message) | Self::NoRoom(message) => formatter.write_str(message),
        }
    }
}

impl From<BalanceError> for PyErr {
    fn from(error: BalanceError) -> Self {
        let message = error.to_string();
        match error {
            BalanceError::Input(_) => PyValueError::new_err(message),
            BalanceError::NoRoom(_) => PyLookupError::new_err(message),
        }
    }
}
