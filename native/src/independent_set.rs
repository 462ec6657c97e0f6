//! The keep rule: a maximal independent set by priority, and the kept partner of each removed document.
//!
//! Vertices come best first. In that order a vertex is kept unless an earlier kept one is its neighbour,
//! so no two kept vertices are joined and every removed one is joined to a kept one: what is removed is a
//! minimal vertex cover. Its partner is the most similar kept neighbour, of equally similar ones the best.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{ArrayRef, BooleanArray, Float64Array, RecordBatch, StringArray};
use arrow_pyarrow::PyArrowType;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rustc_hash::FxHashMap;

use crate::strings::{column, string_column};

/// An edge between two vertices, named by their positions.
#[derive(Clone, Copy, Debug)]
pub struct Edge {
    pub left: u32,
    pub right: u32,
    pub similarity: f64,
}

/// For each of `n` vertices `None` if it is kept, else its partner and their similarity.
pub fn independent_set(n: usize, edges: &[Edge]) -> Vec<Option<(u32, f64)>> {
    let mut starts = vec![0usize; n + 1];
    let directed = || {
        edges
            .iter()
            .flat_map(|e| [(e.left, e.right, e.similarity), (e.right, e.left, e.similarity)])
    };
    for (from, _, _) in directed() {
        starts[from as usize + 1] += 1;
    }
    for i in 0..n {
        starts[i + 1] += starts[i];
    }
    let mut free = starts.clone();
    let mut neighbours = vec![(0u32, 0f64); 2 * edges.len()];
    for (from, to, similarity) in directed() {
        neighbours[free[from as usize]] = (to, similarity);
        free[from as usize] += 1;
    }
    let of = |vertex: usize| &neighbours[starts[vertex]..starts[vertex + 1]];

    let mut kept = vec![false; n];
    for vertex in 0..n {
        kept[vertex] = of(vertex).iter().all(|&(other, _)| !kept[other as usize]);
    }
    let partner = |vertex: usize| {
        let candidates = of(vertex).iter().filter(|(other, _)| kept[*other as usize]);
        candidates
            .copied()
            .min_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)))
    };
    (0..n)
        .map(|vertex| if kept[vertex] { None } else { partner(vertex) })
        .collect()
}

/// Documents as (row, id), the best first, and the edges between them by position.
pub type Graph<'a> = (Vec<(usize, &'a str)>, Vec<Edge>);

/// The documents and the edges of `batch`, which holds whole components.
///
/// Rows are of two kinds: documents (`doc_id`, no `other`), the best of a component first, and edges
/// (`doc_id`, `other`, `similarity`). Documents are given as (row, id).
pub fn graph(batch: &RecordBatch) -> Result<Graph<'_>, String> {
    let names = string_column(batch, "doc_id")?;
    let others = string_column(batch, "other")?;
    let similarities = column(batch, "similarity")?
        .as_primitive_opt::<Float64Type>()
        .ok_or("`similarity` is no float64 column. Cast it first.")?;

    let mut documents = Vec::new();
    let mut numbers: FxHashMap<&str, u32> = FxHashMap::default();
    for row in (0..names.len()).filter(|&row| others.get(row).is_none()) {
        let name = names.required(row, "doc_id")?;
        let number =
            u32::try_from(documents.len()).map_err(|_| "A batch decides four billion documents at most.")?;
        numbers.insert(name, number);
        documents.push((row, name));
    }
    let number = |name: &str| {
        numbers
            .get(name)
            .copied()
            .ok_or_else(|| format!("An edge names document {name}, which is not in its component."))
    };
    let mut edges = Vec::with_capacity(names.len() - documents.len());
    for row in 0..names.len() {
        if let Some(other) = others.get(row) {
            edges.push(Edge {
                left: number(names.required(row, "doc_id")?)?,
                right: number(other)?,
                similarity: similarities.value(row),
            });
        }
    }
    Ok((documents, edges))
}

