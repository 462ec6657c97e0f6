//! `factory._native`: the hot kernels of the Model Factory.
//!
//! Every module is one kernel: pure functions over slices, tests beside them, and below them the
//! thin Python functions that borrow Arrow buffers and release the interpreter lock. Nothing here
//! opens a socket or knows a setting, and only `pages` reads files, those it is given. `factory/_native.pyi`
//! documents each function.

use pyo3::prelude::*;

mod agreement;
mod alike_pairs;
mod bag;
mod bucket_pairs;
mod c_text;
mod cell_oph;
mod cl100k;
mod crowd;
mod feistel;
mod fingerprint;
mod hash;
mod idf;
mod jaccard;
mod keep_rule;
mod lexer;
mod ln;
mod lpmh;
mod mixture;
mod packed_bag;
mod packed_parts;
mod packing;
mod packing_runs;
mod pages;
mod pair_cells;
mod rejections;
mod sampled_pairs;
mod signature;
mod signer;
mod similarity_graph;
mod stretches;
mod strings;
mod sweep;
mod tally;
mod text_signals;
mod token_counter;
mod union_find;
mod weights;

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__source_hash__", env!("FACTORY_SOURCE_HASH"))?;
    fingerprint::register(module)?;
    text_signals::register(module)?;
    rejections::register(module)?;
    packing::register(module)?;
    packing_runs::register(module)?;
    pages::register(module)?;
    feistel::register(module)?;
    alike_pairs::register(module)?;
    bag::register(module)?;
    bucket_pairs::register(module)?;
    packed_bag::register(module)?;
    pair_cells::register(module)?;
    c_text::register(module)?;
    crowd::register(module)?;
    idf::register(module)?;
    keep_rule::register(module)?;
    mixture::register(module)?;
    sampled_pairs::register(module)?;
    signature::register(module)?;
    sweep::register(module)?;
    token_counter::register(module)?;
    union_find::register(module)?;
    Ok(())
}
