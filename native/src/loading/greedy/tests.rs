use super::*;
use crate::loading::oracle::{least_maximum, sums};
use proptest::prelude::*;
use std::cmp::Reverse;
use std::ops::Range;

/// The same rule by sorts and scans over all bins, in 128 bits.
fn by_scan(
    costs: &[u64],
    bins: u32,
    equal_counts: bool,
    limit: Option<Limit<'_>>,
) -> Result<Vec<u32>, NoRoom> {
    let mut rows: Vec<usize> = (0..costs.len()).collect();
    rows.sort_by_key(|&row| Reverse(costs[row]));
    scan(&rows, costs, bins, equal_counts, limit).or_else(|no_room| match limit {
        Some(limit_of_bins) => {
            rows.sort_by_key(|&row| (Reverse(limit_of_bins.memory[row]), Reverse(costs[row]), row));
            scan(&rows, costs, bins, equal_counts, limit)
        }
        None => Err(no_room),
    })
}

fn scan(
    rows: &[usize],
    costs: &[u64],
    bins: u32,
    equal_counts: bool,
    limit: Option<Limit<'_>>,
) -> Result<Vec<u32>, NoRoom> {
    let mut bin_of_row = vec![0; costs.len()];
    let mut contents = vec![(0u128, 0usize, 0u128); bins as usize]; // load, rows, memory
    for &row in rows {
        let memory = limit.map_or(0, |limit| u128::from(limit.memory[row]));
        let (bin, _) = contents
            .iter()
            .enumerate()
            .filter(|(_, (_, n_rows, _))| !equal_counts || *n_rows < costs.len() / bins as usize)
            .filter(|(_, (.., used))| limit.is_none_or(|limit| used + memory <= u128::from(limit.per_bin)))
            .min_by_key(|(bin, (load, ..))| (*load, *bin))
            .ok_or(NoRoom { row })?;
        bin_of_row[row] = bin as u32;
        contents[bin].0 += u128::from(costs[row]);
        contents[bin].1 += 1;
        contents[bin].2 += memory;
    }
    Ok(bin_of_row)
}

/// Ties, usual costs, and costs whose sums need more than 64 bits.
fn costs(rows: Range<usize>) -> impl Strategy<Value = Vec<u64>> {
    prop_oneof![
        prop::collection::vec(0u64..4, rows.clone()),
        prop::collection::vec(0u64..100_000, rows.clone()),
        prop::collection::vec(
            prop_oneof![0u64..4, (1u64 << 57)..(1 << 58), u64::MAX - 3..=u64::MAX],
            rows
        ),
    ]
}

proptest! {
    #[test]
    fn a_bin_is_that_of_a_scan(bins in 1u32..20, costs in costs(0..80)) {
        prop_assert_eq!(greedy(&costs, bins, false, None), by_scan(&costs, bins, false, None));
    }

    #[test]
    fn equal_counts_are_those_of_a_scan(bins in 1u32..20, costs in costs(0..80)) {
        let costs = &costs[..costs.len() - costs.len() % bins as usize];
        let bin_of_row = greedy(costs, bins, true, None).unwrap();
        prop_assert_eq!(&bin_of_row, &by_scan(costs, bins, true, None).unwrap());
        let counts = sums(&vec![1; costs.len()], &bin_of_row, bins);
        prop_assert!(counts.iter().all(|&count| count == (costs.len() / bins as usize) as u128));
    }

    #[test]
    fn a_limit_is_kept_as_by_a_scan(
        bins in 1u32..8,
        equal_counts: bool,
        rows in prop::collection::vec((0u64..50, 0u64..20), 0..40),
        per_bin in 0u64..120,
    ) {
        let n_rows = if equal_counts { rows.len() - rows.len() % bins as usize } else { rows.len() };
        let (costs, memory): (Vec<u64>, Vec<u64>) = rows[..n_rows].iter().copied().unzip();
        let limit = Some(Limit { memory: &memory, per_bin });
        let bin_of_row = greedy(&costs, bins, equal_counts, limit);
        prop_assert_eq!(&bin_of_row, &by_scan(&costs, bins, equal_counts, limit));
        if let Ok(bin_of_row) = bin_of_row {
            prop_assert!(sums(&memory, &bin_of_row, bins).iter().all(|&used| used <= u128::from(per_bin)));
        }
    }

    #[test]
    fn keys_of_both_widths_give_the_same_bins(bins in 1u32..20, costs in prop::collection::vec(0u64..9000, 0..80)) {
        let rows = descending(&costs);
        prop_assert_eq!(
            Bins::<u64>::new(bins as usize).place(&rows, &costs, false, None),
            Bins::<u128>::new(bins as usize).place(&rows, &costs, false, None)
        );
    }

    #[test]
    fn the_fullest_bin_is_within_grahams_bound(
        bins in 1u32..5,
        costs in prop::collection::vec(0u64..40, 0..13),
    ) {
        let bin_of_row = greedy(&costs, bins, false, None).unwrap();
        let fullest = sums(&costs, &bin_of_row, bins).into_iter().max().unwrap();
        let bins = u128::from(bins);
        prop_assert!(3 * bins * fullest <= (4 * bins - 1) * least_maximum(&costs, bins as usize));
    }
}

#[test]
fn one_huge_row_beside_many_small_ones_is_alone() {
    for huge in [(1 << 32) - 1, u64::MAX] {
        let mut costs = vec![1; 4096];
        costs.push(huge);
        let bin_of_row = greedy(&costs, 64, false, None).unwrap();
        assert_eq!(bin_of_row[4096], 0);
        assert!(bin_of_row[..4096].iter().all(|&bin| bin != 0));
    }
}

#[test]
fn rows_are_placed_by_memory_where_cost_leaves_one_without_room() {
    let (costs, memory) = ([9, 8, 1, 0], [1, 1, 4, 4]); // by cost: 1 | 1 + 4, and then 4 beside 1
    let limit = |per_bin| {
        Some(Limit {
            memory: &memory,
            per_bin,
        })
    };
    assert_eq!(greedy(&costs, 2, false, limit(5)), Ok(vec![0, 1, 1, 0]));
    let (costs, memory) = ([9, 8, 7, 0], [1, 1, 1, 3]); // by cost no bin keeps three
    let limit = |per_bin| {
        Some(Limit {
            memory: &memory,
            per_bin,
        })
    };
    assert_eq!(greedy(&costs, 2, false, limit(3)), Ok(vec![1, 1, 1, 0]));
    assert_eq!(greedy(&costs, 2, false, limit(2)), Err(NoRoom { row: 3 }));
}

#[test]
fn the_greatest_sum_of_64_bits_is_no_missing_bin() {
    assert_eq!(greedy(&[u64::MAX, 0], 1, false, None), Ok(vec![0, 0]));
    assert_eq!(greedy(&[u64::MAX / 2, 0, 1], 2, false, None), Ok(vec![0, 1, 1]));
}

#[test]
fn more_bins_than_rows_cost_no_memory() {
    assert_eq!(greedy(&[1, 3, 2], u32::MAX, false, None), Ok(vec![2, 0, 1]));
    assert_eq!(greedy(&[], u32::MAX, true, None), Ok(vec![]));
}
