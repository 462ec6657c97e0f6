//! The entries of an index, each block of them verified at its first access.

use std::sync::atomic::{AtomicU64, Ordering};

use arrow_buffer::ScalarBuffer;
use xxhash_rust::xxh3::xxh3_64;

use super::layout::{BLOCK, damaged};
use crate::pages::error::Result;

pub struct CheckedEntries {
    entries: ScalarBuffer<u32>,
    /// A checksum per block.
    sums: ScalarBuffer<u64>,
    /// One bit per block, set once its checksum was verified.
    checked: Vec<AtomicU64>,
}

impl CheckedEntries {
    pub fn new(entries: ScalarBuffer<u32>, sums: ScalarBuffer<u64>) -> Self {
        let mut checked = Vec::new();
        checked.resize_with(sums.len().div_ceil(64), AtomicU64::default);
        Self {
            entries,
            sums,
            checked,
        }
    }

    #[inline]
    pub fn get(&self, number: u64) -> Result<u32> {
        let missing = || damaged("it lacks entries");
        let number = usize::try_from(number).map_err(|_| missing())?;
        if number >= self.entries.len() {
            return Err(missing());
        }
        let block = number / BLOCK;
        let (word, bit) = (
            self.checked.get(block / 64).ok_or_else(missing)?,
            1u64 << (block % 64),
        );
        if word.load(Ordering::Relaxed) & bit == 0 {
            let begin = block * BLOCK;
            let length = self.entries.len().saturating_sub(begin).min(BLOCK);
            let entries = self.entries.slice(begin, length);
            if self.sums.get(block) != Some(&xxh3_64(entries.inner())) {
                return Err(damaged("its checksums do not match"));
            }
            word.fetch_or(bit, Ordering::Relaxed);
        }
        self.entries.get(number).copied().ok_or_else(missing)
    }
}
