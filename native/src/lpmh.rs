//! Levelled-Poisson MinHash: `k` values a bag whose rate of agreement is the weighted Jaccard.
//!
//! Each token is a Poisson process of darts on (weight, rank). Its weight axis is cut in geometric
//! levels, [0, b), [b, 2b), [2b, 4b), ...; in a level darts arrive by exponential steps of the rank, and
//! those at or above the token's weight are rejected. A dart falls in one of k buckets, and the value of a
//! bucket is the dart of the least rank. Two bags agree in a bucket exactly when that dart lies under both
//! weights, which has the probability sum min / sum max: exact for any real weights, without a vocabulary.
//! A composition of TreeMinHash (Ertl) and of the bucket assignment of DartMinHash (Christiani 2020).
//!
//! One 64-bit hash an arrival gives its rank (32 bits), its weight (20) and its bucket (12). Ranks are
//! sought below a limit that is raised until no bucket is empty; the result does not depend on it. Nothing
//! but IEEE additions, multiplications and our own logarithm touches a rank, so the bits are the same on
//! every machine. The cost is O(n levels + k ln k) for n distinct tokens.

use crate::hash::{mix, seeded, word};
use crate::ln::{exponential, ln};

/// Width of the first level: about the lower quartile of tf-idf weights; eight times off costs a third.
const FIRST: f64 = 2.0;
const LEVELS: usize = 32;
pub const HEAVIEST: f64 = (1u64 << 30) as f64;

/// The lower bound of a level and its width.
#[inline]
fn level(index: usize) -> (f64, f64) {
    match index {
        0 => (0.0, FIRST),
        _ => {
            let lower = FIRST * (1u64 << (index - 1)) as f64;
            (lower, lower)
        }
    }
}

/// Throws the darts of bags into `values` buckets; keeps its buffers from one bag to the next.
pub struct Sketcher {
    values: usize,
    seed: u64,
    ranks: Vec<f64>,
    darts: Vec<u64>,
}

impl Sketcher {
    /// `values` is a power of two up to 4096.
    pub fn new(values: usize, seed: u64) -> Self {
        Self {
            values,
            seed: seeded(seed),
            ranks: vec![0.0; values],
            darts: vec![0; values],
        }
    }

    /// The dart of the least rank in each bucket; `None` for an empty bag.
    ///
    /// Weights lie in [1/64, HEAVIEST]; tokens are distinct, in any order.
    pub fn sketch(&mut self, tokens: &[u64], weights: &[f64]) -> Option<&[u64]> {
        if tokens.is_empty() {
            return None;
        }
        let (total, k) = (weights.iter().sum::<f64>(), self.values as f64);
        Some(self.sketch_below(tokens, weights, k * (ln(k) + 3.0) / total))
    }

    fn sketch_below(&mut self, tokens: &[u64], weights: &[f64], limit: f64) -> &[u64] {
        let mut limit = limit;
        while !self.throw(tokens, weights, limit) {
            limit *= 1.5;
        }
        &self.darts
    }

    /// Throws the darts of ranks below `limit`; false if a bucket stayed empty.
    fn throw(&mut self, tokens: &[u64], weights: &[f64], limit: f64) -> bool {
        self.ranks.fill(limit);
        self.darts.fill(u64::MAX);
        let mut filled = 0;
        let mut certainly_empty = [0u64; LEVELS];
        for (index, threshold) in certainly_empty.iter_mut().enumerate() {
            // A first hash below this is beyond the limit. The margin keeps the C library's `exp` from deciding.
            let share = (-(level(index).1 * limit)).exp() * (1.0 - 1e-9);
            *threshold = ((share * 4_294_967_296.0) as u64).saturating_sub(1);
        }
        for (&token, &weight) in tokens.iter().zip(weights) {
            let token = token ^ self.seed;
            for (index, threshold) in certainly_empty.iter().enumerate() {
                let (lower, width) = level(index);
                if lower >= weight {
                    break;
                }
                let mut hash = mix(token, index as u64);
                if hash >> 32 < *threshold {
                    continue;
                }
                let accepted = ((weight - lower) / width * f64::from(1 << 20)).min(f64::from(1 << 20)) as u64;
                let per_width = 1.0 / width; // exact: widths are powers of two
                let mut rank = 0.0;
                let mut arrival = 0u64;
                loop {
                    rank += exponential((hash >> 32) as u32) * per_width;
                    if rank >= limit {
                        break;
                    }
                    if (hash >> 12) & 0xf_ffff < accepted {
                        let bucket = ((hash & 0xfff) as usize * self.values) >> 12;
                        let best = self.ranks[bucket];
                        // Equal ranks are rare but real: the dart decides, not the order of the tokens.
                        if rank < best || (rank == best && hash < self.darts[bucket]) {
                            filled += usize::from(best == limit);
                            self.ranks[bucket] = rank;
                            self.darts[bucket] = hash;
                        }
                    }
                    arrival += 1;
                    hash = word(hash ^ token, arrival);
                }
            }
        }
        filled == self.values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_does_not_change_the_darts() {
        for n in [1, 2, 30, 500u64] {
            let tokens: Vec<u64> = (0..n).map(|i| mix(i, 2)).collect();
            let weights: Vec<f64> = (0..n).map(|i| 0.5 + (mix(i, 3) % 1000) as f64 / 70.0).collect();
            let mut sketcher = Sketcher::new(128, 3);
            let expected = sketcher.sketch(&tokens, &weights).map(<[u64]>::to_vec).unwrap();
            let total: f64 = weights.iter().sum();
            for factor in [0.01, 0.7, 1.3, 4.0] {
                let limit = factor * 128.0 * 8.0 / total;
                assert_eq!(sketcher.sketch_below(&tokens, &weights, limit), expected);
            }
        }
    }
}
