//! Kernels of `factory/lake`: the content fingerprint of rows, and texts compared with their hashes.

use pyo3::prelude::*;

mod content_hash;
mod fingerprint;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    content_hash::register(module)?;
    fingerprint::register(module)
}
