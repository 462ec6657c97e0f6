//! Kernels of `factory/depsort`: the text of C and C++ files.

use pyo3::prelude::*;

mod c_text;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    c_text::register(module)
}
