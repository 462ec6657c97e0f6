//! The pairs of documents in cells: candidates by their signatures, then verified exactly.

use std::sync::Arc;

use arrow_array::builder::{Float64Builder, StringBuilder};
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, make_array};
use arrow_data::ArrayData;
use arrow_pyarrow::PyArrowType;
use pyo3::prelude::*;
use rustc_hash::FxHashMap;

use super::packed_parts::unpacked;
use crate::dedup::bags::bag::Bag;
use crate::dedup::bags::jaccard::weighted_jaccard;
use crate::dedup::bags::weights::{Weights, table_bytes};
use crate::dedup::python::{Batch, detached};
use crate::dedup::sign::agreement::{checked_value_bits, estimate, matches, matches_for, of_length};
use crate::dedup::strings::{Binaries, Strings, column, int64_column};

/// Pairs of documents whose signatures reach an estimate.
#[pyclass]
struct CandidatePairs {
    /// `doc_id` of every row of the batch.
    names: ArrayRef,
    /// The rows of the pairs' documents, ascending.
    rows: Vec<usize>,
    pairs: Vec<Pair>,
    value_bits: usize,
    n_values: usize,
}

struct Pair {
    /// The positions of its documents in `rows`.
    ends: [usize; 2],
    /// The number of values in which the signatures agree.
    agreeing: usize,
}

impl CandidatePairs {
    /// Rows are (document, others, doc_id, signature); `others` are packed, and have rows of their own.
    ///
    /// Documents and pairs may repeat.
    fn from_cells(batch: &RecordBatch, value_bits: usize, least_estimate: f64) -> Result<Self, String> {
        let value_bits = checked_value_bits(value_bits)?;
        let keys = int64_column(batch, "document")?;
        let signatures = Binaries::new(column(batch, "signature")?, "signature")?;
        let others = Binaries::new(column(batch, "others")?, "others")?;
        let (mut documents, mut pairs, mut bytes) = (FxHashMap::default(), Vec::new(), None);
        for (row, &document) in keys.values().iter().enumerate() {
            let signature = signatures.get(row);
            let bytes = *bytes.get_or_insert(signature.map_or(0, <[u8]>::len));
            documents.insert(document, (row, of_length(bytes, signature)?));
            let others = unpacked(others.get(row).unwrap_or_default())?;
            pairs.extend(others.into_iter().map(|other| [document, other]));
        }
        pairs.sort_unstable();
        pairs.dedup();

        let n_values = bytes.unwrap_or(0) * 8 / value_bits;
        let least = matches_for(least_estimate, n_values, value_bits);
        let mut candidates = Vec::new();
        for pair in pairs {
            let [Some(&(one, signature)), Some(&(other, other_signature))] =
                pair.map(|document| documents.get(&document))
            else {
                return Err(format!(
                    "A pair names documents {pair:?}, which are not both in the batch. Pass whole cells."
                ));
            };
            let agreeing = matches(signature, other_signature, value_bits);
            if agreeing >= least {
                candidates.push(([one, other], agreeing));
            }
        }
        Ok(Self::from_rows(
            candidates,
            column(batch, "doc_id")?,
            value_bits,
            n_values,
        ))
    }

    /// From pairs of rows, each with the number of values in which its signatures agree.
    fn from_rows(
        candidates: Vec<([usize; 2], usize)>,
        names: &ArrayRef,
        value_bits: usize,
        n_values: usize,
    ) -> Self {
        let mut places = vec![None; names.len()];
        for row in candidates.iter().flat_map(|pair| pair.0) {
            places[row] = Some(0);
        }
        let rows: Vec<usize> = (0..names.len()).filter(|&row| places[row].is_some()).collect();
        for (place, &row) in rows.iter().enumerate() {
            places[row] = Some(place);
        }
        let pairs = candidates
            .into_iter()
            .map(|(ends, agreeing)| Pair {
                ends: ends.map(|row| places[row].unwrap_or_default()),
                agreeing,
            })
            .collect();
        Self {
            names: Arc::clone(names),
            rows,
            pairs,
            value_bits,
            n_values,
        }
    }

    /// The pairs whose exact similarity reaches `threshold`; `bags` are the packed bags of `rows`, each weighed once.
    fn verified(&self, bags: &ArrayRef, weights: &Weights, threshold: f64) -> Result<RecordBatch, String> {
        let (names, packed) = (Strings::new(&self.names, "doc_id")?, Binaries::new(bags, "bags")?);
        if bags.len() != self.rows.len() {
            return Err(format!(
                "There are {} bags for {} rows. Pass the bag of each of `rows`.",
                bags.len(),
                self.rows.len()
            ));
        }
        let mut weighed = Vec::with_capacity(bags.len());
        for place in 0..bags.len() {
            let (bag, mut of_bag) = (Bag::unpacked(packed.get(place).unwrap_or_default())?, Vec::new());
            weights.of(&bag, &mut of_bag)?;
            weighed.push((bag.tokens, of_bag));
        }
        let (mut left, mut right) = (StringBuilder::new(), StringBuilder::new());
        let (mut estimated, mut similarities) = (Float64Builder::new(), Float64Builder::new());
        for pair in &self.pairs {
            let [a, b] = pair.ends.map(|place| &weighed[place]);
            let similarity = weighted_jaccard(&a.0, &a.1, &b.0, &b.1);
            if similarity >= threshold {
                let [one, other] = pair.ends.map(|place| names.required(self.rows[place], "doc_id"));
                let (one, other) = (one?, other?);
                left.append_value(one.min(other));
                right.append_value(one.max(other));
                estimated.append_value(estimate(pair.agreeing, self.n_values, self.value_bits));
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
}

#[pymethods]
impl CandidatePairs {
    #[new]
    fn new(py: Python<'_>, batch: Batch, value_bits: usize, least_estimate: f64) -> PyResult<Self> {
        detached(py, || Self::from_cells(&batch.0, value_bits, least_estimate))
    }

    #[getter]
    fn rows(&self) -> PyArrowType<ArrayData> {
        let rows: Int64Array = self.rows.iter().map(|&row| row as i64).collect();
        PyArrowType(rows.into_data())
    }

    fn verify(
        &self,
        py: Python<'_>,
        bags: PyArrowType<ArrayData>,
        idf: PyArrowType<ArrayData>,
        threshold: f64,
    ) -> PyResult<Batch> {
        let bags = make_array(bags.0);
        detached(py, || {
            let idf = table_bytes(idf.0)?;
            self.verified(&bags, &Weights::new(idf.values())?, threshold)
        })
        .map(PyArrowType)
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<CandidatePairs>()
}
