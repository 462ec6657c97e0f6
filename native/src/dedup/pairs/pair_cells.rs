//! Cells of documents, in which their pairs are compared.
//!
//!     add_pairs        (document, other)      -> (part, records): each end with its neighbour
//!     add_neighbours   the records of a part  -> (part, records): each document announced to its neighbours
//!     PairCells        the records of a part  -> (cell, document, others)
//!
//! The least neighbour of a pair's ends names its cell, so that a document of a clique or a star is read once
//! instead of once per pair. The pairs of a hub spread over several cells, by their other end. Each pair is in one
//! cell, in the row of its lesser document; every document of a cell has a row there.

use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, Int64Builder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_pyarrow::PyArrowType;
use pyo3::prelude::*;

use super::packed_parts::{Parts, records};
use crate::dedup::hash::mix;
use crate::dedup::python::{Batch, detached};
use crate::dedup::strings::int64_column;

const PAIRS_PER_CELL: u64 = 4096; // of a hub, about

/// A document in a pair: the least of itself and its neighbours, and the number of its neighbours.
#[derive(Clone, Copy)]
struct End {
    document: i64,
    least: i64,
    degree: i64,
}

impl End {
    /// `neighbours` has at least one, each once.
    fn new(document: i64, neighbours: impl ExactSizeIterator<Item = i64>) -> Self {
        let degree = neighbours.len() as i64;
        let least = neighbours.min().map_or(document, |least| least.min(document));
        Self {
            document,
            least,
            degree,
        }
    }
}

/// The cell of a pair, whichever end comes first.
fn cell(one: End, other: End) -> i64 {
    let shards = one
        .degree
        .max(other.degree)
        .cast_unsigned()
        .div_ceil(PAIRS_PER_CELL);
    let lesser = if (one.degree, one.document) < (other.degree, other.document) {
        one
    } else {
        other
    };
    let shard = lesser.document.cast_unsigned() % shards; // documents are hashes
    mix(one.least.min(other.least).cast_unsigned(), shard).cast_signed()
}

/// (neighbour, document, the document's least, its degree) for each document and neighbour.
pub fn announce_to_neighbours(mut ends: Vec<[i64; 2]>) -> Vec<[i64; 4]> {
    ends.sort_unstable();
    ends.dedup();
    let mut announcements = Vec::with_capacity(ends.len());
    for of_document in ends.chunk_by(|one, next| one[0] == next[0]) {
        let end = End::new(of_document[0][0], of_document.iter().map(|it| it[1]));
        announcements.extend(
            of_document
                .iter()
                .map(|it| [it[1], end.document, end.least, end.degree]),
        );
    }
    announcements
}

/// (cell, document, greater neighbour) for each announcement to a document; `None` for a lesser neighbour.
fn assign_to_cells(mut announcements: Vec<[i64; 4]>) -> Vec<(i64, i64, Option<i64>)> {
    announcements.sort_unstable();
    announcements.dedup();
    let mut assignments = Vec::with_capacity(announcements.len());
    for of_document in announcements.chunk_by(|one, next| one[0] == next[0]) {
        let end = End::new(of_document[0][0], of_document.iter().map(|it| it[1]));
        let begin = assignments.len();
        assignments.extend(of_document.iter().map(|&[_, document, least, degree]| {
            let neighbour = End {
                document,
                least,
                degree,
            };
            let other = Some(document).filter(|&other| other > end.document);
            (cell(end, neighbour), end.document, other)
        }));
        assignments[begin..].sort_unstable();
    }
    assignments
}

/// Adds both ends of the pairs (document, other).
pub fn push_pairs(batch: &RecordBatch, ends: &mut Parts) -> Result<(), String> {
    let (documents, others) = (int64_column(batch, "document")?, int64_column(batch, "other")?);
    for (&document, &other) in documents.values().iter().zip(others.values()) {
        ends.push([document, other]);
        ends.push([other, document]);
    }
    Ok(())
}

/// `PairCells` of the Python module.
#[pyclass]
#[derive(Default)]
struct PairCells {
    cells: Int64Builder,
    documents: Int64Builder,
    others: BinaryBuilder,
    held: usize,
}

impl PairCells {
    fn push(&mut self, announcements: Vec<[i64; 4]>) {
        let (assignments, mut others) = (assign_to_cells(announcements), Vec::new());
        self.held += assignments.len();
        for row in assignments.chunk_by(|one, next| (one.0, one.1) == (next.0, next.1)) {
            others.clear();
            others.extend(row.iter().filter_map(|it| it.2).flat_map(i64::to_le_bytes));
            self.cells.append_value(row[0].0);
            self.documents.append_value(row[0].1);
            self.others.append_value(&others);
        }
    }

    fn rows(&mut self) -> Result<RecordBatch, String> {
        self.held = 0;
        RecordBatch::try_from_iter([
            ("cell", Arc::new(self.cells.finish()) as ArrayRef),
            ("document", Arc::new(self.documents.finish())),
            ("others", Arc::new(self.others.finish())),
        ])
        .map_err(|error| error.to_string())
    }
}

#[pymethods]
impl PairCells {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    fn __len__(&self) -> usize {
        self.held
    }

    fn add(&mut self, py: Python<'_>, batch: Batch) -> PyResult<()> {
        detached(py, || {
            records(&batch.0).map(|announcements| self.push(announcements))
        })
    }

    fn drain(&mut self, py: Python<'_>) -> PyResult<Batch> {
        detached(py, || self.rows()).map(PyArrowType)
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PairCells>()
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    type Cells = BTreeMap<i64, (BTreeSet<i64>, BTreeSet<[i64; 2]>)>;

    /// The documents and the pairs of each cell.
    fn cells(pairs: &[[i64; 2]]) -> Cells {
        let ends = pairs
            .iter()
            .flat_map(|&[one, other]| [[one, other], [other, one]]);
        let mut cells = Cells::new();
        for (cell, document, other) in assign_to_cells(announce_to_neighbours(ends.collect())) {
            let (documents, pairs) = cells.entry(cell).or_default();
            documents.insert(document);
            assert!(other.is_none_or(|other| pairs.insert([document, other])));
        }
        cells
    }

    #[test]
    fn a_clique_and_a_star_are_one_cell_each() {
        let clique: Vec<[i64; 2]> = (1..9)
            .flat_map(|one| (1..one).map(move |other| [one, other]))
            .collect();
        let star: Vec<[i64; 2]> = (101..200).map(|other| [100, other]).collect();
        let found = cells(&[clique, star].concat());
        let sizes: BTreeSet<(usize, usize)> = found.values().map(|it| (it.0.len(), it.1.len())).collect();
        assert_eq!(sizes, BTreeSet::from([(8, 28), (100, 99)]));
    }

    #[test]
    fn a_hub_has_several_cells_of_bounded_size() {
        let n = 3 * PAIRS_PER_CELL as i64;
        let found = cells(&(1..=n).map(|other| [0, other]).collect::<Vec<_>>());
        assert_eq!(found.len(), 3);
        assert!(
            found
                .values()
                .all(|it| it.0.contains(&0) && it.1.len() <= PAIRS_PER_CELL as usize)
        );
    }
}
