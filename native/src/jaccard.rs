//! The exact similarity of two documents, from their weighted bags.

use std::collections::hash_map::Entry;
use std::sync::Arc;

use arrow_array::builder::{Float64Builder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_pyarrow::PyArrowType;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rustc_hash::FxHashMap;

use crate::bag::Bag;
use crate::idf::Weights;
use crate::strings::{Binaries, column, string_column};

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

/// The rows of `batch` with an `other` whose exact similarity reaches `threshold`.
///
/// Rows are of two kinds: documents (`doc_id`, packed `bag`, no `other`) and pairs of them (`doc_id`, `other`,
/// `estimate`). A document is weighed once, and only if a pair names it.
fn verify(batch: &RecordBatch, weights: &Weights, threshold: f64) -> Result<RecordBatch, String> {
    let names = string_column(batch, "doc_id")?;
    let others = string_column(batch, "other")?;
    let packed = Binaries::new(column(batch, "bag")?, "bag")?;
    let estimates = column(batch, "estimate")?
        .as_primitive_opt::<Float64Type>()
        .ok_or("`estimate` is no float64 column. Cast it first.")?;

    let mut rows: FxHashMap<&str, usize> = FxHashMap::default();
    for row in (0..names.len()).filter(|&row| others.get(row).is_none()) {
        rows.insert(names.required(row, "doc_id")?, row);
    }
    let mut bags: FxHashMap<usize, (Vec<u64>, Vec<f64>)> = FxHashMap::default();
    let (mut left, mut right) = (StringBuilder::new(), StringBuilder::new());
    let (mut estimated, mut similarities) = (Float64Builder::new(), Float64Builder::new());
    for row in 0..names.len() {
        let Some(other) = others.get(row) else { continue };
        let pair = [names.required(row, "doc_id")?, other];
        for name in pair {
            let Some(&document) = rows.get(name) else {
                return Err(format!(
                    "A pair names document {name}, whose bag is not in the batch."
                ));
            };
            if let Entry::Vacant(place) = bags.entry(document) {
                let bag = Bag::unpacked(packed.get(document).unwrap_or_default())?;
                let mut bag_weights = Vec::new();
                weights.of(&bag, &mut bag_weights);
                place.insert((bag.tokens, bag_weights));
            }
        }
        let [a, b] = pair.map(|name| &bags[&rows[name]]);
        let similarity = weighted_jaccard(&a.0, &a.1, &b.0, &b.1);
        if similarity >= threshold {
            left.append_value(pair[0]);
            right.append_value(pair[1]);
            estimated.append_value(estimates.value(row));
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
fn verify_pairs(
    py: Python<'_>,
    batch: PyArrowType<RecordBatch>,
    idf: &[u8],
    threshold: f64,
) -> PyResult<PyArrowType<RecordBatch>> {
    py.detach(|| verify(&batch.0, &Weights::new(idf)?, threshold))
        .map(PyArrowType)
        .map_err(PyValueError::new_err)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
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
