//! The errors of a Parquet file, and the Python exception of each.

use std::fmt;
use std::io;

use pyo3::PyErr;
use pyo3::exceptions::{PyIndexError, PyKeyError, PyNotImplementedError, PyOSError, PyValueError};

/// Why a column of a file cannot be read; `Display` is a sentence of fact and one of remedy.
#[derive(Debug)]
pub enum PageError {
    /// The file has no such column (KeyError).
    Column(String),
    /// The file is sound, but its layout is not supported page by page (NotImplementedError).
    Unsupported(String),
    /// The bytes are invalid: no writer writes them (ValueError).
    Corrupt(String),
    /// The file cannot be opened or read (OSError).
    Unreadable(String),
    /// A row or page beyond the last one, or more bytes than an array can hold (IndexError).
    Beyond(String),
    /// The caller's own function raised it.
    Raised(PyErr),
}

pub type Result<T> = std::result::Result<T, PageError>;

impl fmt::Display for PageError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Column(message)
            | Self::Unsupported(message)
            | Self::Corrupt(message)
            | Self::Unreadable(message)
            | Self::Beyond(message) => formatter.write_str(message),
            Self::Raised(error) => error.fmt(formatter),
        }
    }
}

impl From<PageError> for PyErr {
    fn from(error: PageError) -> Self {
        let message = error.to_string();
        match error {
            PageError::Column(_) => PyKeyError::new_err(message),
            PageError::Unsupported(_) => PyNotImplementedError::new_err(message),
            PageError::Corrupt(_) => PyValueError::new_err(message),
            PageError::Unreadable(_) => PyOSError::new_err(message),
            PageError::Beyond(_) => PyIndexError::new_err(message),
            PageError::Raised(error) => error,
        }
    }
}

/// The file and column that an error names.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    pub file: &'a str,
    pub column: &'a str,
}

impl Place<'_> {
    /// An error of the whole file.
    pub fn corrupt(&self, what: impl fmt::Display) -> PageError {
        PageError::Corrupt(format!(
            "File {} cannot be read as Parquet: {what}. Restore or rewrite it.",
            self.file
        ))
    }

    /// An error of a column chunk.
    pub fn corrupt_chunk(&self, row_group: usize, what: impl fmt::Display) -> PageError {
        PageError::Corrupt(format!(
            "File {}, column `{}`, row group {row_group}: {what}. Restore or rewrite the file.",
            self.file, self.column
        ))
    }

    /// An error of one page, numbered in its row group.
    pub fn corrupt_page(&self, row_group: usize, page: usize, what: impl fmt::Display) -> PageError {
        PageError::Corrupt(format!(
            "File {}, column `{}`, row group {row_group}, page {page}: {what}. Restore or rewrite the file.",
            self.file, self.column
        ))
    }

    /// The error for a valid feature that this reader lacks.
    pub fn unsupported(&self, what: impl fmt::Display, remedy: &str) -> PageError {
        PageError::Unsupported(format!(
            "File {}, column `{}`: {what}. {remedy}",
            self.file, self.column
        ))
    }

    /// The error for an operating system's refusal.
    pub fn unreadable(&self, error: &io::Error) -> PageError {
        PageError::Unreadable(format!(
            "File {} cannot be read ({error}). Restore it, or list the files again.",
            self.file
        ))
    }
}
