//! The largest differencing method for any number of bins (Karmarkar and Karp, "The Differencing Method of Set
//! Partitioning", 1982).
//!
//! Every row begins as a partition of its own, with the row in one bin. The two partitions with the largest
//! differences between their fullest and emptiest bins are merged, the fullest bin of one with the emptiest of the
//! other, until one partition is left. A partition lists only its bins with rows, so memory grows with the rows;
//! time grows with rows times bins.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A bin with rows. Its lowest row is its name, since no other bin has that row.
#[derive(Clone, Copy)]
struct Bin {
    load: u128,
    lowest_row: u32,
}

/// The bins with rows, from the fullest to the emptiest; of equal ones, that of the lower row comes first.
type Partition = Vec<Bin>;

/// The bin of every row; bins are numbered by their lowest row.
pub fn karmarkar_karp(costs: &[u64], bins: u32) -> Vec<u32> {
    let bins = bins as usize;
    let mut joined_to: Vec<u32> = (0..costs.len() as u32).collect(); // a lower row of the same bin, or the row itself
    let mut partitions: Vec<Partition> = Vec::with_capacity(costs.len()); // each at its lowest row
    let mut widest = BinaryHeap::with_capacity(costs.len());
    for (&cost, row) in costs.iter().zip(0..) {
        let load = u128::from(cost);
        let partition = vec![Bin {
            load,
            lowest_row: row,
        }];
        widest.push((difference(&partition, bins), Reverse(row)));
        partitions.push(partition);
    }
    while let (Some((_, Reverse(left))), Some((_, Reverse(right)))) = (widest.pop(), widest.pop()) {
        let right_bins = std::mem::take(&mut partitions[right as usize]);
        let left_bins = std::mem::take(&mut partitions[left as usize]);
        let merged = merge(left_bins, &right_bins, bins, &mut joined_to);
        let lowest_row = left.min(right);
        widest.push((difference(&merged, bins), Reverse(lowest_row)));
        partitions[lowest_row as usize] = merged;
    }
    numbered(&joined_to)
}

/// The load of the fullest bin over that of the emptiest, which is zero while a bin has no rows.
fn difference(partition: &[Bin], bins: usize) -> u128 {
    let load = |bin: Option<&Bin>| bin.map_or(0, |bin| bin.load);
    load(partition.first()) - load(partition.get(bins - 1))
}

/// Both partitions in one: bin `i` of the first joins bin `bins - 1 - i` of the second.
fn merge(mut left: Partition, right: &[Bin], bins: usize, joined_to: &mut [u32]) -> Partition {
    let n_left = left.len();
    for (i, bin) in (0..bins).rev().zip(right) {
        if i < n_left {
            let (lower, higher) = sorted_pair(left[i].lowest_row, bin.lowest_row);
            joined_to[higher as usize] = lower;
            left[i].load += bin.load;
            left[i].lowest_row = lower;
        } else {
            left.push(*bin);
        }
    }
    left.sort_unstable_by_key(|bin| (Reverse(bin.load), bin.lowest_row));
    left
}

fn sorted_pair(a: u32, b: u32) -> (u32, u32) {
    (a.min(b), a.max(b))
}

/// The number of each row's bin, where every row is joined to a lower row of its bin or begins a bin.
fn numbered(joined_to: &[u32]) -> Vec<u32> {
    let mut bin_of_row: Vec<u32> = Vec::with_capacity(joined_to.len());
    let mut n_bins = 0;
    for (&lower, row) in joined_to.iter().zip(0..) {
        if lower == row {
            bin_of_row.push(n_bins);
            n_bins += 1;
        } else {
            bin_of_row.push(bin_of_row[lower as usize]);
        }
    }
    bin_of_row
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loading::oracle::{least_maximum, sums};
    use proptest::prelude::*;

    /// The method by its definition: every partition a list of `bins` bins of rows, and a scan for the widest two.
    fn by_definition(costs: &[u64], bins: u32) -> Vec<u32> {
        let load = |rows: &Vec<usize>| rows.iter().map(|&row| u128::from(costs[row])).sum::<u128>();
        let lowest = |rows: &Vec<usize>| rows.iter().copied().min().unwrap_or(usize::MAX);
        let mut partitions: Vec<Vec<Vec<usize>>> = (0..costs.len())
            .map(|row| {
                let mut partition = vec![vec![]; bins as usize];
                partition[0].push(row);
                partition
            })
            .collect();
        while partitions.len() > 1 {
            partitions.sort_by_key(|partition| {
                let width = load(&partition[0]) - load(&partition[bins as usize - 1]);
                (Reverse(width), partition.iter().map(lowest).min())
            });
            let right = partitions.remove(1);
            for (bin, rows) in partitions[0].iter_mut().zip(right.into_iter().rev()) {
                bin.extend(rows);
            }
            partitions[0].sort_by_key(|rows| (Reverse(load(rows)), lowest(rows)));
        }
        let mut partition = partitions.pop().unwrap_or_default();
        partition.sort_by_key(lowest);
        let mut bin_of_row = vec![0; costs.len()];
        for (rows, number) in partition.iter().zip(0..) {
            rows.iter().for_each(|&row| bin_of_row[row] = number);
        }
        bin_of_row
    }

    #[test]
    fn the_example_of_the_method_is_divided_as_in_the_literature() {
        let costs = [8, 7, 6, 5, 4];
        let mut two = sums(&costs, &karmarkar_karp(&costs, 2), 2);
        two.sort_unstable();
        assert_eq!(two, [14, 16]);
        let mut three = sums(&costs, &karmarkar_karp(&costs, 3), 3);
        three.sort_unstable();
        assert_eq!(three, [8, 11, 11]);
    }

    #[test]
    fn no_row_and_more_bins_than_rows_are_placed() {
        assert_eq!(karmarkar_karp(&[], 3), [0u32; 0]);
        assert_eq!(karmarkar_karp(&[0, 0, 5], 7), [0, 1, 2]);
        assert_eq!(karmarkar_karp(&[u64::MAX; 4], 1), [0; 4]);
    }

    proptest! {
        #[test]
        fn bins_are_those_of_the_definition(
            bins in 1u32..7,
            costs in prop::collection::vec(prop_oneof![0u64..5, 0u64..500, any::<u64>()], 0..40)
        ) {
            prop_assert_eq!(karmarkar_karp(&costs, bins), by_definition(&costs, bins));
        }

        /// The ratio of Michiels, Korst, Aarts and van Leeuwen, "Performance Ratios for the Differencing Method",
        /// 2003.
        #[test]
        fn the_fullest_bin_is_within_the_ratio_of_the_method(
            bins in 2u32..5,
            costs in prop::collection::vec(0u64..40, 0..13),
        ) {
            let fullest = sums(&costs, &karmarkar_karp(&costs, bins), bins).into_iter().max().unwrap();
            let bins = u128::from(bins);
            prop_assert!(3 * bins * fullest <= (4 * bins - 1) * least_maximum(&costs, bins as usize));
        }
    }
}
