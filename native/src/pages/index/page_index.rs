//! The global page index: from a row or a page, over all files, to the bytes of the page.
//!
//! Layered binary search: first among the runs, about one per row group, then among the pages of a run. The first
//! access to a block of entries verifies its checksum.

mod consistency;

use arrow_buffer::Buffer;

use super::checked_entries::CheckedEntries;
use super::entries::{ChunkEntry, FileEntry, PageEntry};
use super::layout::{BLOCK, CHUNK, FILE, Parts, Sections, damaged};
use super::runs::{Run, WIDTH};
use crate::pages::error::Result;
use crate::pages::format::codec::Codec;

/// An open index.
pub struct Index {
    sections: Sections,
    entries: CheckedEntries,
}

impl Index {
    /// Opens the bytes of `Parts::to_bytes`; Corrupt for other bytes.
    pub fn open(buffer: Buffer) -> Result<Self> {
        let sections = Sections::open(buffer)?;
        let entries = CheckedEntries::new(sections.entries.clone(), sections.sums.clone());
        let index = Self { sections, entries };
        if index.is_whole() {
            Ok(index)
        } else {
            Err(damaged("its parts contradict each other"))
        }
    }

    pub fn rows(&self) -> u64 {
        self.sections.rows
    }

    pub fn pages(&self) -> u64 {
        self.sections.pages
    }

    /// Bytes of the index without names and schemas.
    pub fn bytes(&self) -> usize {
        let numbers = [
            &self.sections.ends,
            &self.sections.files,
            &self.sections.chunks,
            &self.sections.runs,
            &self.sections.sums,
        ];
        numbers.iter().map(|it| 8 * it.len()).sum::<usize>() + 4 * self.sections.entries.len()
    }

    pub fn n_files(&self) -> usize {
        self.sections.files.len() / FILE
    }

    pub fn n_leaves(&self) -> usize {
        self.sections.ends.first().map_or(0, |&n| {
            usize::try_from(n).unwrap_or(0).min(self.sections.ends.len())
        })
    }

    fn n_runs(&self) -> usize {
        self.sections.runs.len() / WIDTH
    }

    fn text(&self, number: usize) -> Option<&[u8]> {
        let begin = if number == 0 {
            0
        } else {
            *self.sections.ends.get(number)?
        };
        self.sections
            .text
            .get(usize::try_from(begin).ok()?..usize::try_from(*self.sections.ends.get(number + 1)?).ok()?)
    }

    pub fn column(&self) -> &str {
        self.text(0)
            .and_then(|it| str::from_utf8(it).ok())
            .unwrap_or_default()
    }

    /// The footer of a leaf, see `Leaf::bytes`.
    pub fn leaf(&self, number: usize) -> &[u8] {
        self.text(1 + number).unwrap_or_default()
    }

