//! One chunk of documents to pack, and labels that join them to pieces.

use super::exact_fit::fewest_sequences;
use super::pieces::{full_chunks, remainder};

/// Documents in order of (repository, position), and the dependencies between them.
#[derive(Debug)]
pub struct Chunk {
    pub capacity: u32,
    pub lengths: Vec<u64>,
    /// The tokens of each document after its full chunks.
    pub rest: Vec<u32>,
    /// The first document of each repository.
    pub starts: Vec<usize>,
    /// (dependent, dependency) of each dependency that can be visible.
    pub edges: Vec<(u32, u32)>,
}

impl Chunk {
    /// `repositories` changes its value where a repository begins; `edges` are (dependent, dependency).
    pub fn new(lengths: Vec<u64>, repositories: &[i64], edges: &[(u32, u32)], capacity: u32) -> Self {
        let rest: Vec<u32> = lengths
            .iter()
            .map(|&length| remainder(length, capacity))
            .collect();
        let starts = (0..lengths.len())
            .filter(|&i| i == 0 || repositories[i] != repositories[i - 1])
            .collect();
        let mut edges: Vec<(u32, u32)> = edges
            .iter()
            .copied()
            .filter(|&(dependent, dependency)| {
                dependency < dependent
                    && rest[dependent as usize] > 0
                    && rest[dependency as usize] > 0
                    && full_chunks(lengths[dependency as usize], capacity) == 0
            })
            .collect();
        edges.sort_unstable();
        edges.dedup();
        Chunk {
            capacity,
            lengths,
            rest,
            starts,
            edges,
        }
    }

    pub fn n_documents(&self) -> usize {
        self.lengths.len()
    }

    /// The sequence of each label, whose documents form one piece, and the number of sequences.
    pub fn fit(&self, labels: &[u32]) -> (Vec<u32>, u32) {
        fewest_sequences(&self.sizes(labels), self.capacity)
    }

    /// Tokens by label.
    pub fn sizes(&self, labels: &[u32]) -> Vec<u32> {
        let mut sizes = vec![0; self.n_documents()];
        for (&label, &length) in labels.iter().zip(&self.rest) {
            sizes[label as usize] += length;
        }
        sizes
    }

    /// Visible dependencies by label.
    pub fn visible(&self, labels: &[u32]) -> Vec<u32> {
        let mut visible = vec![0; self.n_documents()];
        for &(dependent, dependency) in &self.edges {
            if labels[dependent as usize] == labels[dependency as usize] {
                visible[labels[dependent as usize] as usize] += 1;
            }
        }
        visible
    }
}

/// The root of a document's set in a union-find over `parents`; halves the path.
pub fn root(parents: &mut [u32], mut document: u32) -> u32 {
    while parents[document as usize] != document {
        let above = parents[parents[document as usize] as usize];
        parents[document as usize] = above;
        document = above;
    }
    document
}

/// Join two sets. The smaller root stays, so that a label does not depend on the order of unions.
pub fn unite(parents: &mut [u32], a: u32, b: u32) {
    let (a, b) = (root(parents, a), root(parents, b));
    parents[a.max(b) as usize] = a.min(b);
}
