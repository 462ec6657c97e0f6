//! Candidate pairs: which members of a bucket look alike enough to be compared exactly.
//!
//! A bucket's members come in order of priority, best first. In a bucket of up to `pair_bucket` members
//! every pair is looked at. A larger one is no clique: its members gather around leaders. A member is
//! paired with each leader it looks like and with the first `neighbours` followers of the first such
//! leader; one that looks like no leader becomes one. So a bucket of m members makes O(m) pairs, and a
//! member stays joined to the best of its kind, those that a rule of priorities keeps. At most
//! `MAX_LEADERS` kinds are told apart in a bucket; what lies beyond them met there by chance, and is left
//! to the other bands.

use std::sync::Arc;

use arrow_array::builder::{Float64Builder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_pyarrow::PyArrowType;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::jaccard::{estimate, matches};
use crate::strings::{Binaries, column, string_column};

const MAX_LEADERS: usize = 1024;

/// What makes a pair of a bucket a candidate.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Values that two signatures must agree in.
    pub min_matches: usize,
    /// Members up to which a bucket gives all its pairs.
    pub pair_bucket: usize,
    /// Followers that a member of a larger bucket is compared with, besides leaders.
    pub neighbours: usize,
}

impl Limits {
    /// The least number of agreeing values whose estimate reaches `min_estimate`.
    pub fn matches_for(min_estimate: f64, values: usize) -> usize {
        (0..=values)
            .find(|&count| estimate(count, values) >= min_estimate)
            .unwrap_or(values + 1)
    }
}

/// Calls `emit(i, j, matches)` with i < j for the candidate pairs of one bucket's signatures.
pub fn bucket_pairs(signatures: &[&[u8]], limits: Limits, mut emit: impl FnMut(usize, usize, usize)) {
    let alike = |i: usize, j: usize| {
        let agreeing = matches(signatures[i], signatures[j]);
        (agreeing >= limits.min_matches).then_some(agreeing)
    };
    if signatures.len() <= limits.pair_bucket {
        for j in 1..signatures.len() {
            for i in 0..j {
                if let Some(agreeing) = alike(i, j) {
                    emit(i, j, agreeing);
                }
            }
        }
        return;
    }
    let mut leaders: Vec<(usize, Vec<usize>)> = Vec::new();
    for j in 0..signatures.len() {
        let mut led = false;
        for (leader, followers) in &mut leaders {
            let Some(agreeing) = alike(*leader, j) else {
                continue;
            };
            emit(*leader, j, agreeing);
            if !led {
                led = true;
                for &follower in followers.iter() {
                    if let Some(agreeing) = alike(follower, j) {
                        emit(follower, j, agreeing);
                    }
                }
                if followers.len() < limits.neighbours {
                    followers.push(j);
                }
            }
        }
        if !led && leaders.len() < MAX_LEADERS {
            leaders.push((j, Vec::new()));
        }
    }
}

/// (left, right, estimate) with left < right for the rows (bucket, doc_id, signature) of whole buckets.
fn candidates(
    batch: &RecordBatch,
    min_estimate: f64,
    pair_bucket: usize,
    neighbours: usize,
) -> Result<RecordBatch, String> {
    let buckets = column(batch, "bucket")?
        .as_primitive_opt::<Int64Type>()
        .ok_or("`bucket` is no int64 column. Cast it first.")?
        .values();
    let names = string_column(batch, "doc_id")?;
    let signatures = Binaries::new(column(batch, "signature")?, "signature")?;
    let values = signatures.get(0).map_or(0, <[u8]>::len);
    let limits = Limits {
        min_matches: Limits::matches_for(min_estimate, values),
        pair_bucket,
        neighbours,
    };
    let (mut left, mut right) = (StringBuilder::new(), StringBuilder::new());
    let mut estimates = Float64Builder::new();
    let mut start = 0;
    for members in buckets.chunk_by(|a, b| a == b) {
        let rows = start..start + members.len();
        start = rows.end;
        let mut of_bucket = Vec::with_capacity(members.len());
        let mut name_of = Vec::with_capacity(members.len());
        for row in rows {
            let signature = signatures.get(row).unwrap_or_default();
            if signature.len() != values {
                return Err(format!(
                    "Signatures of {values} and {} values meet in one group. Sign all its documents alike.",
                    signature.len()
                ));
            }
            of_bucket.push(signature);
            name_of.push(names.required(row, "doc_id")?);
        }
        bucket_pairs(&of_bucket, limits, |i, j, agreeing| {
            left.append_value(name_of[i].min(name_of[j]));
            right.append_value(name_of[i].max(name_of[j]));
            estimates.append_value(estimate(agreeing, values));
        });
    }
    RecordBatch::try_from_iter_with_nullable([
        ("left", Arc::new(left.finish()) as ArrayRef, false),
        ("right", Arc::new(right.finish()) as ArrayRef, false),
        ("estimate", Arc::new(estimates.finish()) as ArrayRef, false),
    ])
    .map_err(|error| error.to_string())
}

