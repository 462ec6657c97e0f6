//! Levelled-Poisson MinHash: `k` values per bag whose rate of agreement is the weighted Jaccard.
//!
//! Each token is a Poisson process of darts on (weight, rank). Its weight axis has geometric levels, [0, b),
//! [b, 2b), [2b, 4b), ...; in a level, darts arrive by exponential steps of the rank, and darts at or above the
//! token's weight are rejected. A dart falls in one of k buckets, and the value of a bucket is its dart of the
//! least rank. Two bags agree in a bucket exactly when the least dart of their union lies under both weights, with
//! probability sum min / sum max: exact for any real weights, without a vocabulary. The scheme composes
//! TreeMinHash (Ertl) and the bucket assignment of DartMinHash (Christiani 2020).
//!
//! One 64-bit hash per arrival gives its rank (32 bits), its weight (20) and its bucket (12). Darts are thrown
//! below a limit of the rank that rises until no bucket is empty; the result does not depend on the limit's
//! steps. Only IEEE additions, multiplications and our own logarithm compute ranks, so signatures are equal on
//! every machine. The cost is O(n levels + k ln k) for n distinct tokens.
//!
//! Each dart's fate is a coin, and a mispredicted branch costs as much as a dart. So all processes throw in turns,
//! independent of each other, and loops write every candidate and advance only past the ones to keep.

use crate::dedup::hash::{mix, seeded, word};
use crate::dedup::ln::{exponential, ln};

/// Width of the first level: about the lower quartile of tf-idf weights. A width eight times off takes a third
/// longer.
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

/// Tokens that are started together.
const BLOCK: usize = 256;
/// With this few processes, turns gain nothing: each process continues alone.
const FEW: usize = 8;

/// One token in one level: its next dart, and the state of the darts after it.
#[derive(Clone, Copy)]
struct Process {
    rank: f64,
    hash: u64,
    token: u64,
    per_width: f64,
    /// A dart lies under the weight of the token if the lower half of its hash is below this number.
    accepted: u64,
    arrival: u64,
}

impl Process {
    /// Draws the hash of the next dart, from which `draw_rank` draws its rank.
    #[inline]
    fn draw_hash(&mut self) {
        self.arrival += 1;
        self.hash = word(self.hash ^ self.token, self.arrival);
    }

    #[inline]
    fn draw_rank(&mut self) {
        self.rank += exponential((self.hash >> 32) as u32) * self.per_width;
    }
}

/// The least dart of each bucket: the bits of its rank, then its hash.
///
/// Ranks are equal on rare occasions; then the hash decides, not the order of the tokens.
struct Buckets {
    least: Vec<u128>,
    /// Logarithm of the number of buckets.
    log2: u32,
}

const EMPTY: u128 = u128::MAX;

impl Buckets {
    fn new(values: usize) -> Self {
        Self {
            least: vec![EMPTY; 2 * values],
            log2: values.trailing_zeros(),
        }
    }

    /// Takes the next dart of `process`; rejected darts fall into the second half of the buckets, which nobody reads.
    #[inline]
    fn take(&mut self, process: &Process) {
        let hash = process.hash;
        let rejected = hash & 0xffff_ffff >= process.accepted;
        let bucket = (hash & 0xfff) as usize >> (12 - self.log2) | usize::from(rejected) << self.log2;
        let dart = u128::from(process.rank.to_bits()) << 64 | u128::from(hash);
        let least = &mut self.least[bucket];
        *least = dart.min(*least);
    }

    fn read(&self) -> &[u128] {
        &self.least[..1 << self.log2]
    }
}

/// Throws the darts of bags into `values` buckets; reuses its buffers.
pub struct Sketcher {
    seed: u64,
    buckets: Buckets,
    darts: Vec<u64>,
    processes: Vec<Process>,
    /// The processes with a dart below the limit.
    live: Vec<u32>,
}

impl Sketcher {
    /// `values` is a power of two up to 4096.
    pub fn new(values: usize, seed: u64) -> Self {
        Self {
            seed: seeded(seed),
            buckets: Buckets::new(values),
            darts: vec![0; values],
            processes: Vec::new(),
            live: Vec::new(),
        }
    }

    /// The dart of the least rank in each bucket; `None` for an empty bag.
    ///
    /// Weights lie in [1/64, HEAVIEST]; tokens are distinct, in any order.
    pub fn sketch(&mut self, tokens: &[u64], weights: &[f64]) -> Option<&[u64]> {
        if tokens.is_empty() {
            return None;
        }
        let (total, k) = (weights.iter().sum::<f64>(), self.darts.len() as f64);
        Some(self.sketch_by(tokens, weights, k / total))
    }

