//! The exact similarity of two documents, from their weighted bags.

use std::collections::hash_map::Entry;
use std::sync::Arc;

use arrow_array::builder::{Float64Builder, StringBuilder};
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch};
use arrow_data::ArrayData;
use arrow_pyarrow::PyArrowType;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rustc_hash::FxHashMap;

use crate::agreement::{checked_value_bits, estimate, matches, matches_for, of_length};
use crate::bag::Bag;
use crate::idf::Weights;
use crate::strings::{Binaries, column, int64_column, string_column};

/// sum min(x, y) / sum max(x, y) of two bags sorted by token, 0.0 for two empty ones.
///
/// The sums run in order of the tokens, whichever bag comes first, so the bits are symmetric.
pub fn weighted_jaccard(tokens: &[u64], weights: &[f64], other_tokens: &[u64], other_weights: &[f64]) -> f64 {
    let (mut least, mut most) = (0.0, 0.0);
    let (mut i, mut j) = (0, 0);
    while i < tokens.len() && j < other_tokens.len() {
        let (token, other) = (tokens[i], other_tokens[j]);
        let (weight, other_weight) = (weights[i], other_weights[j]);
        if token == other {
            least += weight.min(other_weight);
            most += weight.max(other_weight);
        } else {
            most += if token < other { weight } else { other_weight };
        }
        i += usize::from(token <= other);
        j += usize::from(other <= token);
    }
    for weight in weights[i..].iter().chain(&other_weights[j..]) {
        most += weight;
    }
    if most > 0.0 { least / most } else { 0.0 }
}

/// What a pair must reach.
struct Least {
    value_bits: usize,
    estimate: f64,
    similarity: f64,
}

/// Documents and pairs of them, the rows of a batch.
struct Cells<'a> {
    /// By `document`, the row and the signature.
    documents: FxHashMap<i64, (usize, &'a [u8])>,
    /// Each pair once, with a row of it.
    pairs: Vec<([i64; 2], usize)>,
    value_bits: usize,
    n_values: usize,
}

/// A pair whose signatures look alike.
struct Alike {
    documents: [i64; 2],
    /// Those of the two documents.
    rows: [usize; 2],
    row: usize,
    agreeing: usize,
}

impl<'a> Cells<'a> {
    /// Rows are of two kinds: documents (`document`, `signature`, no `other`) and pairs (`document`, `other`).
    fn new(batch: &'a RecordBatch, value_bits: usize) -> Result<Self, String> {
        let value_bits = checked_value_bits(value_bits)?;
        let (keys, others) = (int64_column(batch, "document")?, int64_column(batch, "other")?);
        let signatures = Binaries::new(column(batch, "signature")?, "signature")?;
        let (mut documents, mut pairs, mut bytes) = (FxHashMap::default(), Vec::new(), None);
        for row in 0..batch.num_rows() {
            if others.is_valid(row) {
                pairs.push(([keys.value(row), others.value(row)], row));
                continue;
            }
            let signature = signatures.get(row);
            let bytes = *bytes.get_or_insert(signature.map_or(0, <[u8]>::len));
            documents.insert(keys.value(row), (row, of_length(bytes, signature)?));
        }
        pairs.sort_unstable();
        pairs.dedup_by_key(|pair| pair.0);
        Ok(Self {
            documents,
            pairs,
            value_bits,
            n_values: bytes.unwrap_or(0) * 8 / value_bits,
        })
    }

    /// The pairs whose estimate reaches `least`, by `document` and `other`.
    fn alike(&self, least: f64) -> Result<Vec<Alike>, String> {
        let least = matches_for(least, self.n_values, self.value_bits);
        let mut found = Vec::new();
        for &(documents, row) in &self.pairs {
            let [Some(&(one, signature)), Some(&(other, other_signature))] =
                documents.map(|document| self.documents.get(&document))
            else {
                return Err(format!(
                    "A pair names documents {documents:?}, which are not both in the batch."
                ));
            };
            let agreeing = matches(signature, other_signature, self.value_bits);
            if agreeing >= least {
                found.push(Alike {
                    documents,
                    rows: [one, other],
                    row,
                    agreeing,
                });
            }
        }
        Ok(found)
    }
}

/// The rows of the pairs that look alike, and of their documents, ascending.
fn alike_rows(batch: &RecordBatch, value_bits: usize, least_estimate: f64) -> Result<Vec<i64>, String> {
    let alike = Cells::new(batch, value_bits)?.alike(least_estimate)?;
    let mut wanted = vec![false; batch.num_rows()];
    for pair in alike {
        let [one, other] = pair.rows;
        [one, other, pair.row]
            .into_iter()
            .for_each(|row| wanted[row] = true);
    }
    Ok((0..)
        .zip(wanted)
        .filter_map(|(row, wanted)| wanted.then_some(row))
        .collect())
}

