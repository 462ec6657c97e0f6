//! `LargeBucketEdges` of the Python module: the edges inside large buckets, whose members are compared without
//! comparing all pairs (`leaders.rs`).
//!
//! Buckets that share members are one cell, and a large cell is cut into parts, so that no task has all of it: each
//! part begins with the best members of the cell, which alone may lead, and every other member comes in one part.
//! What a part says of its members depends on the cell, never on the other parts.

use std::sync::Arc;

use arrow_array::builder::{Float64Builder, Int64Builder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, BooleanArray, RecordBatch, UInt8Array};
use arrow_data::ArrayData;
use arrow_pyarrow::PyArrowType;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::leaders::{Bounds, Cell, Limits, Member};
use crate::dedup::bags::bag::Bag;
use crate::dedup::bags::weights::{Weights, table_bytes};
use crate::dedup::python::{Batch, detached};
use crate::dedup::sign::agreement::{checked_value_bits, estimate, matches_for, of_length};
use crate::dedup::strings::{Binaries, column, int64_column, int64_lists, string_column};

const MAX_THRESHOLDS: usize = 63;

/// `LargeBucketEdges` of the Python module.
#[pyclass]
struct LargeBucketEdges {
    idf: UInt8Array,
    value_bits: usize,
    /// (least estimate, threshold, whether it decides), as bits of `open` from the lowest.
    limits: Vec<(f64, f64, bool)>,
    bounds: Bounds,
    /// The cell and the part that come, with the bytes of a signature.
    current: Option<(i64, i64, usize)>,
    cell: Cell,
}

impl LargeBucketEdges {
    /// An empty cell of signatures of so many bytes.
    fn empty_cell(&self, bytes: usize) -> Cell {
        let values = bytes * 8 / self.value_bits;
        let limits: Vec<Limits> = self
            .limits
            .iter()
            .map(|&(least_estimate, threshold, decides)| Limits {
                min_matches: matches_for(least_estimate, values, self.value_bits),
                threshold,
                decides,
            })
            .collect();
        Cell::new(self.value_bits, &limits, self.bounds)
    }

    fn rows(&mut self, batch: &RecordBatch) -> Result<RecordBatch, String> {
        let cells = int64_column(batch, "cell")?.values();
        let parts = int64_column(batch, "part")?.values();
        let open = int64_column(batch, "open")?.values();
        let uncompared = int64_column(batch, "uncompared")?.values();
        let (leads, shown) = (flags(batch, "leads")?, flags(batch, "shown")?);
        let buckets = int64_lists(batch, "buckets")?;
        let names = string_column(batch, "doc_id")?;
        let packed = Binaries::new(column(batch, "bag")?, "bag")?;
        let signatures = Binaries::new(column(batch, "signature")?, "signature")?;
        let idf = self.idf.clone();
        let weights = Weights::new(idf.values())?;
        let mut rows = Rows::default();
        for row in 0..batch.num_rows() {
            let signature = signatures.get(row).unwrap_or_default();
            let bytes = match self.current {
                Some((cell, part, bytes)) if (cell, part) == (cells[row], parts[row]) => bytes,
                _ => {
                    self.current = Some((cells[row], parts[row], signature.len()));
                    self.cell = self.empty_cell(signature.len());
                    signature.len()
                }
            };
            let bag = Bag::unpacked(packed.get(row).unwrap_or_default())?;
            let name = names.required(row, "doc_id")?;
            let mut member = Member {
                name: name.to_owned(),
                signature: of_length(bytes, Some(signature))?.to_owned(),
                tokens: Vec::new(),
                weights: Vec::new(),
            };
            weights.of(&bag, &mut member.weights)?;
            member.tokens = bag.tokens;
            let values = bytes * 8 / self.value_bits;
            let buckets = buckets.value(row);
            let unled = self.cell.add(
                member,
                buckets.as_primitive::<Int64Type>().values(),
                open[row].cast_unsigned(),
                leads.value(row),
                |other| {
                    if shown.value(row) {
                        let estimate = estimate(other.agreeing, values, self.value_bits);
                        rows.push_edge(cells[row], name, other.name, estimate, other.similarity);
                    }
                },
            );
            let still_open = if leads.value(row) {
                0
            } else {
                unled.deciding.cast_signed()
            };
            let not_compared = uncompared[row] + unled.uncompared.cast_signed();
            if shown.value(row) && unled.deciding != 0 && (still_open != 0 || not_compared > 0) {
                rows.push_unled(cells[row], name, still_open, not_compared);
            }
        }
        rows.finish()
    }
}