    pub fn file(&self, number: usize) -> Option<FileEntry<'_>> {
        let words = self.sections.files.get(FILE * number..FILE * (number + 1))?;
        let path = str::from_utf8(self.text(1 + self.n_leaves() + number)?).ok()?;
        Some(FileEntry {
            path,
            bytes: words[0],
            leaf: usize::try_from(words[1]).ok()?,
        })
    }

    pub fn chunk(&self, number: usize) -> Option<ChunkEntry> {
        let words = self.sections.chunks.get(CHUNK * number..CHUNK * (number + 1))?;
        Some(ChunkEntry {
            file: usize::try_from(words[0]).ok()?,
            row_group: usize::try_from(words[1]).ok()?,
            codec: Codec::numbered(words[2])?,
            dictionary: (words[3], words[4]),
        })
    }

    /// Appends the content of the index to `parts`.
    pub fn append_to(&self, parts: &mut Parts) -> Result<()> {
        let missing = || damaged("it lacks a part");
        let (files, chunks) = (parts.files.len(), parts.chunks.len() as u64);
        for number in 0..self.n_files() {
            let file = self.file(number).ok_or_else(missing)?;
            let bytes = self.leaf(file.leaf);
            let leaf = parts.leaf(bytes);
            parts.files.push((file.path.to_owned(), file.bytes, leaf));
        }
        for number in 0..self.sections.chunks.len() / CHUNK {
            let chunk = self.chunk(number).ok_or_else(missing)?;
            parts.chunks.push(ChunkEntry {
                file: chunk.file + files,
                ..chunk
            });
        }
        for block in 0..self.sections.sums.len() {
            self.entries.get((block * BLOCK) as u64)?; // verifies its checksum
        }
        let runs = (0..self.n_runs()).map(|number| self.run(number).ok_or_else(missing));
        parts.runs.extend(
            runs.collect::<Result<Vec<_>>>()?.into_iter().map(|run| Run {
                chunk: run.chunk + chunks,
                ..run
            }),
            &self.sections.entries,
            (self.sections.rows, self.sections.pages),
        );
        Ok(())
    }

    fn run(&self, number: usize) -> Option<Run> {
        self.sections
            .runs
            .get(WIDTH * number..WIDTH * (number + 1))?
            .first_chunk()
            .map(Run::from_words)
    }

    /// Number of rows and pages before the end of a run, over all files.
    fn end_of(&self, run: usize) -> (u64, u64) {
        self.run(run + 1)
            .map_or((self.sections.rows, self.sections.pages), |next| {
                (next.first_row, next.first_page)
            })
    }

    /// The last run whose `key` (0: first row, 1: first page) is at most `value`.
    fn run_of(&self, key: usize, value: u64) -> Option<usize> {
        let (runs, _) = self.sections.runs.as_chunks::<WIDTH>();
        runs.partition_point(|run| run[key] <= value).checked_sub(1)
    }

    /// The page that holds a row, and its number over all files; `None` beyond the last row.
    pub fn page_of_row(&self, row: u64) -> Result<Option<(u64, PageEntry)>> {
        let Some(number) = self.run_of(0, row).filter(|_| row < self.sections.rows) else {
            return Ok(None);
        };
        let run = self.run(number).ok_or_else(|| damaged("it lacks a run"))?;
        let (relative, pages) = (row - run.first_row, self.end_of(number).1 - run.first_page);
        if let Some(page) = relative.checked_div(run.page_rows) {
            let page = run.first_page + page.min(pages - 1);
            return Ok(Some((page, self.page_of_run(number, run, page)?)));
        }
        let (mut low, mut high) = (0, pages); // searches the last page whose first row is at most `relative`
        while low < high {
            let middle = low.midpoint(high);
            if u64::from(self.entries.get(run.entries + middle)?) <= relative {
                low = middle + 1
            } else {
                high = middle
            }
        }
        let page = run.first_page + low.saturating_sub(1);
        Ok(Some((page, self.page_of_run(number, run, page)?)))
    }

    /// A page by its number over all files; `None` beyond the last page.
    pub fn page(&self, page: u64) -> Result<Option<PageEntry>> {
        let Some(number) = self.run_of(1, page).filter(|_| page < self.sections.pages) else {
            return Ok(None);
        };
        let run = self.run(number).ok_or_else(|| damaged("it lacks a run"))?;
        self.page_of_run(number, run, page).map(Some)
    }

    fn page_of_run(&self, number: usize, run: Run, page: u64) -> Result<PageEntry> {
        let (rows_end, pages_end) = self.end_of(number);
        let (k, n) = (page - run.first_page, pages_end - run.first_page);
        let bounds = |step: u64, entries: u64, total: u64| -> Result<(u64, u64)> {
            let at = |k: u64| match step {
                _ if k == n => Ok(total),
                0 => self.entries.get(entries + k).map(u64::from),
                step => Ok(k * step),
            };
            let (begin, end) = (at(k)?, at(k + 1)?);
            let length = end.checked_sub(begin).filter(|_| end <= total);
            length
                .map(|length| (begin, length))
                .ok_or_else(|| damaged("its entries do not ascend"))
        };
        let (row, rows) = bounds(run.page_rows, run.entries, rows_end - run.first_row)?;
        let offsets = run.entries + if run.page_rows == 0 { n } else { 0 };
        let (offset, size) = bounds(run.page_bytes, offsets, run.end - run.begin)?;
        Ok(PageEntry {
            chunk: run.chunk as usize,
            page: (run.page_in_chunk + k) as usize,
            offset: run.begin + offset,
            size: size as usize,
            first_row: run.first_row + row,
            rows: rows as usize,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::format::footer::Chunk;
    use crate::pages::format::locations::{ChunkPages, Location};
    use crate::pages::index::layout::Parts;
    use crate::pages::index::runs::Runs;
    use proptest::prelude::*;

    /// Chunks given as the (gap, size, rows) of their pages, two chunks per file.
    fn parts(chunks: &[Vec<(u64, u32, u64)>]) -> Parts {
        let mut parts = Parts {
            column: "tokens".into(),
            leaves: vec![b"leaf".to_vec()],
            ..Parts::default()
        };
        for (number, sizes) in chunks.iter().enumerate() {
            let (file, row_group) = (number / 2, number % 2);
            if row_group == 0 {
                parts.files.push((format!("file-{file}"), 1000 + file as u64, 0));
            }
            let (mut offset, mut row) = (4, 0);
            let mut pages = Vec::new();
            for &(gap, size, rows) in sizes {
                offset += gap;
                pages.push(Location {
                    offset,
                    size,
                    first_row: row,
                });
                offset += u64::from(size);
                row += rows;
            }
            let chunk = Chunk::plain(row_group, row, 4..offset);
            let found = ChunkPages {
                chunk,
                dictionary: None,
                pages,
            };
            parts.runs.append(number as u64, &Runs::of(&found));
            parts.chunks.push(ChunkEntry {
                file,
                row_group,
                codec: Codec::Zstd,
                dictionary: (0, number as u64),
            });
        }
        parts
    }

    fn opened(parts: &Parts) -> Index {
        Index::open(Buffer::from_slice_ref(parts.to_bytes())).unwrap()
    }

    #[test]
    fn an_index_knows_its_column_files_and_chunks() {
        let found = opened(&parts(&[vec![(0, 9, 1)], vec![(0, 9, 1)], vec![(0, 9, 1)]]));
        assert_eq!(
            (found.column(), found.leaf(0), found.n_files()),
            ("tokens", &b"leaf"[..], 2)
        );
        assert_eq!(
            found.file(1),
            Some(FileEntry {
                path: "file-1",
                bytes: 1001,
                leaf: 0
            })
        );
        let chunk = found.chunk(1).unwrap();
        assert_eq!(
            (chunk.file, chunk.row_group, chunk.codec, chunk.dictionary),
            (0, 1, Codec::Zstd, (0, 1))
        );
        assert!(found.file(2).is_none() && found.chunk(3).is_none());
    }

    #[test]
    fn an_index_of_nothing_has_no_rows() {
        let found = opened(&Parts::default());
        assert_eq!((found.rows(), found.pages()), (0, 0));
        assert_eq!(
            (found.page_of_row(0).unwrap(), found.page(0).unwrap()),
            (None, None)
        );
    }

    #[test]
    fn bytes_of_another_format_are_refused() {
        let bytes = parts(&[vec![(0, 9, 1), (0, 8, 2), (3, 7, 3)]]).to_bytes();
        for length in 0..bytes.len() {
            assert!(
                Index::open(Buffer::from_slice_ref(&bytes[..length])).is_err(),
                "{length}"
            );
        }
    }

    #[test]
    fn even_pages_cost_nothing_and_uneven_ones_eight_bytes() {
        let even = opened(&parts(&[vec![(0, 100, 1); 10_000]]));
        assert!(even.bytes() < 400, "{}", even.bytes());
        let uneven: Vec<_> = (0..10_000)
            .map(|it| (0, 100 + it % 3, 1 + u64::from(it) % 2))
            .collect();
        let bytes = opened(&parts(&[uneven])).bytes();
        assert!((80_000..81_000).contains(&bytes), "{bytes}");
    }

    proptest! {
        #[test]
        fn every_row_and_page_is_found_where_it_is(
            chunks in proptest::collection::vec(
                proptest::collection::vec((prop_oneof![4 => Just(0u64), 1 => 1u64..9], 5u32..8, 1u64..4), 1..40), 1..6)
        ) {
            let found = opened(&parts(&chunks));
            let (mut row, mut page) = (0u64, 0u64);
            for (number, sizes) in chunks.iter().enumerate() {
                let mut offset = 4;
                for (in_chunk, &(gap, size, rows)) in sizes.iter().enumerate() {
                    offset += gap;
                    let expected = PageEntry {
                        chunk: number, page: in_chunk, offset, size: size as usize, first_row: row, rows: rows as usize,
                    };
                    prop_assert_eq!(found.page(page).unwrap(), Some(expected));
                    for row in row..row + rows {
                        prop_assert_eq!(found.page_of_row(row).unwrap(), Some((page, expected)));
                    }
                    offset += u64::from(size);
                    row += rows;
                    page += 1;
                }
            }
            prop_assert_eq!((found.rows(), found.pages()), (row, page));
            prop_assert_eq!((found.page_of_row(row).unwrap(), found.page(page).unwrap()), (None, None));
        }

        #[test]
        fn a_flipped_bit_is_noticed_at_the_latest_when_it_is_read(at in any::<proptest::sample::Index>(), bit in 0u8..8) {
            let chunk: Vec<_> = (0..50).map(|it| (0, 5 + it % 3, 1 + u64::from(it) % 2)).collect();
            let parts = parts(&[chunk]);
            let mut bytes = parts.to_bytes();
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            let whole = opened(&parts);
            if let Ok(found) = Index::open(Buffer::from_slice_ref(&bytes)) {
                for page in 0..found.pages() {
                    if let Ok(entry) = found.page(page) {
                        prop_assert_eq!(entry, whole.page(page).unwrap());
                    }
                }
            }
        }
    }
}
