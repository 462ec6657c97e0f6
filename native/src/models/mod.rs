//! Kernels of `factory/models`: the models that judge a text, and the hashed words that they share.

use pyo3::prelude::*;

mod folding;
mod license_comment;
mod linear;
mod lsa;
mod ngram;
mod texts;
mod tokens;
mod word_list;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    tokens::register(module)?;
    linear::register(module)?;
    lsa::register(module)?;
    word_list::register(module)?;
    ngram::register(module)
}
