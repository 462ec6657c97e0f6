//! Kernels of `factory/filters`: the numbers that rules measure, and the rules that a document fails.

use pyo3::prelude::*;

mod rejections;
mod text_signals;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    rejections::register(module)?;
    text_signals::register(module)
}
