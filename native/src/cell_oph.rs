//! One-permutation hashing of integer cells: the fast signature for damped weights.
//!
//! A token of weight w is w unit cells; of its last, partial one it has a share of 1/256 to 255/256, and has
//! it whole or not by a coin that all bags share. Every cell is thrown into one of k buckets, and the value
//! of a bucket is its least cell. Two bags agree in a bucket exactly when the least cell of both lies in
//! both, which has the probability sum min / sum max. Buckets that stay empty are filled in further rounds,
//! in which all cells are thrown again with other hashes (Dahlgaard, Knudsen and Thorup 2017), so small bags
//! have no bias either. One round samples without replacement: the error is below sqrt(J (1 - J) / k).
//!
//! The cost is O(sum of weights + k ln k), so weights have to be damped: (1 + ln tf) * idf are some ten
//! cells a token. There are only integers, so the bits are the same on every machine.

use crate::hash::{fold, seeded, word};

/// Heaviest weight a token may have: its cells each cost time.
pub const HEAVIEST: f64 = 1024.0;
const PARTS: f64 = 256.0; // of a cell
const EMPTY: u64 = u64::MAX;

/// Throws the cells of bags into `values` buckets; keeps its buffers from one bag to the next.
pub struct Sketcher {
    seed: u64,
    /// A bucket is the highest bits of a hash: this many are not.
    shift: u32,
    /// A random word a cell.
    cells: Vec<u64>,
    buckets: Vec<u64>,
    round: Vec<u64>,
}

impl Sketcher {
    /// `values` is a power of two of two or more.
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
        self.buckets.fill(EMPTY);
        for number in 0.. {
            self.round.fill(EMPTY);
            self.throw(tokens, weights, number);
            let mut empty = 0;
            for (bucket, &found) in self.buckets.iter_mut().zip(&self.round) {
                if *bucket == EMPTY {
                    *bucket = found;
                    empty += usize::from(found == EMPTY);
                }
            }
            if empty == 0 {
                break;
            }
        }
        Some(&self.buckets)
    }

    /// Throws every cell once; a cell never hashes to EMPTY but once in 2^64.
    fn throw(&mut self, tokens: &[u64], weights: &[f64], round: u64) {
        let state = self.seed ^ round;
        for (&token, &weight) in tokens.iter().zip(weights) {
            let parts = (weight * PARTS + 0.5) as usize;
            let (whole, partial) = (parts >> 8, (parts & 255) as u64);
            let (first, second) = (word(token ^ state, 1), word(token ^ state, 2));
            for &cell in &self.cells[..whole] {
                let hash = fold(first ^ cell, second);
                let bucket = &mut self.round[(hash >> self.shift) as usize];
                *bucket = hash.min(*bucket);
            }
            let hash = fold(first ^ self.cells[whole], second);
            if hash & 255 < partial {
                let bucket = &mut self.round[(hash >> self.shift) as usize];
                *bucket = hash.min(*bucket);
            }
        }
    }
}