/// (doc_id, kept, duplicate_of, similarity) of the documents of `batch`, as `graph` reads it.
fn decide(batch: &RecordBatch) -> Result<RecordBatch, String> {
    let (documents, edges) = graph(batch)?;
    let decisions = independent_set(documents.len(), &edges);
    let partners: StringArray = decisions
        .iter()
        .map(|decision| decision.map(|(partner, _)| documents[partner as usize].1))
        .collect();
    let similarities: Float64Array = decisions
        .iter()
        .map(|decision| decision.map(|(_, similarity)| similarity))
        .collect();
    let kept: BooleanArray = decisions
        .iter()
        .map(|decision| Some(decision.is_none()))
        .collect();
    RecordBatch::try_from_iter_with_nullable([
        (
            "doc_id",
            Arc::new(StringArray::from_iter_values(
                documents.iter().map(|(_, name)| name),
            )) as ArrayRef,
            false,
        ),
        ("kept", Arc::new(kept) as ArrayRef, false),
        ("duplicate_of", Arc::new(partners) as ArrayRef, true),
        ("similarity", Arc::new(similarities) as ArrayRef, true),
    ])
    .map_err(|error| error.to_string())
}

#[pyfunction]
#[pyo3(name = "independent_set")]
fn independent_set_py(py: Python<'_>, batch: PyArrowType<RecordBatch>) -> PyResult<PyArrowType<RecordBatch>> {
    py.detach(|| decide(&batch.0))
        .map(PyArrowType)
        .map_err(PyValueError::new_err)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(independent_set_py, module)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn graph() -> impl Strategy<Value = (usize, Vec<Edge>)> {
        let edge = |n| (0..n, 0..n, 0u8..5);
        (2u32..30).prop_flat_map(move |n| {
            proptest::collection::vec(edge(n), 0..80).prop_map(move |edges| {
                let edges = edges.into_iter().filter(|(left, right, _)| left != right);
                let similarity = |s: u8| 0.8 + f64::from(s) / 25.0;
                let edges = edges.map(|(left, right, s)| Edge {
                    left,
                    right,
                    similarity: similarity(s),
                });
                (n as usize, edges.collect())
            })
        })
    }

    proptest! {
        #[test]
        fn no_two_kept_are_joined_and_each_removed_has_its_most_similar_kept((n, edges) in graph()) {
            let decisions = independent_set(n, &edges);
            let kept = |v: u32| decisions[v as usize].is_none();
            for edge in &edges {
                prop_assert!(!(kept(edge.left) && kept(edge.right)));
            }
            for (vertex, decision) in decisions.iter().enumerate() {
                let Some((partner, similarity)) = *decision else { continue };
                prop_assert!(kept(partner));
                let mut joined: Vec<(f64, u32)> = Vec::new();
                for edge in &edges {
                    for (from, to) in [(edge.left, edge.right), (edge.right, edge.left)] {
                        if from as usize == vertex && kept(to) {
                            joined.push((-edge.similarity, to));
                        }
                    }
                }
                joined.sort_by(|a, b| a.partial_cmp(b).unwrap());
                prop_assert_eq!((-similarity, partner), joined[0]);
            }
        }

        #[test]
        fn the_best_vertex_stays_and_the_order_of_edges_does_not_matter((n, edges) in graph()) {
            let decisions = independent_set(n, &edges);
            prop_assert!(decisions[0].is_none());
            let mut turned: Vec<Edge> = edges.iter().rev().copied().collect();
            for edge in &mut turned {
                *edge = Edge { left: edge.right, right: edge.left, ..*edge };
            }
            prop_assert_eq!(independent_set(n, &turned), decisions);
        }
    }

    #[test]
    fn a_chain_keeps_every_other_one_and_a_clique_one() {
        let edge = |left, right| Edge {
            left,
            right,
            similarity: 0.9,
        };
        let chain = [edge(0, 1), edge(1, 2), edge(2, 3), edge(3, 4)];
        let kept = |n, edges: &[Edge]| {
            independent_set(n, edges)
                .iter()
                .map(Option::is_none)
                .collect::<Vec<_>>()
        };
        assert_eq!(kept(5, &chain), [true, false, true, false, true]);
        assert_eq!(
            kept(3, &[edge(0, 1), edge(1, 2), edge(0, 2)]),
            [true, false, false]
        );
        assert_eq!(kept(2, &[]), [true, true]);
    }
}
