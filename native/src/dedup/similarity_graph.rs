//! The similarity graph of whole components: numbered documents, best first, and the edges between them.

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use rustc_hash::FxHashMap;

use super::strings::{column, string_column};

/// An edge between two vertices, given by their positions.
#[derive(Clone, Copy, Debug)]
pub struct Edge {
    pub left: u32,
    pub right: u32,
    pub similarity: f64,
}

/// The neighbours of every vertex with their similarities, in one vector.
pub struct Neighbours {
    starts: Vec<usize>,
    others: Vec<(u32, f64)>,
}

impl Neighbours {
    /// The neighbours of `n` vertices.
    pub fn new(n: usize, edges: &[Edge]) -> Self {
        let directed = || {
            edges
                .iter()
                .flat_map(|e| [(e.left, e.right, e.similarity), (e.right, e.left, e.similarity)])
        };
        let mut starts = vec![0usize; n + 1];
        for (from, _, _) in directed() {
            starts[from as usize + 1] += 1;
        }
        for i in 0..n {
            starts[i + 1] += starts[i];
        }
        let mut free = starts.clone();
        let mut others = vec![(0u32, 0f64); 2 * edges.len()];
        for (from, to, similarity) in directed() {
            others[free[from as usize]] = (to, similarity);
            free[from as usize] += 1;
        }
        Self { starts, others }
    }

    /// Number of vertices.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// (neighbour, similarity) of one vertex.
    pub fn of(&self, vertex: usize) -> &[(u32, f64)] {
        &self.others[self.starts[vertex]..self.starts[vertex + 1]]
    }
}

/// For each of `n` vertices, the best vertex of its connected component, by union-find.
pub fn best_of_component(n: usize, edges: &[Edge]) -> Vec<u32> {
    fn root(parents: &mut [u32], mut vertex: u32) -> u32 {
        while parents[vertex as usize] != vertex {
            parents[vertex as usize] = parents[parents[vertex as usize] as usize];
            vertex = parents[vertex as usize];
        }
        vertex
    }
    let mut parents: Vec<u32> = (0..n as u32).collect();
    for edge in edges {
        let left = root(&mut parents, edge.left);
        let right = root(&mut parents, edge.right);
        parents[left.max(right) as usize] = left.min(right);
    }
    (0..n as u32).map(|vertex| root(&mut parents, vertex)).collect()
}

/// Documents as (row, id), best first, and the edges between their positions.
pub type Graph<'a> = (Vec<(usize, &'a str)>, Vec<Edge>);

/// The documents and the edges of `batch`, which holds whole components.
///
/// Rows are of two kinds: documents (`doc_id`, no `other`), the best of a component first, and edges
/// (`doc_id`, `other`, `similarity`).
pub fn graph(batch: &RecordBatch) -> Result<Graph<'_>, String> {
    let names = string_column(batch, "doc_id")?;
    let others = string_column(batch, "other")?;
    let similarities = column(batch, "similarity")?
        .as_primitive_opt::<Float64Type>()
        .ok_or("Column `similarity` is not float64. Cast it first.")?;

    let mut documents = Vec::new();
    let mut numbers: FxHashMap<&str, u32> = FxHashMap::default();
    for row in (0..names.len()).filter(|&row| others.get(row).is_none()) {
        let name = names.required(row, "doc_id")?;
        let number = u32::try_from(documents.len())
            .map_err(|_| "A batch has more than four billion documents. Decide fewer at once.")?;
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
