//! Kernels of `blender`: the source and index of each row of a blend, and keyed permutations.

use pyo3::prelude::*;

mod feistel;
mod mixture;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    feistel::register(module)?;
    mixture::register(module)
}
