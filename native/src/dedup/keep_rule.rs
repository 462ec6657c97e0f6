//! The documents of whole components to keep, by one of three rules, and the evidence for each removal.
//!
//! Vertices come best first. `independent_set` visits them in that order and keeps a vertex unless it has kept one
//! of its neighbours, so no edge joins two kept vertices and every removed vertex has a kept neighbour: the
//! removed ones are a minimal vertex cover. `one_per_component` keeps the best of each component, so it also
//! removes vertices without an edge to that one. `cover` keeps vertices without an edge and a greedy vertex cover:
//! first the vertex of the most uncovered edges, the best of several.
//!
//! A removed vertex names its most similar kept neighbour, the best of several equally similar ones; without a
//! kept neighbour it names the best of its component, and no similarity. The time is linear in the edges, times
//! a logarithm in `cover`, whatever the size of a component.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, RecordBatch, StringArray};
use arrow_pyarrow::PyArrowType;
use pyo3::prelude::*;

use super::python::{Batch, detached};
use super::similarity_graph::{Edge, Neighbours, best_of_component, graph};

/// The rule that chooses the documents to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    IndependentSet,
    OnePerComponent,
    Cover,
}

impl Keep {
    pub fn parse(name: &str) -> Result<Self, String> {
        match name {
            "independent_set" => Ok(Self::IndependentSet),
            "one_per_component" => Ok(Self::OnePerComponent),
            "cover" => Ok(Self::Cover),
            _ => Err(format!(
                "Unknown keep rule `{name}`. Use `independent_set`, `one_per_component` or `cover`."
            )),
        }
    }
}

/// The kept vertex that a removed one names, and their similarity if an edge joins them.
pub type Removal = (u32, Option<f64>);

/// For each of `n` vertices, `None` if it is kept and its removal otherwise.
pub fn decisions(keep: Keep, n: usize, edges: &[Edge]) -> Vec<Option<Removal>> {
    let neighbours = Neighbours::new(n, edges);
    let best = match keep {
        Keep::OnePerComponent => best_of_component(n, edges),
        Keep::IndependentSet | Keep::Cover => Vec::new(), // every removed vertex has a kept neighbour
    };
    let kept = match keep {
        Keep::IndependentSet => independent_set(&neighbours),
        Keep::OnePerComponent => best.iter().zip(0..).map(|(&best, own)| best == own).collect(),
        Keep::Cover => cover(&neighbours),
    };
    let partner = |vertex: usize| {
        neighbours
            .of(vertex)
            .iter()
            .filter(|(other, _)| kept[*other as usize])
            .min_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)))
            .map_or_else(
                || (best[vertex], None),
                |&(other, similarity)| (other, Some(similarity)),
            )
    };
    (0..n)
        .map(|vertex| (!kept[vertex]).then(|| partner(vertex)))
        .collect()
}

fn independent_set(neighbours: &Neighbours) -> Vec<bool> {
    let mut kept = vec![false; neighbours.len()];
    for vertex in 0..kept.len() {
        kept[vertex] = neighbours
            .of(vertex)
            .iter()
            .all(|&(other, _)| !kept[other as usize]);
    }
    kept
}

fn cover(neighbours: &Neighbours) -> Vec<bool> {
    let mut uncovered: Vec<usize> = (0..neighbours.len())
        .map(|vertex| neighbours.of(vertex).len())
        .collect();
    let mut kept: Vec<bool> = uncovered.iter().map(|&edges| edges == 0).collect();
    let mut next: BinaryHeap<_> = uncovered
        .iter()
        .enumerate()
        .filter(|(_, edges)| **edges > 0)
        .map(|(vertex, &edges)| (edges, Reverse(vertex)))
        .collect();
    while let Some((edges, Reverse(vertex))) = next.pop() {
        let now = uncovered[vertex];
        if now == 0 {
            continue;
        }
        if now < edges {
            next.push((now, Reverse(vertex))); // the other ends have covered some of its edges
            continue;
        }
        kept[vertex] = true;
        uncovered[vertex] = 0;
        for &(other, _) in neighbours.of(vertex) {
            uncovered[other as usize] = uncovered[other as usize].saturating_sub(1);
        }
    }
    kept
}

/// (doc_id, kept, duplicate_of, similarity) of the documents of `batch`, as `graph` reads it.
fn decide(batch: &RecordBatch, keep: Keep) -> Result<RecordBatch, String> {
    let (documents, edges) = graph(batch)?;
    let decided = decisions(keep, documents.len(), &edges);
    let names = StringArray::from_iter_values(documents.iter().map(|(_, name)| name));
    let kept: BooleanArray = decided.iter().map(|removal| Some(removal.is_none())).collect();
    let partners: StringArray = decided
        .iter()
        .map(|removal| removal.map(|(partner, _)| documents[partner as usize].1))
        .collect();
    let similarities: Float64Array = decided
        .iter()
        .map(|removal| removal.and_then(|(_, similarity)| similarity))
        .collect();
    RecordBatch::try_from_iter_with_nullable([
        ("doc_id", Arc::new(names) as ArrayRef, false),
        ("kept", Arc::new(kept) as ArrayRef, false),
        ("duplicate_of", Arc::new(partners) as ArrayRef, true),
        ("similarity", Arc::new(similarities) as ArrayRef, true),
    ])
    .map_err(|error| error.to_string())
}

#[pyfunction]
#[pyo3(name = "decide")]
fn decide_py(py: Python<'_>, batch: Batch, keep: &str) -> PyResult<Batch> {
    detached(py, || decide(&batch.0, Keep::parse(keep)?)).map(PyArrowType)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(decide_py, module)?)
}
