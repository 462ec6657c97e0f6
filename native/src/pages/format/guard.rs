//! Turns panics of the `parquet` crate's decoders into errors.
//!
//! The decoders check many effects of damaged bytes, but not all.

use std::panic::{AssertUnwindSafe, catch_unwind};

use parquet::errors::ParquetError;

/// The result of `decode`, or the reason for its failure in a few words.
pub fn guarded<T>(decode: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(decode)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("its bytes contradict each other".into()),
    }
}