/// The pairs of `batch` that look alike by their signatures, and whose exact similarity is enough.
///
/// Rows are those of `Cells`, documents with `doc_id` and the packed `bag`. A document is weighed once, and only
/// if it looks like another.
fn verify(batch: &RecordBatch, weights: &Weights, least: &Least) -> Result<RecordBatch, String> {
    let names = string_column(batch, "doc_id")?;
    let packed = Binaries::new(column(batch, "bag")?, "bag")?;
    let cells = Cells::new(batch, least.value_bits)?;

    let mut bags: FxHashMap<i64, (Vec<u64>, Vec<f64>)> = FxHashMap::default();
    let (mut left, mut right) = (StringBuilder::new(), StringBuilder::new());
    let (mut estimated, mut similarities) = (Float64Builder::new(), Float64Builder::new());
    for pair in cells.alike(least.estimate)? {
        for (document, row) in pair.documents.into_iter().zip(pair.rows) {
            if let Entry::Vacant(place) = bags.entry(document) {
                let bag = Bag::unpacked(packed.get(row).unwrap_or_default())?;
                let mut bag_weights = Vec::new();
                weights.of(&bag, &mut bag_weights);
                place.insert((bag.tokens, bag_weights));
            }
        }
        let [a, b] = pair.documents.map(|document| &bags[&document]);
        let similarity = weighted_jaccard(&a.0, &a.1, &b.0, &b.1);
        if similarity >= least.similarity {
            let ends = [
                names.required(pair.rows[0], "doc_id")?,
                names.required(pair.rows[1], "doc_id")?,
            ];
            left.append_value(ends[0].min(ends[1]));
            right.append_value(ends[0].max(ends[1]));
            estimated.append_value(estimate(pair.agreeing, cells.n_values, cells.value_bits));
            similarities.append_value(similarity);
        }
    }
    RecordBatch::try_from_iter_with_nullable([
        ("left", Arc::new(left.finish()) as ArrayRef, false),
        ("right", Arc::new(right.finish()) as ArrayRef, false),
        ("estimate", Arc::new(estimated.finish()) as ArrayRef, false),
        ("similarity", Arc::new(similarities.finish()) as ArrayRef, false),
    ])
    .map_err(|error| error.to_string())
}

#[pyfunction]
#[pyo3(name = "alike_rows")]
fn alike_rows_py(
    py: Python<'_>,
    batch: PyArrowType<RecordBatch>,
    value_bits: usize,
    least_estimate: f64,
) -> PyResult<PyArrowType<ArrayData>> {
    py.detach(|| alike_rows(&batch.0, value_bits, least_estimate))
        .map(|rows| PyArrowType(Int64Array::from(rows).into_data()))
        .map_err(PyValueError::new_err)
}

#[pyfunction]
fn verify_pairs(
    py: Python<'_>,
    batch: PyArrowType<RecordBatch>,
    idf: &[u8],
    value_bits: usize,
    least_estimate: f64,
    threshold: f64,
) -> PyResult<PyArrowType<RecordBatch>> {
    let least = Least {
        value_bits,
        estimate: least_estimate,
        similarity: threshold,
    };
    py.detach(|| verify(&batch.0, &Weights::new(idf)?, &least))
        .map(PyArrowType)
        .map_err(PyValueError::new_err)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(alike_rows_py, module)?)?;
    module.add_function(wrap_pyfunction!(verify_pairs, module)?)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use proptest::prelude::*;

    fn columns(bag: &BTreeMap<u64, f64>) -> (Vec<u64>, Vec<f64>) {
        bag.iter().map(|(&token, &weight)| (token, weight)).unzip()
    }

    proptest! {
        #[test]
        fn it_is_the_sum_of_minima_over_the_sum_of_maxima(
            x in proptest::collection::btree_map(0u64..40, 0.1f64..9.0, 0..30),
            y in proptest::collection::btree_map(0u64..40, 0.1f64..9.0, 0..30),
        ) {
            let weight = |bag: &BTreeMap<u64, f64>, token| bag.get(&token).copied().unwrap_or(0.0);
            let least: f64 = (0..40).map(|t| weight(&x, t).min(weight(&y, t))).sum();
            let most: f64 = (0..40).map(|t| weight(&x, t).max(weight(&y, t))).sum();
            let (a, b) = (columns(&x), columns(&y));
            let there = weighted_jaccard(&a.0, &a.1, &b.0, &b.1);
            let back = weighted_jaccard(&b.0, &b.1, &a.0, &a.1);
            let expected = if most > 0.0 { least / most } else { 0.0 };
            prop_assert!((there - expected).abs() < 1e-12);
            prop_assert_eq!(there.to_bits(), back.to_bits());
            if !x.is_empty() {
                prop_assert_eq!(weighted_jaccard(&a.0, &a.1, &a.0, &a.1), 1.0);
            }
        }
    }
}
