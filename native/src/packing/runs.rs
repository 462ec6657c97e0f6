//! The plan of one chunk: the sequence of each piece of its documents.
//!
//! A document is *visible* to one that depends on it when it precedes it, whole, in the same sequence. Best-fit
//! over single documents fills sequences and hides nearly all dependencies; next-fit keeps some visible and
//! leaves much of the space empty. The plan fills sequences and keeps dependencies visible, in four steps:
//!
//! 1. **Runs**: the order of each repository is cut where the cuts hide the fewest dependencies
//!    (dynamic programming over the last cut). Next-fit's cuts are one of the choices, so at least as many
//!    dependencies are visible.
//! 2. **Fill**: every run is a piece for `fewest_sequences`. As few runs as possible, those with the fewest
//!    visible dependencies per token first, are split into the groups that their visible dependencies join
//!    (a document without any is a piece of its own), until there are no more sequences than if all runs were
//!    split. No visible dependency is lost.
//! 3. **Reunion**: sequences up to a given number may be spent to join pieces that depend on each other, those
//!    with the most dependencies for their sizes first.
//! 4. Inside a sequence the documents keep their order.
//!
//! `make bench NAME=packing` prints fill and visible dependencies of this plan beside next-fit's and
//! best-fit's, on real repositories.

use arrow_array::{Array, Int64Array, RecordBatch};
use arrow_data::ArrayData;
use arrow_pyarrow::PyArrowType;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::chunk::{Chunk, root, unite};
use super::pieces::{Piece, batch, checked_capacity, checked_lengths, int64, placements};

mod reunion;

/// The plan of a chunk: pieces by (sequence, document, offset). It has at most `most_sequences` sequences, or
/// as few as step 2 finds.
pub fn plan(chunk: &Chunk, most_sequences: u64) -> Vec<Piece> {
    let runs = runs(chunk);
    let labels = fill(chunk, &runs);
    let labels = reunion::reunite(chunk, &labels, most_sequences);
    place(chunk, &labels)
}

fn place(chunk: &Chunk, labels: &[u32]) -> Vec<Piece> {
    let (by_label, n_sequences) = chunk.fit(labels);
    let sequences: Vec<u32> = labels.iter().map(|&label| by_label[label as usize]).collect();
    placements(&chunk.lengths, chunk.capacity, &sequences, n_sequences)
}

/// Step 1: the first document of the run of each document.
fn runs(chunk: &Chunk) -> Vec<u32> {
    let n = chunk.n_documents();
    let mut labels = vec![0; n];
    let mut edges = chunk.edges.iter().peekable();
    for (k, &start) in chunk.starts.iter().enumerate() {
        let end = chunk.starts.get(k + 1).copied().unwrap_or(n);
        // best[i]: (visible, runs) of the documents before start + i; cut[i]: the begin of their last run.
        let mut best = vec![(0u32, 0u32); end - start + 1];
        let mut cut = vec![0usize; end - start + 1];
        // inside[j]: dependencies visible in a run from start + j to the current document.
        let mut inside = vec![0u32; end - start];
        let mut hits = vec![0u32; end - start];
        let mut first = start;
        let mut used = 0u64;
        for i in start..end {
            used += u64::from(chunk.rest[i]);
            while used > u64::from(chunk.capacity) {
                used -= u64::from(chunk.rest[first]);
                first += 1;
            }
            while let Some(&(_, dependency)) = edges.next_if(|e| e.0 as usize == i) {
                if dependency as usize >= first {
                    hits[dependency as usize - start] += 1;
                }
            }
            let mut visible = 0;
            let mut found: Option<((u32, u32), usize)> = None;
            for j in (first - start..=i - start).rev() {
                visible += std::mem::take(&mut hits[j]);
                inside[j] += visible;
                let value = (best[j].0 + inside[j], best[j].1 + 1);
                // If both are equal, the longer last run wins.
                if found.is_none_or(|(f, _)| value.0 > f.0 || (value.0 == f.0 && value.1 <= f.1)) {
                    found = Some((value, j));
                }
            }
            if let Some((value, j)) = found {
                best[i - start + 1] = value;
                cut[i - start + 1] = j;
            }
        }
        let mut last = end - start;
        while last > 0 {
            let from = cut[last];
            labels[start + from..start + last].fill((start + from) as u32);
            last = from;
        }
    }
    labels
}

