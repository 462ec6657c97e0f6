//! n-gram models of a language: which texts would it write, and in how many bits per byte?
//!
//! `factory/models/ngram.py` describes the model; `tests/models/ngram_definition.py` is the readable definition.

use pyo3::prelude::*;

mod counts;
mod model;
mod overlay;
mod pieces;

/// Tokens of a context and the token that follows it.
const ORDER: usize = 5;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    pieces::register(module)?;
    counts::register(module)?;
    model::register(module)?;
    overlay::register(module)
}
