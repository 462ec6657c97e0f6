//! Candidate pairs: which members of a bucket look alike enough to be compared exactly.
//!
//! Every pair of a bucket is looked at, so this is for buckets of bounded size; larger ones are crowds
//! (`crowd.rs`). Looking costs some ten nanoseconds.

use std::sync::Arc;

use arrow_array::builder::{Float64Builder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_pyarrow::PyArrowType;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::agreement::{checked_value_bits, estimate, matches, matches_for, of_length};
use crate::strings::{Binaries, column, string_column};

/// Calls `emit(i, j, matches)` with i < j for the pairs of signatures that agree in `min_matches` values.
pub fn alike_pairs(
    signatures: &[&[u8]],
    value_bits: usize,
    min_matches: usize,
    mut emit: impl FnMut(usize, usize, usize),
) {
    for j in 1..signatures.len() {
        for i in 0..j {
            let agreeing = matches(signatures[i], signatures[j], value_bits);
            if agreeing >= min_matches {
                emit(i, j, agreeing);
            }
        }
    }
}

/// (left, right, estimate) with left < right for the rows (bucket, doc_id, signature) of whole buckets.
fn candidates(batch: &RecordBatch, value_bits: usize, min_estimate: f64) -> Result<RecordBatch, String> {
    let value_bits = checked_value_bits(value_bits)?;
    let buckets = column(batch, "bucket")?
        .as_primitive_opt::<Int64Type>()
        .ok_or("`bucket` is no int64 column. Cast it first.")?
        .values();
    let names = string_column(batch, "doc_id")?;
    let signatures = Binaries::new(column(batch, "signature")?, "signature")?;
    let first = (batch.num_rows() > 0).then(|| signatures.get(0)).flatten();
    let bytes = first.map_or(0, <[u8]>::len);
    let values = bytes * 8 / value_bits;
    let min_matches = matches_for(min_estimate, values, value_bits);
    let (mut left, mut right) = (StringBuilder::new(), StringBuilder::new());
    let mut estimates = Float64Builder::new();
    let mut start = 0;
    for members in buckets.chunk_by(|a, b| a == b) {
        let rows = start..start + members.len();
        start = rows.end;
        let mut of_bucket = Vec::with_capacity(members.len());
        let mut name_of = Vec::with_capacity(members.len());
        for row in rows {
            of_bucket.push(of_length(bytes, signatures.get(row))?);
            name_of.push(names.required(row, "doc_id")?);
        }
        alike_pairs(&of_bucket, value_bits, min_matches, |i, j, agreeing| {
            left.append_value(name_of[i].min(name_of[j]));
            right.append_value(name_of[i].max(name_of[j]));
            estimates.append_value(estimate(agreeing, values, value_bits));
        });
    }
    RecordBatch::try_from_iter_with_nullable([
        ("left", Arc::new(left.finish()) as ArrayRef, false),
        ("right", Arc::new(right.finish()) as ArrayRef, false),
        ("estimate", Arc::new(estimates.finish()) as ArrayRef, false),
    ])
    .map_err(|error| error.to_string())
}

#[pyfunction]
fn candidate_pairs(
    py: Python<'_>,
    batch: PyArrowType<RecordBatch>,
    value_bits: usize,
    min_estimate: f64,
) -> PyResult<PyArrowType<RecordBatch>> {
    py.detach(|| candidates(&batch.0, value_bits, min_estimate))
        .map(PyArrowType)
        .map_err(PyValueError::new_err)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(candidate_pairs, module)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_alike_pair_is_given_once(
            signatures in proptest::collection::vec(proptest::collection::vec(0u8..3, 16), 0..30),
            least in 0usize..17,
        ) {
            let slices: Vec<&[u8]> = signatures.iter().map(Vec::as_slice).collect();
            let mut found = Vec::new();
            alike_pairs(&slices, 8, least, |i, j, agreeing| found.push((i, j, agreeing)));
            let mut expected = Vec::new();
            for j in 0..signatures.len() {
                for i in 0..j {
                    let agreeing = signatures[i].iter().zip(&signatures[j]).filter(|(a, b)| a == b).count();
                    if agreeing >= least {
                        expected.push((i, j, agreeing));
                    }
                }
            }
            prop_assert_eq!(found, expected);
        }
    }
}
