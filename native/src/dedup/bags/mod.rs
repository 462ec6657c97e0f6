//! Texts as bags of tokens: folding, lexing, counting, packing, weights, and the similarity of two bags.

use pyo3::prelude::*;

pub mod bag;
mod cl100k;
mod folding;
pub mod idf;
pub mod jaccard;
mod lexer;
mod packed_bag;
mod stretches;
mod tally;
mod token_counter;
pub mod weights;
mod words;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    idf::register(module)?;
    packed_bag::register(module)?;
    token_counter::register(module)
}
