//! The entries of an index: a column chunk, a file, a page.

use std::ops::Range;

use crate::pages::format::codec::Codec;

/// A column chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkEntry {
    pub file: usize,
    pub row_group: usize,
    pub codec: Codec,
    /// Byte range of the dictionary page, empty where there is none.
    pub dictionary: (u64, u64),
}

/// A file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileEntry<'a> {
    pub path: &'a str,
    pub bytes: u64,
    pub leaf: usize,
}

/// A page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageEntry {
    pub chunk: usize,
    /// Number in its column chunk.
    pub page: usize,
    pub offset: u64,
    pub size: usize,
    /// First row over all files.
    pub first_row: u64,
    pub rows: usize,
}

impl PageEntry {
    /// Its byte range in the file.
    pub fn bytes(&self) -> Range<u64> {
        self.offset..self.offset + self.size as u64
    }

    pub fn holds(&self, row: u64) -> bool {
        row.checked_sub(self.first_row)
            .is_some_and(|it| it < self.rows as u64)
    }
}
