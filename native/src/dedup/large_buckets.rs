//! The edges inside large buckets, whose members are compared without comparing all pairs.
//!
//! Members come in order of priority, best first. A member without a similar earlier leader becomes a leader; any
//! other follows the first similar leader, and gets an edge to every similar leader and to the similar ones among
//! that leader's first few followers. So m members and l leaders take m * l comparisons of signatures and O(m)
//! edges, where a clique would take m^2 / 2 of both. All decisive comparisons are exact, so the leaders are the
//! independent set that the keep rule finds among the members, and every other member has an edge to each similar
//! earlier leader. Followers matter where a document outside the bucket removes a leader: the first ones then
//! replace it. Each threshold of a sweep has its own leaders, because the leaders of a lower threshold omit pairs
//! on which a higher one depends.
//!
//! Leaders and their first followers are held in memory. `MAX_LEADERS` bounds both: beyond it, members without a
//! similar leader are not compared with each other.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::builder::{Float64Builder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch, UInt8Array};
use arrow_data::ArrayData;
use arrow_pyarrow::PyArrowType;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::agreement::{checked_value_bits, estimate, matches, matches_for};
use super::bag::Bag;
use super::jaccard::weighted_jaccard;
use super::python::{Batch, detached};
use super::strings::{Binaries, column, int64_column, string_column};
use super::weights::{Weights, table_bytes};

const MAX_LEADERS: usize = 4096;

/// A document with its signature and its weighted bag.
#[derive(Clone, Debug)]
pub struct Member {
    pub name: String,
    pub signature: Vec<u8>,
    pub tokens: Vec<u64>,
    pub weights: Vec<f64>,
}

impl Member {
    /// (number of values in which the signatures agree, exact similarity), if both reach their limits.
    fn similarity(&self, other: &Self, limits: Limits) -> Option<(usize, f64)> {
        let agreeing = matches(&self.signature, &other.signature, limits.value_bits);
        if agreeing < limits.min_matches {
            return None;
        }
        let similarity = weighted_jaccard(&self.tokens, &self.weights, &other.tokens, &other.weights);
        (similarity >= limits.threshold).then_some((agreeing, similarity))
    }
}

/// The conditions for an edge between two members.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bits of a signature's value.
    pub value_bits: usize,
    pub min_matches: usize,
    pub threshold: f64,
    /// Number of followers of its first leader with which a member is compared.
    pub neighbours: usize,
}

/// The leaders so far, each with its first followers.
#[derive(Default)]
pub struct Leaders {
    leaders: Vec<(Arc<Member>, Vec<Arc<Member>>)>,
}

impl Leaders {
    /// Adds the next best member; calls `emit(other, matches, similarity)` for each of its edges.
    pub fn add(&mut self, member: Arc<Member>, limits: Limits, mut emit: impl FnMut(&Member, usize, f64)) {
        let mut first = None;
        for (place, (leader, _)) in self.leaders.iter().enumerate() {
            if let Some((agreeing, similarity)) = leader.similarity(&member, limits) {
                emit(leader, agreeing, similarity);
                first = first.or(Some(place));
            }
        }
        let Some(place) = first else {
            if self.leaders.len() < MAX_LEADERS {
                self.leaders.push((member, Vec::new()));
            }
            return;
        };
        let followers = &mut self.leaders[place].1;
        for follower in followers.iter() {
            if let Some((agreeing, similarity)) = follower.similarity(&member, limits) {
                emit(follower, agreeing, similarity);
            }
        }
        if followers.len() < limits.neighbours {
            followers.push(member);
        }
    }
}

/// `LargeBucketEdges` of the Python module.
#[pyclass]
struct LargeBucketEdges {
    idf: UInt8Array,
    value_bits: usize,
    /// (least estimate, threshold) of each of `by_threshold`.
    limits: Vec<(f64, f64)>,
    neighbours: usize,
    cell: Option<i64>,
    /// The leaders of the current cell at each threshold.
    by_threshold: Vec<Leaders>,
}

