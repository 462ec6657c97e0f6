//! Fewer sequences than best-fit decreasing needs, by filling each to its last token.
//!
//! Best-fit decreasing spends the short pieces on gaps of a few tokens that it could have avoided, runs out
//! of them, and leaves gaps that add up to sequences (`make bench NAME=packing` counts them against the
//! bound). This algorithm fills one sequence after another, the longest piece first, and chooses its end exactly:
//!
//! 1. a piece of just the free length, else
//! 2. two pieces of just the free length together, as equal as possible, so that short ones are kept, else
//! 3. the longest piece that fits, and again from 1.
//!
//! A pair of lengths `a + b = free` is sought among 64 lengths at once: the set of lengths and its mirror image,
//! shifted against each other, have both bits set at `a`.
//!
//! ```text
//! lengths    . . a . . . . b . .     bit l: a piece of length l is left
//! mirror     . . b . . . . a . .     the same from the other end, shifted so that b is at free - b
//! ```

use super::amounts::ByAmount;
use super::best_fit::{NOT_PLACED, best_fit_decreasing};

/// Words of the set of lengths searched for a pair: 16,384 lengths, so that long sequences stay cheap.
const PAIR_WORDS: usize = 256;

/// The sequence of every piece (`NOT_PLACED` for length zero) and the number of sequences.
///
/// No length may exceed `capacity`; sequences are numbered in the order in which they were opened. Where
/// best-fit decreasing, which is faster, needs no more sequences, its result is returned.
pub fn fewest_sequences(lengths: &[u32], capacity: u32) -> (Vec<u32>, u32) {
    let best_fit = best_fit_decreasing(lengths, capacity);
    let tokens: u64 = lengths.iter().map(|&length| u64::from(length)).sum();
    if u64::from(best_fit.1) == tokens.div_ceil(u64::from(capacity)) {
        return best_fit;
    }
    let exact = exact_fit(lengths, capacity);
    if exact.1 < best_fit.1 { exact } else { best_fit }
}

/// The steps above, even where best-fit decreasing needs fewer sequences.
fn exact_fit(lengths: &[u32], capacity: u32) -> (Vec<u32>, u32) {
    let mut left = Pieces::new(lengths, capacity);
    let mut sequences = vec![NOT_PLACED; lengths.len()];
    let mut n_sequences = 0;
    while let Some(first) = left.longest(capacity) {
        let mut free = capacity - first;
        sequences[left.take(first) as usize] = n_sequences;
        while let Some(next) = left.longest(free) {
            let longer = if next < free { left.pair(free, next) } else { None };
            let next = longer.unwrap_or(next);
            sequences[left.take(next) as usize] = n_sequences;
            free -= next;
        }
        n_sequences += 1;
    }
    (sequences, n_sequences)
}

/// The pieces without a sequence, by length.
struct Pieces {
    capacity: u32,
    /// Pieces by how much shorter than a sequence they are: the mirror of `lengths`.
    shortfalls: ByAmount,
    lengths: Vec<u64>,
    counts: Vec<u32>,
}

impl Pieces {
    fn new(lengths: &[u32], capacity: u32) -> Self {
        let mut pieces = Pieces {
            capacity,
            shortfalls: ByAmount::new(capacity),
            lengths: vec![0; capacity as usize / 64 + 1],
            counts: vec![0; capacity as usize + 1],
        };
        for (piece, &length) in lengths.iter().enumerate().rev().filter(|(_, l)| **l > 0) {
            pieces.shortfalls.insert(piece as u32, capacity - length);
            pieces.lengths[length as usize / 64] |= 1 << (length % 64);
            pieces.counts[length as usize] += 1;
        }
        pieces
    }

    /// The greatest length of at most `limit`.
    fn longest(&self, limit: u32) -> Option<u32> {
        Some(self.capacity - self.shortfalls.least(self.capacity - limit)?)
    }

    /// The longer of the two lengths nearest to each other that sum to `sum`, none above `longest`.
    fn pair(&self, sum: u32, longest: u32) -> Option<u32> {
        let half = sum.div_ceil(2) as usize;
        let shift = (self.capacity - sum) as usize; // the shortfall of `sum - a` is `a + shift`
        let last = (longest as usize / 64).min(half / 64 + PAIR_WORDS);
        for word in half / 64..=last {
            let mut both = self.lengths[word] & self.shortfalls.bits(word * 64 + shift);
            if word == half / 64 {
                both &= !0 << (half % 64);
                let twice = half * 2 == sum as usize;
                if twice && self.counts[half] < 2 {
                    both &= !(1 << (half % 64));
                }
            }
            if both != 0 {
                return Some((word * 64) as u32 + both.trailing_zeros());
            }
        }
        None
    }

    /// Remove the first piece of `length`, which some piece has.
    fn take(&mut self, length: u32) -> u32 {
        let piece = self.shortfalls.take(self.capacity - length);
        self.counts[length as usize] -= 1;
        if self.counts[length as usize] == 0 {
            self.lengths[length as usize / 64] &= !(1 << (length % 64));
        }
        piece
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lengths_and_capacity(most: u32, n: usize) -> impl Strategy<Value = (u32, Vec<u32>)> {
        (1..most).prop_flat_map(move |c| (Just(c), prop::collection::vec(0..=c, 0..n)))
    }

    proptest! {
        #[test]
        fn no_sequence_overflows_and_none_is_empty((capacity, lengths) in lengths_and_capacity(9_000, 400)) {
            let (sequences, n) = exact_fit(&lengths, capacity);
            let mut used = vec![0u64; n as usize];
            for (&length, &sequence) in lengths.iter().zip(&sequences) {
                prop_assert_eq!(length == 0, sequence == NOT_PLACED);
                if length > 0 {
                    used[sequence as usize] += u64::from(length);
                }
            }
            prop_assert!(used.iter().all(|&u| 0 < u && u <= u64::from(capacity)));
        }

        #[test]
        fn a_pair_is_found_exactly_where_there_is_one(
            (capacity, lengths) in lengths_and_capacity(300, 40), share in 0.0f64..1.0
        ) {
            let sum = (f64::from(capacity) * share) as u32;
            let left = Pieces::new(&lengths, capacity);
            let by_trial = (0..lengths.len())
                .flat_map(|i| (0..i).map(move |j| (i, j)))
                .filter(|&(i, j)| lengths[i] > 0 && lengths[j] > 0 && lengths[i] + lengths[j] == sum)
                .map(|(i, j)| lengths[i].max(lengths[j]))
                .min();
            prop_assert_eq!(left.pair(sum, capacity), by_trial);
        }

        #[test]
        fn there_are_never_more_sequences_than_best_fit_decreasing_needs(
            (capacity, lengths) in lengths_and_capacity(100, 200)
        ) {
            prop_assert!(fewest_sequences(&lengths, capacity).1 <= best_fit_decreasing(&lengths, capacity).1);
        }
    }

    #[test]
    fn a_pair_saves_a_sequence_that_best_fit_decreasing_needs() {
        // Best-fit decreasing: 44 | 333 | 3; exactly: 4 33 | 4 33.
        let lengths = [4, 4, 3, 3, 3, 3];
        assert_eq!(best_fit_decreasing(&lengths, 10).1, 3);
        assert_eq!(fewest_sequences(&lengths, 10).1, 2);
    }
}
