//! A page index as bytes: flat numbers in one buffer, in memory or mapped from a file.
//!
//! Little-endian, sections aligned to 64 bytes:
//!
//!     head      magic, version, total bytes, sections, rows, pages, 0, checksum of head and table
//!     table     begin, length and checksum of each section
//!     text      the column's name, the footers of `Leaf::bytes`, the files' paths, one after another
//!     ends      `n_leaves`, then the end of each of these texts: 1, `n_leaves`, `n_files`
//!     files     a file: bytes, leaf                                               2 numbers of 8 bytes
//!     chunks    a column chunk: file, row group, codec, dictionary begin and end  5
//!     runs      see `runs.rs`                                                     9
//!     entries   first rows and offsets of uneven pages                            4 bytes each
//!     sums      a checksum for every 4 KiB of entries
//!
//! Opening verifies all sections but the entries; the reader verifies entries block by block, so that an index of any
//! size opens at once.

use arrow_buffer::{ArrowNativeType, Buffer, ScalarBuffer};
use xxhash_rust::xxh3::xxh3_64;

use super::entries::ChunkEntry;
use super::runs::Runs;
use crate::pages::error::{PageError, Result};

const MAGIC: u64 = u64::from_le_bytes(*b"MFPAGES\0");
const VERSION: u64 = 1;
const HEAD: usize = 64;
const SECTIONS: usize = 7;
const ENTRIES: usize = 5; // the section verified block by block
/// Entries per checksum.
pub const BLOCK: usize = 1024;
/// Numbers per file.
pub const FILE: usize = 2;
/// Numbers per column chunk.
pub const CHUNK: usize = 5;

/// The content of an index.
#[derive(Default)]
pub struct Parts {
    pub column: String,
    pub leaves: Vec<Vec<u8>>,
    /// Path, bytes, leaf.
    pub files: Vec<(String, u64, usize)>,
    pub chunks: Vec<ChunkEntry>,
    pub runs: Runs,
}

impl Parts {
    /// The number of the leaf with this footer; files of one schema share one.
    pub fn leaf(&mut self, bytes: &[u8]) -> usize {
        let known = self.leaves.iter().position(|it| it == bytes);
        known.unwrap_or_else(|| {
            self.leaves.push(bytes.to_vec());
            self.leaves.len() - 1
        })
    }

    /// The index as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let paths = self.files.iter().map(|file| file.0.as_bytes());
        let texts = std::iter::once(self.column.as_bytes())
            .chain(self.leaves.iter().map(Vec::as_slice))
            .chain(paths);
        let (mut text, mut ends) = (Vec::new(), vec![self.leaves.len() as u64]);
        for part in texts {
            text.extend_from_slice(part);
            ends.push(text.len() as u64);
        }
        let files = self
            .files
            .iter()
            .flat_map(|&(_, bytes, leaf)| [bytes, leaf as u64]);
        let chunks = self.chunks.iter().flat_map(|it| {
            [
                it.file as u64,
                it.row_group as u64,
                it.codec.number(),
                it.dictionary.0,
                it.dictionary.1,
            ]
        });
        let runs = self.runs.runs.iter().flat_map(|run| run.to_words());
        let entries: Vec<u8> = self
            .runs
            .entries
            .iter()
            .flat_map(|entry| entry.to_le_bytes())
            .collect();
        let sums = entries.chunks(4 * BLOCK).map(xxh3_64);
        let sections = [
            text,
            words(ends),
            words(files),
            words(chunks),
            words(runs),
            entries.clone(),
            words(sums),
        ];
        layout(&sections, self.runs.rows, self.runs.pages)
    }
}

fn words(numbers: impl IntoIterator<Item = u64>) -> Vec<u8> {
    numbers.into_iter().flat_map(u64::to_le_bytes).collect()
}