fn flags<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a BooleanArray, String> {
    column(batch, name)?
        .as_boolean_opt()
        .ok_or_else(|| format!("Column `{name}` does not hold booleans. Cast it first."))
}

/// Edges and members without a similar leader: the first have another document, the second have counts.
#[derive(Default)]
struct Rows {
    cells: Int64Builder,
    documents: StringBuilder,
    others: StringBuilder,
    estimates: Float64Builder,
    similarities: Float64Builder,
    open: Int64Builder,
    uncompared: Int64Builder,
}

impl Rows {
    fn push_edge(&mut self, cell: i64, one: &str, other: &str, estimate: f64, similarity: f64) {
        self.cells.append_value(cell);
        self.documents.append_value(one.min(other));
        self.others.append_value(one.max(other));
        self.estimates.append_value(estimate);
        self.similarities.append_value(similarity);
        self.open.append_null();
        self.uncompared.append_null();
    }

    fn push_unled(&mut self, cell: i64, name: &str, open: i64, uncompared: i64) {
        self.cells.append_value(cell);
        self.documents.append_value(name);
        self.others.append_null();
        self.estimates.append_null();
        self.similarities.append_null();
        self.open.append_value(open);
        self.uncompared.append_value(uncompared);
    }

    fn finish(mut self) -> Result<RecordBatch, String> {
        RecordBatch::try_from_iter_with_nullable([
            ("cell", Arc::new(self.cells.finish()) as ArrayRef, false),
            ("left", Arc::new(self.documents.finish()), false),
            ("right", Arc::new(self.others.finish()), true),
            ("estimate", Arc::new(self.estimates.finish()), true),
            ("similarity", Arc::new(self.similarities.finish()), true),
            ("open", Arc::new(self.open.finish()), true),
            ("uncompared", Arc::new(self.uncompared.finish()), true),
        ])
        .map_err(|error| error.to_string())
    }
}

#[pymethods]
impl LargeBucketEdges {
    #[new]
    fn new(
        idf: PyArrowType<ArrayData>,
        value_bits: usize,
        limits: Vec<(f64, f64, bool)>,
        signatures: usize,
        bags: usize,
        neighbours: usize,
        held_bytes: usize,
    ) -> PyResult<Self> {
        let idf = table_bytes(idf.0).map_err(PyValueError::new_err)?;
        Weights::new(idf.values()).map_err(PyValueError::new_err)?;
        if limits.len() > MAX_THRESHOLDS {
            return Err(PyValueError::new_err(format!(
                "There are {} thresholds. Pass at most {MAX_THRESHOLDS}.",
                limits.len()
            )));
        }
        let bounds = Bounds {
            signatures,
            bags,
            neighbours,
            held_bytes,
        };
        let value_bits = checked_value_bits(value_bits).map_err(PyValueError::new_err)?;
        Ok(Self {
            idf,
            value_bits,
            limits,
            bounds,
            current: None,
            cell: Cell::new(value_bits, &[], bounds),
        })
    }

    fn add(&mut self, py: Python<'_>, batch: Batch) -> PyResult<Batch> {
        detached(py, || self.rows(&batch.0)).map(PyArrowType)
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<LargeBucketEdges>()
}