impl LargeBucketEdges {
    fn edges(&mut self, batch: &RecordBatch) -> Result<RecordBatch, String> {
        let cells = int64_column(batch, "cell")?.values();
        let names = string_column(batch, "doc_id")?;
        let packed = Binaries::new(column(batch, "bag")?, "bag")?;
        let signatures = Binaries::new(column(batch, "signature")?, "signature")?;
        let weights = Weights::new(self.idf.values())?;
        let (mut left, mut right) = (StringBuilder::new(), StringBuilder::new());
        let (mut estimates, mut similarities) = (Float64Builder::new(), Float64Builder::new());
        for (row, &cell) in cells.iter().enumerate() {
            if self.cell.replace(cell) != Some(cell) {
                self.by_threshold = self.limits.iter().map(|_| Leaders::default()).collect();
            }
            let bag = Bag::unpacked(packed.get(row).unwrap_or_default())?;
            let mut member = Member {
                name: names.required(row, "doc_id")?.to_owned(),
                signature: signatures.get(row).unwrap_or_default().to_owned(),
                tokens: Vec::new(),
                weights: Vec::new(),
            };
            weights.of(&bag, &mut member.weights)?;
            member.tokens = bag.tokens;
            let (member, value_bits) = (Arc::new(member), self.value_bits);
            let values = member.signature.len() * 8 / value_bits;
            let mut found = BTreeMap::new();
            for (leaders, &(min_estimate, threshold)) in self.by_threshold.iter_mut().zip(&self.limits) {
                let limits = Limits {
                    value_bits,
                    min_matches: matches_for(min_estimate, values, value_bits),
                    threshold,
                    neighbours: self.neighbours,
                };
                leaders.add(Arc::clone(&member), limits, |other, agreeing, similarity| {
                    found.insert(other.name.clone(), (agreeing, similarity));
                });
            }
            for (other, (agreeing, similarity)) in found {
                left.append_value((&other).min(&member.name));
                right.append_value((&other).max(&member.name));
                estimates.append_value(estimate(agreeing, values, value_bits));
                similarities.append_value(similarity);
            }
        }
        RecordBatch::try_from_iter_with_nullable([
            ("left", Arc::new(left.finish()) as ArrayRef, false),
            ("right", Arc::new(right.finish()) as ArrayRef, false),
            ("estimate", Arc::new(estimates.finish()) as ArrayRef, false),
            ("similarity", Arc::new(similarities.finish()) as ArrayRef, false),
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
        limits: Vec<(f64, f64)>,
        neighbours: usize,
    ) -> PyResult<Self> {
        let idf = table_bytes(idf.0).map_err(PyValueError::new_err)?;
        Weights::new(idf.values()).map_err(PyValueError::new_err)?;
        Ok(Self {
            idf,
            value_bits: checked_value_bits(value_bits).map_err(PyValueError::new_err)?,
            limits,
            neighbours,
            cell: None,
            by_threshold: Vec::new(),
        })
    }

    fn add(&mut self, py: Python<'_>, batch: Batch) -> PyResult<Batch> {
        detached(py, || self.edges(&batch.0)).map(PyArrowType)
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<LargeBucketEdges>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dedup::keep_rule::{Keep, decisions};
    use crate::dedup::similarity_graph::Edge;
    use proptest::prelude::*;

    const LIMITS: Limits = Limits {
        value_bits: 8,
        min_matches: 0,
        threshold: 0.6,
        neighbours: 3,
    };

    /// Families of bags: a member differs from its family's first bag in some tokens.
    fn members() -> impl Strategy<Value = Vec<Member>> {
        let member = (0u64..3, proptest::collection::vec(0u64..12, 0..5));
        proptest::collection::vec(member, 0..60).prop_map(|members| {
            let of = |(number, (family, changed)): (usize, (u64, Vec<u64>))| {
                let mut tokens: BTreeMap<u64, f64> = (0..12).map(|t| (100 * family + t, 1.0)).collect();
                for token in changed {
                    tokens.remove(&(100 * family + token));
                    tokens.insert(1000 + 100 * number as u64 + token, 1.0);
                }
                let (tokens, weights) = tokens.into_iter().unzip();
                Member {
                    name: format!("{number}"),
                    signature: vec![0; 8],
                    tokens,
                    weights,
                }
            };
            members.into_iter().enumerate().map(of).collect()
        })
    }

    fn edge(left: usize, right: usize, similarity: f64) -> Edge {
        Edge {
            left: left as u32,
            right: right as u32,
            similarity,
        }
    }

    fn edges_by_leaders(members: &[Member], limits: Limits) -> Vec<Edge> {
        let (mut leaders, mut edges) = (Leaders::default(), Vec::new());
        for (number, member) in members.iter().enumerate() {
            leaders.add(Arc::new(member.clone()), limits, |other, _, similarity| {
                edges.push(edge(other.name.parse().unwrap(), number, similarity));
            });
        }
        edges
    }

    fn all_edges(members: &[Member]) -> Vec<Edge> {
        let mut edges = Vec::new();
        for j in 0..members.len() {
            for i in 0..j {
                if let Some((_, similarity)) = members[i].similarity(&members[j], LIMITS) {
                    edges.push(edge(i, j, similarity));
                }
            }
        }
        edges
    }

    proptest! {
        #[test]
        fn a_large_bucket_keeps_what_all_its_pairs_would_keep(members in members()) {
            let few = edges_by_leaders(&members, LIMITS);
            let all = all_edges(&members);
            for found in &few {
                prop_assert!(all.iter().any(|e| (e.left, e.right) == (found.left, found.right)));
            }
            let kept = |edges: &[Edge]| -> Vec<bool> {
                decisions(Keep::IndependentSet, members.len(), edges).iter().map(Option::is_none).collect()
            };
            prop_assert_eq!(kept(&few), kept(&all));
        }
    }

    #[test]
    fn many_near_copies_make_few_edges() {
        let copy = |number: u64| Member {
            name: number.to_string(),
            signature: vec![7; 8],
            tokens: (0..20).chain([1000 + number]).collect(),
            weights: vec![1.0; 21],
        };
        let members: Vec<Member> = (0..2000).map(copy).collect();
        let edges = edges_by_leaders(&members, LIMITS);
        assert!(edges.len() <= 4 * 2000);
        let kept = decisions(Keep::IndependentSet, 2000, &edges)
            .iter()
            .filter(|decision| decision.is_none())
            .count();
        assert_eq!(kept, 1);
    }

    #[test]
    fn members_with_unlike_signatures_are_not_compared() {
        let mut members: Vec<Member> = (0..2u8)
            .map(|number| Member {
                name: number.to_string(),
                signature: vec![number; 8],
                tokens: vec![1],
                weights: vec![1.0],
            })
            .collect();
        let limits = Limits {
            min_matches: 4,
            ..LIMITS
        };
        assert_eq!(edges_by_leaders(&members, limits).len(), 0);
        members[1].signature = vec![0, 0, 0, 0, 1, 1, 1, 1];
        assert_eq!(edges_by_leaders(&members, limits).len(), 1);
    }
}