    /// The limit rises by `step`, which is expected to bring one dart per bucket.
    fn sketch_by(&mut self, tokens: &[u64], weights: &[f64], step: f64) -> &[u64] {
        self.buckets.least.fill(EMPTY);
        // k (ln k + c) darts fill every bucket with probability exp(-exp(-c)): .69 at c = 1, .98 at 4.
        let ln_k = ln(self.darts.len() as f64);
        let (mut limit, mut last) = (step * (ln_k + 1.0), step * (ln_k + 4.5));
        self.start(tokens, weights, last);
        loop {
            self.throw(limit);
            if !self.buckets.read().contains(&EMPTY) {
                break;
            }
            limit += step;
            if limit > last {
                last *= 2.0;
                self.start(tokens, weights, last); // throwing a dart again changes nothing
            }
        }
        for (dart, &least) in self.darts.iter_mut().zip(self.buckets.read()) {
            *dart = least as u64;
        }
        &self.darts
    }

    /// Starts the processes whose first dart may lie below `limit`: in a large bag, the processes of few tokens.
    fn start(&mut self, tokens: &[u64], weights: &[f64], limit: f64) {
        self.processes.clear();
        let mut heavier = [(0, 0.0); BLOCK];
        let mut first = [(0, 0, 0.0); BLOCK];
        for (tokens, weights) in tokens.chunks(BLOCK).zip(weights.chunks(BLOCK)) {
            for (entry, (&token, &weight)) in heavier.iter_mut().zip(tokens.iter().zip(weights)) {
                *entry = (token ^ self.seed, weight);
            }
            let mut n_heavier = tokens.len();
            for index in 0..LEVELS {
                if n_heavier == 0 {
                    break;
                }
                let (lower, width) = level(index);
                // A first hash below this number is beyond the limit. The margin covers the error of C's `exp`.
                let share = (-(width * limit)).exp() * (1.0 - 1e-9);
                let certainly_beyond = ((share * 4_294_967_296.0) as u64).saturating_sub(1);
                let (mut n_first, mut n_next) = (0, 0);
                for turn in 0..n_heavier {
                    let (token, weight) = heavier[turn];
                    let hash = mix(token, index as u64);
                    first[n_first] = (token, hash, weight);
                    n_first += usize::from(hash >> 32 >= certainly_beyond);
                    heavier[n_next] = (token, weight);
                    n_next += usize::from(weight > lower + width);
                }
                n_heavier = n_next;
                let per_width = 1.0 / width; // exact: widths are powers of two
                let started = first[..n_first].iter().map(|&(token, hash, weight)| {
                    let share = ((weight - lower) * per_width).min(1.0);
                    Process {
                        rank: exponential((hash >> 32) as u32) * per_width,
                        hash,
                        token,
                        per_width,
                        accepted: ((share * f64::from(1 << 20)) as u64) << 12,
                        arrival: 0,
                    }
                });
                self.processes.extend(started);
            }
        }
    }

    /// Throws the remaining darts below `limit`.
    fn throw(&mut self, limit: f64) {
        let (processes, buckets) = (&mut self.processes[..], &mut self.buckets);
        self.live.resize(processes.len(), 0);
        let live = &mut self.live[..];
        let mut n_live = 0;
        for (index, process) in processes.iter().enumerate() {
            live[n_live] = index as u32;
            n_live += usize::from(process.rank < limit);
        }
        while n_live > FEW {
            // Two short loops: the processor overlaps more of their iterations than of one long loop.
            for &index in &live[..n_live] {
                let process = &mut processes[index as usize];
                buckets.take(process);
                process.draw_hash();
            }
            let mut n_still = 0;
            for turn in 0..n_live {
                let index = live[turn];
                let process = &mut processes[index as usize];
                process.draw_rank();
                live[n_still] = index;
                n_still += usize::from(process.rank < limit);
            }
            n_live = n_still;
        }
        for &index in &live[..n_live] {
            let mut process = processes[index as usize];
            while process.rank < limit {
                buckets.take(&process);
                process.draw_hash();
                process.draw_rank();
            }
            processes[index as usize] = process;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_steps_of_the_limit_do_not_change_the_darts() {
        for n in [1, 2, 30, 500u64] {
            let tokens: Vec<u64> = (0..n).map(|i| mix(i, 2)).collect();
            let weights: Vec<f64> = (0..n).map(|i| 0.5 + (mix(i, 3) % 1000) as f64 / 70.0).collect();
            let mut sketcher = Sketcher::new(128, 3);
            let expected = sketcher.sketch(&tokens, &weights).map(<[u64]>::to_vec).unwrap();
            let total: f64 = weights.iter().sum();
            for factor in [0.01, 0.7, 1.3, 4.0] {
                let step = factor * 128.0 / total;
                assert_eq!(sketcher.sketch_by(&tokens, &weights, step), expected);
            }
        }
    }
}
