//! Kernels of `factory/dedup`: bags, signatures, candidate pairs, edges, and which documents stay.
//!
//!     bags/    texts as bags of weighted tokens, and the exact similarity of two bags
//!     sign/    bags as signatures, and the similarity that two signatures estimate
//!     pairs/   documents that share buckets, and the pairs of them that are similar
//!
//! Each folder uses only those above it.

use pyo3::prelude::*;

mod bags;
mod hash;
mod keep_rule;
mod ln;
mod pairs;
mod python;
mod sign;
mod similarity_graph;
mod strings;
mod sweep;
mod union_find;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    bags::register(module)?;
    sign::register(module)?;
    pairs::register(module)?;
    keep_rule::register(module)?;
    sweep::register(module)?;
    union_find::register(module)
}
