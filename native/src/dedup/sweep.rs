//! The outcome of a keep rule at other thresholds: pairs, removals and the largest component, one row per threshold.
//!
//! A higher threshold has a subset of the edges, so its components lie inside the components of the lowest one, and
//! one pass over the latter answers every threshold. A document represents `copies` documents of the same text.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch};
use arrow_pyarrow::PyArrowType;
use pyo3::prelude::*;

use super::keep_rule::{Keep, decisions};
use super::python::{Batch, detached};
use super::similarity_graph::{Edge, best_of_component, graph};
use super::strings::int64_column;

/// The outcome of the keep rule at one threshold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    pub similar_pairs: i64,
    /// Texts removed because of a similar one.
    pub removed: i64,
    pub removed_bytes: i64,
    /// Documents of the largest component, including copies.
    pub largest_component: i64,
}

/// A distinct text: the number of documents that have it, and its length.
#[derive(Clone, Copy, Debug)]
pub struct Text {
    pub copies: i64,
    pub n_bytes: i64,
}

/// The outcome for the edges that reach `threshold`; `texts` come best first.
pub fn outcome(keep: Keep, texts: &[Text], edges: &[Edge], threshold: f64) -> Outcome {
    let similar: Vec<Edge> = edges
        .iter()
        .copied()
        .filter(|edge| edge.similarity >= threshold)
        .collect();
    let mut found = Outcome {
        similar_pairs: similar.len() as i64,
        largest_component: largest(texts, &similar),
        ..Outcome::default()
    };
    for (text, removal) in texts.iter().zip(decisions(keep, texts.len(), &similar)) {
        if removal.is_some() {
            found.removed += 1;
            found.removed_bytes += text.n_bytes;
        }
    }
    found
}

/// Documents of the largest component, including copies.
fn largest(texts: &[Text], edges: &[Edge]) -> i64 {
    let mut sizes = vec![0; texts.len()];
    for (text, best) in texts.iter().zip(best_of_component(texts.len(), edges)) {
        sizes[best as usize] += text.copies;
    }
    sizes.into_iter().max().unwrap_or(0)
}

fn outcomes(batch: &RecordBatch, keep: Keep, thresholds: &[f64]) -> Result<RecordBatch, String> {
    let (copies, n_bytes) = (int64_column(batch, "copies")?, int64_column(batch, "n_bytes")?);
    let (documents, edges) = graph(batch)?;
    let texts: Vec<Text> = documents
        .iter()
        .map(|&(row, _)| Text {
            copies: copies.value(row),
            n_bytes: n_bytes.value(row),
        })
        .collect();
    let found: Vec<Outcome> = thresholds
        .iter()
        .map(|&threshold| outcome(keep, &texts, &edges, threshold))
        .collect();
    let integers =
        |of: fn(&Outcome) -> i64| Arc::new(Int64Array::from_iter_values(found.iter().map(of))) as ArrayRef;
    RecordBatch::try_from_iter([
        (
            "threshold",
            Arc::new(Float64Array::from_iter_values(thresholds.iter().copied())) as ArrayRef,
        ),
        ("similar_pairs", integers(|it| it.similar_pairs)),
        ("removed", integers(|it| it.removed)),
        ("removed_bytes", integers(|it| it.removed_bytes)),
        ("largest_component", integers(|it| it.largest_component)),
    ])
    .map_err(|error| error.to_string())
}

#[pyfunction]
fn sweep(py: Python<'_>, batch: Batch, keep: &str, thresholds: Vec<f64>) -> PyResult<Batch> {
    detached(py, || outcomes(&batch.0, Keep::parse(keep)?, &thresholds)).map(PyArrowType)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(sweep, module)?)
}
