//! Kernels of `factory/dedup`: bags, signatures, candidate pairs, edges, and which documents stay.

use pyo3::prelude::*;

mod agreement;
mod bag;
mod bucket_pairs;
mod candidate_pairs;
mod cell_oph;
mod cl100k;
mod folding;
mod hash;
mod idf;
mod jaccard;
mod keep_rule;
mod large_buckets;
mod leaders;
mod lexer;
mod ln;
mod lpmh;
mod packed_bag;
mod packed_parts;
mod pair_cells;
mod python;
mod record_parts;
mod sampled_pairs;
mod signature;
mod signer;
mod similarity_graph;
mod stretches;
mod strings;
mod sweep;
mod tally;
mod token_counter;
mod union_find;
mod weights;
mod words;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    candidate_pairs::register(module)?;
    bucket_pairs::register(module)?;
    large_buckets::register(module)?;
    idf::register(module)?;
    keep_rule::register(module)?;
    packed_bag::register(module)?;
    pair_cells::register(module)?;
    record_parts::register(module)?;
    sampled_pairs::register(module)?;
    signature::register(module)?;
    sweep::register(module)?;
    token_counter::register(module)?;
    union_find::register(module)
}
