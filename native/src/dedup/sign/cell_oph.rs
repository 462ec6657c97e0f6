//! One-permutation hashing of integer cells: the fast signature for damped weights.
//!
//! A token of weight w has w unit cells. Its last cell may be partial, a share of 1/256 to 255/256, and counts
//! whole or not by a coin that all bags share. Every cell is thrown into one of k buckets, and the value of a
//! bucket is its least cell. Two bags agree in a bucket exactly when the least cell of their union lies in both,
//! with probability sum min / sum max. Further rounds throw all cells again with other hashes into the buckets
//! that are still empty (Dahlgaard, Knudsen and Thorup 2017), so small bags are unbiased too. One round samples
//! without replacement: the error is below sqrt(J (1 - J) / k).
//!
//! The cost is O(sum of weights + k ln k), so weights must be damped: (1 + ln tf) * idf gives some ten cells per
//! token. All arithmetic is on integers, so signatures are equal on every machine.

use crate::dedup::hash::{fold, seeded, word};

/// Heaviest weight of a token, because each cell costs time.
pub const HEAVIEST: f64 = 1024.0;
const PARTS: f64 = 256.0; // the parts of a cell
const EMPTY: u64 = u64::MAX;

/// Throws the cells of bags into `values` buckets; reuses its buffers.
pub struct Sketcher {
    seed: u64,
    /// A bucket is the highest bits of a hash; this is the number of the other bits.
    shift: u32,
    /// One random word per cell.
    cells: Vec<u64>,
    buckets: Vec<u64>,
    round: Vec<u64>,
}

impl Sketcher {
    /// `values` is a power of two, at least 2.
    pub fn new(values: usize, seed: u64) -> Self {
        Self {
            seed: seeded(seed),
            shift: u64::BITS - values.trailing_zeros(),
            cells: (0..=HEAVIEST as u64).map(|cell| word(!0, cell)).collect(),
            buckets: vec![EMPTY; values],
            round: vec![EMPTY; values],
        }
    }

    /// The least cell of each bucket; `None` for an empty bag.
    ///
    /// Weights lie in [1/64, HEAVIEST]; tokens are distinct, in any order.
    pub fn sketch(&mut self, tokens: &[u64], weights: &[f64]) -> Option<&[u64]> {
        if tokens.is_empty() {
            return None;
        }
        let (buckets, round) = (&mut self.buckets, &mut self.round);
        let bag = Bag {
            tokens,
            weights,
            cells: &self.cells,
            shift: self.shift,
        };
        buckets.fill(EMPTY);
        bag.throw(self.seed, |bucket, hash| {
            buckets[bucket] = hash.min(buckets[bucket])
        });
        let mut empty = buckets.iter().filter(|&&least| least == EMPTY).count();
        let mut filled = Vec::new();
        for number in 1.. {
            if empty == 0 {
                break;
            }
            // A round visits only the buckets it fills: a bag of one cell takes k ln k rounds.
            bag.throw(self.seed ^ number, |bucket, hash| {
                if buckets[bucket] == EMPTY && hash < round[bucket] {
                    if round[bucket] == EMPTY {
                        filled.push(bucket);
                    }
                    round[bucket] = hash;
                }
            });
            empty -= filled.len();
            for bucket in filled.drain(..) {
                buckets[bucket] = std::mem::replace(&mut round[bucket], EMPTY);
            }
        }
        Some(&self.buckets)
    }
}

/// The cells of a bag.
struct Bag<'a> {
    tokens: &'a [u64],
    weights: &'a [f64],
    cells: &'a [u64],
    shift: u32,
}

impl Bag<'_> {
    /// Throws every cell once, `into(bucket, hash)`; one hash in 2^64 is EMPTY.
    #[inline]
    fn throw(&self, state: u64, mut into: impl FnMut(usize, u64)) {
        for (&token, &weight) in self.tokens.iter().zip(self.weights) {
            let parts = (weight * PARTS + 0.5) as usize;
            let (whole, partial) = (parts >> 8, (parts & 255) as u64);
            let (first, second) = (word(token ^ state, 1), word(token ^ state, 2));
            for &cell in &self.cells[..whole] {
                let hash = fold(first ^ cell, second);
                into((hash >> self.shift) as usize, hash);
            }
            let hash = fold(first ^ self.cells[whole], second);
            if hash & 255 < partial {
                into((hash >> self.shift) as usize, hash);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the rounds one after another, each with its own buckets.
    fn round_by_round(tokens: &[u64], weights: &[f64], values: usize, seed: u64) -> Vec<u64> {
        let sketcher = Sketcher::new(values, seed);
        let bag = Bag {
            tokens,
            weights,
            cells: &sketcher.cells,
            shift: sketcher.shift,
        };
        let mut found = vec![EMPTY; values];
        for number in 0.. {
            let mut round = vec![EMPTY; values];
            bag.throw(sketcher.seed ^ number, |bucket, hash| {
                round[bucket] = hash.min(round[bucket]);
            });
            for (bucket, least) in found.iter_mut().zip(round) {
                if *bucket == EMPTY {
                    *bucket = least;
                }
            }
            if !found.contains(&EMPTY) {
                break;
            }
        }
        found
    }

    #[test]
    fn a_bucket_has_the_least_cell_of_the_first_round_that_fills_it() {
        for weights in [&[1.0 / 64.0][..], &[1.0], &[0.3, 2.7, 9.0], &[40.0; 30]] {
            let tokens: Vec<u64> = (0..weights.len() as u64).collect();
            let mut sketcher = Sketcher::new(32, 5);
            for _ in 0..2 {
                let found = sketcher.sketch(&tokens, weights).unwrap();
                assert_eq!(found, round_by_round(&tokens, weights, 32, 5));
            }
        }
    }
}
