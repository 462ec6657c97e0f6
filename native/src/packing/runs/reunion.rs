//! Step 3 of a chunk's plan: join pieces that depend on each other, the best gain for their sizes first, as far
//! as the sequences suffice.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use crate::packing::chunk::{Chunk, root, unite};
use crate::packing::pieces::full_chunks;

/// Step 3: labels after joining as many pieces as fit into `most_sequences`, those of full chunks included.
pub(super) fn reunite(chunk: &Chunk, labels: &[u32], most_sequences: u64) -> Vec<u32> {
    let merges = merges(chunk, labels);
    let whole: u64 = chunk
        .lengths
        .iter()
        .map(|&length| full_chunks(length, chunk.capacity))
        .sum();
    let allowed = most_sequences
        .saturating_sub(whole)
        .max(u64::from(chunk.fit(labels).1));
    let after = |n_merges: usize| -> Vec<u32> {
        let mut parents: Vec<u32> = (0..chunk.n_documents() as u32).collect();
        for &(a, b) in &merges[..n_merges] {
            unite(&mut parents, a, b);
        }
        labels.iter().map(|&label| root(&mut parents, label)).collect()
    };
    let (mut low, mut high) = (0, merges.len());
    while low < high {
        let middle = low.midpoint(high + 1);
        if u64::from(chunk.fit(&after(middle)).1) <= allowed {
            low = middle
        } else {
            high = middle - 1
        }
    }
    after(low)
}

/// Possible joins of two pieces that fit a sequence, best first: most dependencies squared over the product of
/// the sizes. Of two joined pieces the one with more neighbours keeps its label.
pub(super) fn merges(chunk: &Chunk, labels: &[u32]) -> Vec<(u32, u32)> {
    let mut sizes = chunk.sizes(labels);
    let mut neighbours: Vec<BTreeMap<u32, u32>> = vec![BTreeMap::new(); chunk.n_documents()];
    for &(dependent, dependency) in &chunk.edges {
        let (a, b) = (labels[dependent as usize], labels[dependency as usize]);
        if a != b {
            *neighbours[a as usize].entry(b).or_default() += 1;
            *neighbours[b as usize].entry(a).or_default() += 1;
        }
    }
    // Positive floats have the order of their bits.
    let gain = |sizes: &[u32], a: u32, b: u32, edges: u32| -> u64 {
        (f64::from(edges).powi(2) / (f64::from(sizes[a as usize]) * f64::from(sizes[b as usize]))).to_bits()
    };
    let fits = |sizes: &[u32], a: u32, b: u32| {
        u64::from(sizes[a as usize]) + u64::from(sizes[b as usize]) <= u64::from(chunk.capacity)
    };
    let mut heap = BinaryHeap::new();
    for (a, edges_of) in neighbours.iter().enumerate() {
        let a = a as u32;
        for (&b, &edges) in edges_of.range(a + 1..) {
            if fits(&sizes, a, b) {
                heap.push((gain(&sizes, a, b, edges), Reverse((a, b))));
            }
        }
    }
    let mut merges = Vec::new();
    while let Some((bits, Reverse((a, b)))) = heap.pop() {
        let Some(&edges) = neighbours[a as usize].get(&b) else {
            continue;
        };
        if !fits(&sizes, a, b) {
            continue;
        }
        // A join whose pieces have grown is worth less now; a join worth more was pushed again.
        let now = gain(&sizes, a, b, edges);
        if now < bits {
            heap.push((now, Reverse((a, b))));
            continue;
        }
        let (a, b) = if neighbours[a as usize].len() < neighbours[b as usize].len() {
            (b, a)
        } else {
            (a, b)
        };
        merges.push((a, b));
        sizes[a as usize] += sizes[b as usize];
        neighbours[a as usize].remove(&b);
        for (c, edges) in std::mem::take(&mut neighbours[b as usize]) {
            if c == a {
                continue;
            }
            neighbours[c as usize].remove(&b);
            let both = neighbours[a as usize].get(&c).copied().unwrap_or(0) + edges;
            neighbours[a as usize].insert(c, both);
            neighbours[c as usize].insert(a, both);
            if fits(&sizes, a, c) {
                heap.push((gain(&sizes, a, c, both), Reverse((a.min(c), a.max(c)))));
            }
        }
    }
    merges
}
