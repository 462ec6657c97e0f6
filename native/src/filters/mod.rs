//! Kernels of `factory/filters`: the numbers that rules measure.

use pyo3::prelude::*;

mod text_signals;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    text_signals::register(module)
}
