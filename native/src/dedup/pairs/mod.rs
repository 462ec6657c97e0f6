//! Pairs of similar documents: shared buckets, the cells in which pairs are compared, and large buckets.

use pyo3::prelude::*;

mod bucket_pairs;
mod candidate_pairs;
mod large_buckets;
mod leaders;
mod packed_parts;
mod pair_cells;
mod record_parts;
mod sampled_pairs;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    candidate_pairs::register(module)?;
    bucket_pairs::register(module)?;
    large_buckets::register(module)?;
    pair_cells::register(module)?;
    record_parts::register(module)?;
    sampled_pairs::register(module)
}
