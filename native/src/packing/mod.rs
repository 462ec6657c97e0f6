//! Kernels of `factory/packing`: which sequence holds each piece of a document.

use pyo3::prelude::*;

mod amounts;
mod best_fit;
mod chunk;
mod exact_fit;
mod pieces;
mod python;
mod runs;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    python::register(module)?;
    runs::register(module)
}
