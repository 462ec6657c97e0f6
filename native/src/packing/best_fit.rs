//! The sequence of each piece of text, by best-fit decreasing.
//!
//! Pieces are placed from the longest to the shortest, each in the open sequence with the least free
//! space that still holds it (Ding et al., "Fewer Truncations Improve Language Modeling", 2024).
//!
//! Equal pieces are placed together: after a sequence takes one, its free space is still the least sufficient
//! one as long as it holds another. Ties go to the earlier piece.

use super::amounts::ByAmount;

/// The sequence of a piece of length zero.
pub const NOT_PLACED: u32 = u32::MAX;

/// The sequence of every piece (`NOT_PLACED` for length zero) and the number of sequences.
///
/// No length may exceed `capacity`; sequences are numbered in the order in which they were opened.
pub fn best_fit_decreasing(lengths: &[u32], capacity: u32) -> (Vec<u32>, u32) {
    let mut ends = vec![0u32; capacity as usize + 2];
    for &length in lengths {
        ends[length as usize] += 1;
    }
    let mut start = 0;
    for end in ends.iter_mut().rev() {
        let count = *end;
        *end = start;
        start += count;
    }
    // `ends[length]` starts where the pieces of that length begin, longest first, and moves to where they end.
    let mut by_length = vec![0u32; lengths.len()];
    for (piece, &length) in lengths.iter().enumerate() {
        let position = &mut ends[length as usize];
        by_length[*position as usize] = piece as u32;
        *position += 1;
    }
    let mut sequences = vec![NOT_PLACED; lengths.len()];
    let mut open = ByAmount::new(capacity); // sequences by free space
    let mut n_sequences = 0u32;
    let mut first = 0;
    while first < by_length.len() {
        let length = lengths[by_length[first] as usize];
        if length == 0 {
            break;
        }
        let end = ends[length as usize] as usize;
        while first < end {
            let (sequence, free) = open.take_least(length).unwrap_or_else(|| {
                n_sequences += 1;
                (n_sequences - 1, capacity)
            });
            let together = (end - first).min((free / length) as usize);
            for &piece in &by_length[first..first + together] {
                sequences[piece as usize] = sequence;
            }
            first += together;
            let left = free - together as u32 * length;
            if left > 0 {
                open.insert(sequence, left);
            }
        }
    }
    (sequences, n_sequences)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The number of sequences by a scan over all open ones.
    fn by_scan(lengths: &[u32], capacity: u32) -> usize {
        let mut order: Vec<u32> = lengths.iter().copied().filter(|&l| l > 0).collect();
        order.sort_unstable_by(|a, b| b.cmp(a));
        let mut free: Vec<u32> = Vec::new();
        for length in order {
            match free.iter_mut().filter(|f| **f >= length).min() {
                Some(f) => *f -= length,
                None => free.push(capacity - length),
            }
        }
        free.len()
    }

    fn is_valid(lengths: &[u32], capacity: u32, sequences: &[u32], n_sequences: u32) -> bool {
        let mut used = vec![0u64; n_sequences as usize];
        for (&length, &sequence) in lengths.iter().zip(sequences).filter(|(l, _)| **l > 0) {
            used[sequence as usize] += u64::from(length);
        }
        lengths
            .iter()
            .zip(sequences)
            .all(|(&l, &s)| (l == 0) == (s == NOT_PLACED))
            && used.iter().all(|&u| 0 < u && u <= u64::from(capacity))
    }

    proptest! {
        #[test]
        fn sequences_are_as_many_as_by_scan_and_none_overflows(
            (capacity, lengths) in (1u32..9000).prop_flat_map(|c| (Just(c), prop::collection::vec(0..=c, 0..300)))
        ) {
            let (sequences, n) = best_fit_decreasing(&lengths, capacity);
            prop_assert_eq!(n as usize, by_scan(&lengths, capacity));
            prop_assert!(is_valid(&lengths, capacity, &sequences, n));
        }
    }
}
