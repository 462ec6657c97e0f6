//! Signatures of weighted bags, and their comparison.

use pyo3::prelude::*;

pub mod agreement;
mod cell_oph;
mod lpmh;
mod signature;
mod signer;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    signature::register(module)
}