/// Step 2: labels after splitting the fewest runs that give the fewest sequences.
fn fill(chunk: &Chunk, runs: &[u32]) -> Vec<u32> {
    let groups = joined(chunk, runs);
    let sizes = chunk.sizes(runs);
    let visible = chunk.visible(runs);
    let mut apart: Vec<u32> = (0..chunk.n_documents())
        .filter(|&i| groups[i] != runs[i])
        .map(|i| runs[i])
        .collect();
    apart.sort_unstable();
    apart.dedup();
    let density = |run: u32| f64::from(visible[run as usize]) / f64::from(sizes[run as usize].max(1));
    apart.sort_by(|&a, &b| density(a).total_cmp(&density(b)).then(a.cmp(&b)));
    let mut rank = vec![usize::MAX; chunk.n_documents()];
    for (position, &run) in apart.iter().enumerate() {
        rank[run as usize] = position;
    }
    let labels = |broken: usize| -> Vec<u32> {
        runs.iter()
            .zip(&groups)
            .map(|(&run, &group)| if rank[run as usize] < broken { group } else { run })
            .collect()
    };
    let fewest = chunk.fit(&labels(apart.len())).1;
    // The number of sequences is not strictly monotone in the runs split, so each candidate is checked itself.
    let (mut low, mut high) = (0, apart.len());
    while low < high {
        let middle = low.midpoint(high);
        if chunk.fit(&labels(middle)).1 <= fewest {
            high = middle
        } else {
            low = middle + 1
        }
    }
    labels(high)
}

/// For each document, the first document that visible dependencies of its run join to it.
fn joined(chunk: &Chunk, runs: &[u32]) -> Vec<u32> {
    let mut parents: Vec<u32> = (0..chunk.n_documents() as u32).collect();
    for &(dependent, dependency) in &chunk.edges {
        if runs[dependent as usize] == runs[dependency as usize] {
            unite(&mut parents, dependent, dependency);
        }
    }
    (0..chunk.n_documents() as u32)
        .map(|document| root(&mut parents, document))
        .collect()
}

fn checked_chunk(
    lengths: ArrayData,
    repositories: ArrayData,
    dependents: ArrayData,
    dependencies: ArrayData,
    sequence_length: i64,
) -> Result<Chunk, String> {
    let capacity = checked_capacity(sequence_length)?;
    let lengths = checked_lengths(&int64("lengths", lengths)?, capacity)?;
    let repositories = int64("repositories", repositories)?;
    let dependents = int64("dependents", dependents)?;
    let dependencies = int64("dependencies", dependencies)?;
    if repositories.len() != lengths.len() || repositories.null_count() > 0 {
        return Err(format!(
            "There are {} documents and {} repositories. Pass each document's repository number.",
            lengths.len(),
            repositories.len() - repositories.null_count()
        ));
    }
    if dependents.len() != dependencies.len() {
        return Err(format!(
            "There are {} dependents and {} dependencies. Pass them in pairs.",
            dependents.len(),
            dependencies.len()
        ));
    }
    let document = |array: &Int64Array, i: usize| -> Result<u32, String> {
        let index = array.value(i);
        if array.is_null(i) || index < 0 || index as usize >= lengths.len() {
            return Err(format!(
                "A dependency names document {index} of {}. Pass positions in `lengths`.",
                lengths.len()
            ));
        }
        Ok(index as u32)
    };
    let edges = (0..dependents.len())
        .map(|i| Ok((document(&dependents, i)?, document(&dependencies, i)?)))
        .collect::<Result<Vec<_>, String>>()?;
    Ok(Chunk::new(lengths, repositories.values(), &edges, capacity))
}

#[pyfunction]
fn plan_sequences(
    py: Python<'_>,
    lengths: PyArrowType<ArrayData>,
    repositories: PyArrowType<ArrayData>,
    dependents: PyArrowType<ArrayData>,
    dependencies: PyArrowType<ArrayData>,
    sequence_length: i64,
    most_sequences: u64,
) -> PyResult<PyArrowType<RecordBatch>> {
    py.detach(|| {
        let chunk = checked_chunk(
            lengths.0,
            repositories.0,
            dependents.0,
            dependencies.0,
            sequence_length,
        )?;
        batch(&plan(&chunk, most_sequences))
    })
    .map(PyArrowType)
    .map_err(PyValueError::new_err)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(plan_sequences, module)?)?;
    Ok(())
}

#[cfg(test)]
mod tests;
