//! What can be wrong with a Parquet file, and the Python exception each becomes.

use std::fmt;
use std::io;

use pyo3::PyErr;
use pyo3::exceptions::{PyIndexError, PyKeyError, PyNotImplementedError, PyOSError, PyValueError};

/// Why a column of a file cannot be read; `Display` is a sentence of fact and one of remedy.
#[derive(Debug)]
pub enum PageError {
    /// The file has no such column (KeyError).
    Column(String),
    /// The file is whole, but written in a way that is not read page by page (NotImplementedError).
    Unsupported(String),
    /// The bytes are not what a writer writes (ValueError).
    Corrupt(String),
    /// The file cannot be opened or read (OSError).
    Unreadable(String),
    /// A row or page beyond the last one (IndexError).
    Beyond(String),
    /// What the caller's own function raised.
    Raised(PyErr),
}

pub type Result<T> = std::result::Result<T, PageError>;

impl fmt::Display for PageError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Column(said)
            | Self::Unsupported(said)
            | Self::Corrupt(said)
            | Self::Unreadable(said)
            | Self::Beyond(said) => formatter.write_str(said),
            Self::Raised(error) => error.fmt(formatter),
        }
    }
}

impl From<PageError> for PyErr {
    fn from(error: PageError) -> Self {
        let said = error.to_string();
        match error {
            PageError::Column(_) => PyKeyError::new_err(said),
            PageError::Unsupported(_) => PyNotImplementedError::new_err(said),
            PageError::Corrupt(_) => PyValueError::new_err(said),
            PageError::Unreadable(_) => PyOSError::new_err(said),
            PageError::Beyond(_) => PyIndexError::new_err(said),
            PageError::Raised(error) => error,
        }
    }
}

/// Whose bytes are being read: every error names them.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    pub file: &'a str,
    pub column: &'a str,
}

impl Place<'_> {
    /// Of the whole file.
    pub fn corrupt(&self, what: impl fmt::Display) -> PageError {
        PageError::Corrupt(format!(
            "File {} cannot be read as Parquet: {what}. Restore it or write it anew.",
            self.file
        ))
    }

    /// Of the column's part of a row group.
    pub fn corrupt_chunk(&self, row_group: usize, what: impl fmt::Display) -> PageError {
        PageError::Corrupt(format!(
            "File {}, column `{}`, row group {row_group}: {what}. Restore the file or write it anew.",
            self.file, self.column
        ))
    }

    /// Of one page, numbered in its row group.
    pub fn corrupt_page(&self, row_group: usize, page: usize, what: impl fmt::Display) -> PageError {
        PageError::Corrupt(format!(
            "File {}, column `{}`, row group {row_group}, page {page}: {what}. Restore the file or write it anew.",
            self.file, self.column
        ))
    }

    /// Of something a reader may meet and this one does not know.
    pub fn unsupported(&self, what: impl fmt::Display, remedy: &str) -> PageError {
        PageError::Unsupported(format!(
            "File {}, column `{}`: {what}. {remedy}",
            self.file, self.column
        ))
    }

    /// Of the operating system's refusal.
    pub fn unreadable(&self, error: &io::Error) -> PageError {
        PageError::Unreadable(format!(
            "File {} cannot be read ({error}). Restore it, or list the files anew.",
            self.file
        ))
    }
}
