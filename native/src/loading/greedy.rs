//! Longest processing time first: from the costliest row to the cheapest, each into the bin with the least load
//! (Graham, "Bounds on Multiprocessing Timing Anomalies", 1969).
//!
//! A key of the tournament of bins is a load above the number of its bin, 64 bits wide where the sum of all costs
//! allows it, and 128 bits where not, with the same result.
//!
//! Under a memory limit, the least loaded bin may have no room for a row. It is parked until a row comes that
//! fits. If some row fits nowhere, all rows are placed again by descending memory: the rows that are hard to
//! place come first, and the small ones fill what is left.

use std::collections::BinaryHeap;

use super::order::{descending, sort_descending};
use super::packed::{Packed, index_bits};
use super::tournament::Tournament;

/// The memory of each row, and the most that a bin may hold.
#[derive(Clone, Copy)]
pub struct Limit<'a> {
    pub memory: &'a [u64],
    pub per_bin: u64,
}

/// A row that fits into none of the bins.
#[derive(Debug, PartialEq)]
pub struct NoRoom {
    pub row: usize,
}

/// The bin of every row. With `equal_counts`, `bins` divides the number of rows.
pub fn greedy(
    costs: &[u64],
    bins: u32,
    equal_counts: bool,
    limit: Option<Limit<'_>>,
) -> Result<Vec<u32>, NoRoom> {
    let mut rows = descending(costs);
    place(&rows, costs, bins, equal_counts, limit).or_else(|no_room| match limit {
        Some(Limit { memory, .. }) => {
            sort_descending(&mut rows, memory);
            place(&rows, costs, bins, equal_counts, limit)
        }
        None => Err(no_room),
    })
}

/// Place `rows` in their order, each into the bin of the least load that may take it.
fn place(
    rows: &[u32],
    costs: &[u64],
    bins: u32,
    equal_counts: bool,
    limit: Option<Limit<'_>>,
) -> Result<Vec<u32>, NoRoom> {
    let n_bins = rows.len().min(bins as usize); // bins are used in their order, so none beyond the rows
    let total: u128 = costs.iter().map(|&cost| u128::from(cost)).sum();
    if (total + 1) >> (u64::BITS - index_bits(n_bins)) == 0 {
        Bins::<u64>::new(n_bins).place(rows, costs, equal_counts, limit)
    } else {
        Bins::<u128>::new(n_bins).place(rows, costs, equal_counts, limit)
    }
}

struct Bins<K> {
    /// The bits of a bin's number below its load.
    bits: u32,
    /// The bins that may take a row.
    open: Tournament<K>,
    /// Bins that had no room for an earlier row: the memory left in each, and its key.
    parked: BinaryHeap<(u64, K)>,
    n_rows: Vec<u32>,
    memory: Vec<u64>,
}

impl<K: Packed> Bins<K> {
    fn new(n_bins: usize) -> Self {
        let bits = index_bits(n_bins);
        Self {
            bits,
            open: Tournament::new((0..n_bins).map(|bin| K::new(0, bin as u32, bits))),
            parked: BinaryHeap::new(),
            n_rows: vec![0; n_bins],
            memory: vec![0; n_bins],
        }
    }

    fn place(
        mut self,
        rows: &[u32],
        costs: &[u64],
        equal_counts: bool,
        limit: Option<Limit<'_>>,
    ) -> Result<Vec<u32>, NoRoom> {
        let rows_per_bin = match self.n_rows.len() {
            n_bins if equal_counts && n_bins > 0 => (rows.len() / n_bins) as u32,
            _ => u32::MAX,
        };
        let mut bin_of_row = vec![0; rows.len()];
        for &row in rows {
            let row = row as usize;
            let key = match limit {
                None => self.open.least(),
                Some(limit) => self.with_room(limit.memory[row], limit.per_bin),
            };
            let key = key.ok_or(NoRoom { row })?;
            let number = key.index(self.bits);
            bin_of_row[row] = number;
            let n_rows = &mut self.n_rows[number as usize];
            *n_rows += 1;
            let full = *n_rows == rows_per_bin;
            let key = if full {
                K::NONE
            } else {
                key.plus(costs[row], self.bits)
            };
            self.open.replace(number as usize, key);
        }
        Ok(bin_of_row)
    }

    /// Reserve `memory` in the bin of the least load that has room for it.
    fn with_room(&mut self, memory: u64, limit: u64) -> Option<K> {
        while let Some(&(room, key)) = self.parked.peek()
            && room >= memory
        {
            self.parked.pop();
            self.open.replace(key.index(self.bits) as usize, key);
        }
        loop {
            let key = self.open.least()?;
            let number = key.index(self.bits) as usize;
            let room = limit - self.memory[number];
            if room >= memory {
                self.memory[number] += memory;
                return Some(key);
            }
            self.open.replace(number, K::NONE);
            self.parked.push((room, key));
        }
    }
}

#[cfg(test)]
mod tests;