#[pyfunction]
fn candidate_pairs(
    py: Python<'_>,
    batch: PyArrowType<RecordBatch>,
    min_estimate: f64,
    pair_bucket: usize,
    neighbours: usize,
) -> PyResult<PyArrowType<RecordBatch>> {
    py.detach(|| candidates(&batch.0, min_estimate, pair_bucket, neighbours))
        .map(PyArrowType)
        .map_err(PyValueError::new_err)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(candidate_pairs, module)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pairs(signatures: &[Vec<u8>], limits: Limits) -> Vec<(usize, usize, usize)> {
        let slices: Vec<&[u8]> = signatures.iter().map(Vec::as_slice).collect();
        let mut found = Vec::new();
        bucket_pairs(&slices, limits, |i, j, agreeing| found.push((i, j, agreeing)));
        found
    }

    fn limits(pair_bucket: usize) -> Limits {
        Limits {
            min_matches: 12,
            pair_bucket,
            neighbours: 4,
        }
    }

    fn cases() -> impl Strategy<Value = Vec<Vec<u8>>> {
        let noise = proptest::collection::vec(prop_oneof![4 => Just(0u8), 1 => 1u8..9], 16);
        proptest::collection::vec((0u8..3, noise), 0..60).prop_map(|members| {
            let add = |(kind, noise): (u8, Vec<u8>)| noise.iter().map(|n| n + 16 * kind).collect();
            members.into_iter().map(add).collect()
        })
    }

    proptest! {
        #[test]
        fn a_small_bucket_gives_every_alike_pair(signatures in cases()) {
            let mut expected = Vec::new();
            for j in 0..signatures.len() {
                for i in 0..j {
                    let agreeing = signatures[i].iter().zip(&signatures[j]).filter(|(a, b)| a == b).count();
                    if agreeing >= 12 {
                        expected.push((i, j, agreeing));
                    }
                }
            }
            prop_assert_eq!(pairs(&signatures, limits(60)), expected);
        }

        #[test]
        fn a_large_bucket_joins_each_member_to_a_leader_and_gives_few_pairs(signatures in cases()) {
            let all = pairs(&signatures, limits(usize::MAX));
            let few = pairs(&signatures, limits(0));
            prop_assert!(few.iter().all(|pair| all.contains(pair)));
            let mut unled: Vec<usize> = (0..signatures.len()).collect();
            unled.retain(|&j| few.iter().all(|pair| pair.1 != j));
            for &i in &unled {
                prop_assert!(unled.iter().all(|&j| !all.iter().any(|pair| (pair.0, pair.1) == (i, j))));
            }
            prop_assert!(few.len() <= signatures.len() * (unled.len() + 4));
        }
    }

    #[test]
    fn many_copies_make_few_pairs() {
        let copies = vec![vec![7u8; 16]; 2000];
        assert!(pairs(&copies, limits(64)).len() <= 2000 * 5);
    }

    #[test]
    fn the_least_matches_reach_the_least_estimate() {
        let least = Limits::matches_for(0.7, 256);
        assert!(estimate(least, 256) >= 0.7 && estimate(least - 1, 256) < 0.7);
        assert_eq!(Limits::matches_for(0.0, 256), 0);
        assert_eq!(Limits::matches_for(1.1, 256), 257);
    }
}
