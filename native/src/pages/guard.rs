//! A border around the decoders of the `parquet` crate, behind which a panic is an error like another.
//!
//! They check much of what damaged bytes can do, and not all of it.

use std::panic::{AssertUnwindSafe, catch_unwind};

use parquet::errors::ParquetError;

/// What `decode` gives, or a few words on why it gives nothing.
pub fn guarded<T>(decode: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(decode)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("its bytes contradict each other".into()),
    }
}
