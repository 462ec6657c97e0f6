//! Pairs of sampled documents and all others that look alike, whether or not a bucket holds both.
//!
//! What banding finds is measured against these: the signatures of a small sample are compared with every
//! signature, which costs some ten nanoseconds a pair.

use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, Float64Builder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_pyarrow::PyArrowType;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::candidates::matches_for;
use crate::jaccard::{estimate, matches};
use crate::strings::{Binaries, column, string_column};

/// Whether two signatures agree in all of the `rows` values of one of `bands` bands.
pub fn meet(signature: &[u8], other: &[u8], rows: usize, bands: usize) -> bool {
    let (mine, theirs) = (signature.chunks_exact(rows), other.chunks_exact(rows));
    mine.zip(theirs).take(bands).any(|(a, b)| a == b)
}

/// (sampled, other, estimate, met) of the rows (doc_id, signature) of `batch` that look like one of `sample`.
///
/// Of two sampled documents the one with the greater id is the other.
fn pairs(
    batch: &RecordBatch,
    sample: &RecordBatch,
    min_estimate: f64,
    rows: usize,
    bands: usize,
) -> Result<RecordBatch, String> {
    let names = string_column(batch, "doc_id")?;
    let signatures = Binaries::new(column(batch, "signature")?, "signature")?;
    let sampled = string_column(sample, "doc_id")?;
    let of_sample = Binaries::new(column(sample, "signature")?, "signature")?;
    let mut chosen = Vec::with_capacity(sampled.len());
    for row in 0..sampled.len() {
        chosen.push((
            sampled.required(row, "doc_id")?,
            of_sample.get(row).unwrap_or_default(),
        ));
    }
    chosen.sort_unstable();
    let values = chosen.first().map_or(0, |(_, signature)| signature.len());
    let min_matches = matches_for(min_estimate, values);
    let (mut left, mut right) = (StringBuilder::new(), StringBuilder::new());
    let (mut estimates, mut met) = (Float64Builder::new(), BooleanBuilder::new());
    for row in 0..names.len() {
        let name = names.required(row, "doc_id")?;
        let signature = signatures.get(row).unwrap_or_default();
        let in_sample = chosen.binary_search_by_key(&name, |&(other, _)| other).is_ok();
        for &(other, of_other) in &chosen {
            if other == name || (in_sample && other > name) {
                continue;
            }
            let agreeing = matches(signature, of_other);
            if agreeing >= min_matches {
                left.append_value(other);
                right.append_value(name);
                estimates.append_value(estimate(agreeing, values));
                met.append_value(meet(signature, of_other, rows, bands));
            }
        }
    }
    RecordBatch::try_from_iter_with_nullable([
        ("sampled", Arc::new(left.finish()) as ArrayRef, false),
        ("other", Arc::new(right.finish()) as ArrayRef, false),
        ("estimate", Arc::new(estimates.finish()) as ArrayRef, false),
        ("met", Arc::new(met.finish()) as ArrayRef, false),
    ])
    .map_err(|error| error.to_string())
}

#[pyfunction]
fn sampled_pairs(
    py: Python<'_>,
    batch: PyArrowType<RecordBatch>,
    sample: PyArrowType<RecordBatch>,
    min_estimate: f64,
    rows: usize,
    bands: usize,
) -> PyResult<PyArrowType<RecordBatch>> {
    if rows == 0 {
        return Err(PyValueError::new_err("A band has no rows. Give it one or more."));
    }
    py.detach(|| pairs(&batch.0, &sample.0, min_estimate, rows, bands))
        .map(PyArrowType)
        .map_err(PyValueError::new_err)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(sampled_pairs, module)?)
}

#[cfg(test)]
mod tests {
    use super::meet;

    #[test]
    fn signatures_meet_where_a_whole_band_agrees() {
        assert!(!meet(b"abcdef", b"xbcxyf", 2, 3));
        assert!(meet(b"abcdef", b"xycdyf", 2, 3));
        assert!(!meet(b"abcdef", b"xyxyef", 2, 2)); // the third band is not used
        assert!(meet(b"abcdefg", b"abxxxxx", 2, 3));
    }
}
