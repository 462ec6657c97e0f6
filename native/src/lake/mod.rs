//! Kernels of `factory/lake`: the content fingerprint of rows.

use pyo3::prelude::*;

mod fingerprint;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    fingerprint::register(module)
}
