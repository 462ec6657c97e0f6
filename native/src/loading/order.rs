//! Rows by descending keys, by a radix sort over the bits that the keys use.

use super::packed::{Packed, index_bits};

const DIGIT_BITS: u32 = 11; // the counts of a pass fit into the first-level cache

/// The rows in descending order of their keys; rows of equal keys keep their order.
pub fn descending(keys: &[u64]) -> Vec<u32> {
    let mut rows: Vec<u32> = (0..keys.len() as u32).collect();
    sort_descending(&mut rows, keys);
    rows
}

/// Sort `rows` in descending order of their keys; rows of equal keys keep their order.
pub fn sort_descending(rows: &mut [u32], keys: &[u64]) {
    let highest = keys.iter().copied().max().unwrap_or(0);
    let key_bits = u64::BITS - highest.leading_zeros();
    if key_bits + index_bits(keys.len()) <= u64::BITS {
        sort::<u64>(rows, keys, highest, key_bits);
    } else {
        sort::<u128>(rows, keys, highest, key_bits);
    }
}

fn sort<E: Packed>(rows: &mut [u32], keys: &[u64], highest: u64, key_bits: u32) {
    let row_bits = index_bits(keys.len());
    let mut entries: Vec<E> = rows
        .iter()
        .map(|&row| E::new(highest - keys[row as usize], row, row_bits))
        .collect();
    let mut sorted = entries.clone();
    let n_digits = key_bits.div_ceil(DIGIT_BITS);
    let digit_bits = key_bits.div_ceil(n_digits.max(1));
    let digit = |entry: E, place: u32| entry.bits_from(row_bits + place * digit_bits) % (1 << digit_bits);
    let mut starts = vec![vec![0u32; 1 << digit_bits]; n_digits as usize];
    for &entry in &entries {
        for (counts, place) in starts.iter_mut().zip(0..) {
            counts[digit(entry, place)] += 1;
        }
    }
    for (starts, place) in starts.iter_mut().zip(0..) {
        let mut start = 0;
        for count in starts.iter_mut() {
            start += std::mem::replace(count, start);
        }
        for &entry in &entries {
            let position = &mut starts[digit(entry, place)];
            sorted[*position as usize] = entry;
            *position += 1;
        }
        std::mem::swap(&mut entries, &mut sorted);
    }
    for (row, entry) in rows.iter_mut().zip(entries) {
        *row = entry.index(row_bits);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cmp::Reverse;

    proptest! {
        #[test]
        fn rows_are_sorted_as_by_a_stable_sort(
            keys in prop_oneof![
                prop::collection::vec(0u64..5, 0..200),
                prop::collection::vec(0u64..1 << 30, 0..200),
                prop::collection::vec(prop_oneof![0u64..5, any::<u64>()], 0..200),
            ]
        ) {
            let mut rows: Vec<u32> = (0..keys.len() as u32).rev().collect();
            let mut expected = rows.clone();
            sort_descending(&mut rows, &keys);
            expected.sort_by_key(|&row| Reverse(keys[row as usize]));
            prop_assert_eq!(rows, expected);
        }
    }
}
