//! Kernels of `factory/models`: the models that judge a text, and the hashed words that they share.

use pyo3::prelude::*;

mod linear;
mod tokens;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    tokens::register(module)?;
    linear::register(module)
}
