//! The bins of several groups of rows, on several threads.
//!
//! A group is a range of rows with bins of its own, so the result does not depend on the number of threads.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{panic, thread};

/// The bins of the rows of all groups, which follow each other, or the error of the first group that has one.
pub fn place_groups<E: Send>(
    groups: &[Range<usize>],
    threads: usize,
    place: impl Fn(Range<usize>) -> Result<Vec<u32>, E> + Sync,
) -> Result<Vec<u32>, E> {
    let next = AtomicUsize::new(0);
    let worker = || {
        let numbers = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
        numbers
            .map_while(|number| Some((number, place(groups.get(number)?.clone()))))
            .collect::<Vec<_>>()
    };
    let mut results = thread::scope(|scope| {
        let others: Vec<_> = (1..threads.min(groups.len()))
            .map(|_| scope.spawn(worker))
            .collect();
        let mut results = worker();
        for other in others {
            results.extend(other.join().unwrap_or_else(|cause| panic::resume_unwind(cause)));
        }
        results
    });
    results.sort_unstable_by_key(|&(number, _)| number);
    let bins: Result<Vec<Vec<u32>>, E> = results.into_iter().map(|(_, bins)| bins).collect();
    Ok(bins?.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group_lengths(range: Range<usize>) -> Result<Vec<u32>, usize> {
        match range.len() {
            13 => Err(range.start),
            n => Ok(vec![n as u32; n]),
        }
    }

    #[test]
    fn groups_stand_in_their_order_whatever_the_number_of_threads() {
        let groups = [0..2, 2..2, 2..5, 5..6];
        for threads in [1, 2, 3, 64] {
            assert_eq!(
                place_groups(&groups, threads, group_lengths),
                Ok(vec![2, 2, 3, 3, 3, 1])
            );
        }
        assert_eq!(place_groups(&[], 2, group_lengths), Ok(vec![]));
    }

    #[test]
    fn the_error_is_that_of_the_first_group_that_has_one() {
        let groups = [0..2, 2..15, 15..28];
        for threads in [1, 2, 3] {
            assert_eq!(place_groups(&groups, threads, group_lengths), Err(2));
        }
    }
}