fn layout(sections: &[Vec<u8>; SECTIONS], rows: u64, pages: u64) -> Vec<u8> {
    let mut begin = (HEAD + 24 * SECTIONS).next_multiple_of(64);
    let mut table = Vec::new();
    for (number, section) in sections.iter().enumerate() {
        let sum = if number == ENTRIES { 0 } else { xxh3_64(section) };
        table.extend([begin as u64, section.len() as u64, sum]);
        begin = (begin + section.len()).next_multiple_of(64);
    }
    let head = words([MAGIC, VERSION, begin as u64, SECTIONS as u64, rows, pages, 0]);
    let table = words(table);
    let mut bytes = Vec::with_capacity(begin);
    bytes.extend_from_slice(&head);
    bytes.extend_from_slice(&xxh3_64(&[&head[..], &table].concat()).to_le_bytes());
    bytes.extend_from_slice(&table);
    for section in sections {
        bytes.resize(bytes.len().next_multiple_of(64), 0);
        bytes.extend_from_slice(section);
    }
    bytes.resize(begin, 0);
    bytes
}

/// The sections of an index, all verified but its entries.
pub struct Sections {
    pub text: ScalarBuffer<u8>,
    pub ends: ScalarBuffer<u64>,
    pub files: ScalarBuffer<u64>,
    pub chunks: ScalarBuffer<u64>,
    pub runs: ScalarBuffer<u64>,
    pub entries: ScalarBuffer<u32>,
    pub sums: ScalarBuffer<u64>,
    pub rows: u64,
    pub pages: u64,
}

impl Sections {
    /// Opens the bytes of `Parts::to_bytes`; Corrupt for other bytes.
    pub fn open(buffer: Buffer) -> Result<Self> {
        // A mapped file is aligned; other bytes may need a copy.
        let aligned = (buffer.as_ptr() as usize).is_multiple_of(align_of::<u64>());
        let buffer = if aligned {
            buffer
        } else {
            Buffer::from_slice_ref(buffer.as_slice())
        };
        let head: ScalarBuffer<u64> = section(&buffer, 0, HEAD)?;
        let [magic, version, length, n_sections, rows, pages, _, sum] = head[..] else {
            return Err(damaged("it is too short"));
        };
        if magic != MAGIC {
            return Err(damaged("it begins with other bytes"));
        }
        if version != VERSION || n_sections != SECTIONS as u64 {
            return Err(damaged(&format!("it has version {version} instead of {VERSION}")));
        }
        let table: ScalarBuffer<u64> = section(&buffer, HEAD, 24 * SECTIONS)?;
        let summed = [&buffer[..HEAD - 8], &buffer[HEAD..HEAD + 24 * SECTIONS]].concat();
        if sum != xxh3_64(&summed) || length != buffer.len() as u64 {
            return Err(damaged(
                "it was cut short, or the checksum of its head does not match",
            ));
        }
        let place = |number: usize| (table[3 * number] as usize, table[3 * number + 1] as usize);
        for number in (0..SECTIONS).filter(|&number| number != ENTRIES) {
            let (begin, length) = place(number);
            let bytes: ScalarBuffer<u8> = section(&buffer, begin, length)?;
            if table[3 * number + 2] != xxh3_64(&bytes) {
                return Err(damaged("its checksums do not match"));
            }
        }
        let numbers = |number| section(&buffer, place(number).0, place(number).1);
        Ok(Self {
            text: section(&buffer, place(0).0, place(0).1)?,
            ends: numbers(1)?,
            files: numbers(2)?,
            chunks: numbers(3)?,
            runs: numbers(4)?,
            entries: section(&buffer, place(ENTRIES).0, place(ENTRIES).1)?,
            sums: numbers(6)?,
            rows,
            pages,
        })
    }
}

fn section<T: ArrowNativeType>(buffer: &Buffer, begin: usize, length: usize) -> Result<ScalarBuffer<T>> {
    let inside = begin.checked_add(length).is_some_and(|end| end <= buffer.len());
    if !inside || !begin.is_multiple_of(align_of::<T>()) || !length.is_multiple_of(size_of::<T>()) {
        return Err(damaged("it was cut short"));
    }
    Ok(ScalarBuffer::from(buffer.slice_with_length(begin, length)))
}

/// The error for an invalid index.
pub fn damaged(what: &str) -> PageError {
    PageError::Corrupt(format!(
        "The page index is invalid: {what}. Build it again from its files."
    ))
}
