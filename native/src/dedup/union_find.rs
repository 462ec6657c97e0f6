//! Connected components by union-find over document ids.
//!
//! A component's name is its least id, compared as text. Ids are interned once; links go to the least root and paths
//! are halved, so a step takes near-constant time and memory is linear in documents.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_pyarrow::PyArrowType;
use pyo3::prelude::*;
use rustc_hash::FxHashMap;
use xxhash_rust::xxh3::xxh3_128;

use super::python::{Batch, detached};
use super::strings::string_column;

/// The components of a graph that arrives edge by edge.
#[derive(Default)]
pub struct Components {
    numbers: FxHashMap<u128, u32>,
    names: String,
    ends: Vec<usize>,
    parents: Vec<u32>,
}

impl Components {
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn join(&mut self, left: &str, right: &str) -> Result<(), String> {
        let left = self.number(left)?;
        let right = self.number(right)?;
        let (left, right) = (self.root(left), self.root(right));
        if left != right {
            let (least, other) = if self.name(left) < self.name(right) {
                (left, right)
            } else {
                (right, left)
            };
            self.parents[other as usize] = least;
        }
        Ok(())
    }

    /// (id, name of its component) for every id seen, in order of arrival.
    pub fn labels(&mut self) -> Vec<(&str, &str)> {
        let n = self.len() as u32;
        let roots: Vec<u32> = (0..n).map(|node| self.root(node)).collect();
        (0..n)
            .zip(roots)
            .map(|(node, root)| (self.name(node), self.name(root)))
            .collect()
    }

    fn number(&mut self, name: &str) -> Result<u32, String> {
        let hash = xxh3_128(name.as_bytes());
        if let Some(&number) = self.numbers.get(&hash) {
            return Ok(number);
        }
        let number = u32::try_from(self.ends.len())
            .map_err(|_| "A task has more than four billion documents. Lower `ONE_TASK_EDGES`.".to_owned())?;
        self.numbers.insert(hash, number);
        self.names.push_str(name);
        self.ends.push(self.names.len());
        self.parents.push(number);
        Ok(number)
    }

    fn name(&self, node: u32) -> &str {
        let node = node as usize;
        let start = if node == 0 { 0 } else { self.ends[node - 1] };
        &self.names[start..self.ends[node]]
    }

    fn root(&mut self, mut node: u32) -> u32 {
        loop {
            let parent = self.parents[node as usize];
            if parent == node {
                return node;
            }
            let grandparent = self.parents[parent as usize];
            self.parents[node as usize] = grandparent;
            node = grandparent;
        }
    }
}

/// `UnionFind` of the Python module.
#[pyclass]
#[derive(Default)]
struct UnionFind(Components);

#[pymethods]
impl UnionFind {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn add(&mut self, py: Python<'_>, batch: Batch) -> PyResult<()> {
        detached(py, || {
            let left = string_column(&batch.0, "left")?;
            let right = string_column(&batch.0, "right")?;
            for row in 0..left.len() {
                self.0
                    .join(left.required(row, "left")?, right.required(row, "right")?)?;
            }
            Ok(())
        })
    }

    fn labels(&mut self, py: Python<'_>) -> PyResult<Batch> {
        detached(py, || {
            let labels = self.0.labels();
            let documents = StringArray::from_iter_values(labels.iter().map(|label| label.0));
            let components = StringArray::from_iter_values(labels.iter().map(|label| label.1));
            RecordBatch::try_from_iter_with_nullable([
                ("doc_id", Arc::new(documents) as ArrayRef, false),
                ("component", Arc::new(components) as ArrayRef, false),
            ])
            .map_err(|error| error.to_string())
        })
        .map(PyArrowType)
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<UnionFind>()
}
