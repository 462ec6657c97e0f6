//! The pages of a column chunk as runs: stretches in which a few numbers locate every page.
//!
//! Pages of a run follow each other without gaps, so offsets give their sizes. If all pages but the last have the same
//! rows, or the same size, one number replaces one per page; otherwise a page takes 4 bytes for its first row and 4
//! for its offset, both counted from the run's.

use crate::pages::format::locations::{ChunkPages, Location};

/// A run. Its entries, if any, are `n_pages` first rows, then `n_pages` offsets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// First row and first page, over all files.
    pub first_row: u64,
    pub first_page: u64,
    pub chunk: u64,
    /// Number of its first page in the chunk.
    pub page_in_chunk: u64,
    /// Byte range in the file.
    pub begin: u64,
    pub end: u64,
    /// Rows of every page but the last; zero if entries have them.
    pub page_rows: u64,
    /// Bytes of every page but the last; zero if entries have them.
    pub page_bytes: u64,
    /// The begin of its entries.
    pub entries: u64,
}

/// Numbers per run.
pub const WIDTH: usize = 9;

impl Run {
    pub fn to_words(self) -> [u64; WIDTH] {
        [
            self.first_row,
            self.first_page,
            self.chunk,
            self.page_in_chunk,
            self.begin,
            self.end,
            self.page_rows,
            self.page_bytes,
            self.entries,
        ]
    }

    pub fn from_words(words: &[u64; WIDTH]) -> Self {
        Self {
            first_row: words[0],
            first_page: words[1],
            chunk: words[2],
            page_in_chunk: words[3],
            begin: words[4],
            end: words[5],
            page_rows: words[6],
            page_bytes: words[7],
            entries: words[8],
        }
    }
}

/// Runs of one column chunk, or of all of them.
#[derive(Default)]
pub struct Runs {
    pub runs: Vec<Run>,
    pub entries: Vec<u32>,
    pub rows: u64,
    pub pages: u64,
}

impl Runs {
    /// The runs of a single column chunk.
    pub fn of(found: &ChunkPages) -> Self {
        let mut made = Self::default();
        made.push(found);
        made
    }

    /// Appends the runs of column chunk number `chunk`.
    pub fn append(&mut self, chunk: u64, one: &Self) {
        let runs = one.runs.iter().map(|run| Run { chunk, ..*run });
        self.extend(runs, &one.entries, (one.rows, one.pages));
    }

    /// Appends runs with `totals` of (rows, pages), which count from their own start.
    pub fn extend(&mut self, runs: impl IntoIterator<Item = Run>, entries: &[u32], totals: (u64, u64)) {
        let (rows, pages, before) = (self.rows, self.pages, self.entries.len() as u64);
        self.runs.extend(runs.into_iter().map(|run| Run {
            first_row: run.first_row + rows,
            first_page: run.first_page + pages,
            entries: run.entries + before,
            ..run
        }));
        self.entries.extend_from_slice(entries);
        self.rows += totals.0;
        self.pages += totals.1;
    }

    fn push(&mut self, found: &ChunkPages) {
        let mut rest = &found.pages[..];
        let mut page_in_chunk = 0;
        while let Some(first) = rest.first() {
            let n = length(rest);
            let (pages, after) = rest.split_at(n);
            let rows = after.first().map_or(found.chunk.rows, |next| next.first_row) - first.first_row;
            self.push_run(page_in_chunk, pages, rows);
            page_in_chunk += n as u64;
            rest = after;
        }
    }

    fn push_run(&mut self, page_in_chunk: u64, pages: &[Location], rows: u64) {
        let (Some(first), Some(last)) = (pages.first(), pages.last()) else {
            return;
        };
        let row = |page: &Location| page.first_row - first.first_row;
        let offset = |page: &Location| page.offset - first.offset;
        let page_rows = step(pages, row, rows);
        let page_bytes = step(pages, offset, last.offset + u64::from(last.size) - first.offset);
        self.runs.push(Run {
            first_row: self.rows,
            first_page: self.pages,
            chunk: 0,
            page_in_chunk,
            begin: first.offset,
            end: last.offset + u64::from(last.size),
            page_rows,
            page_bytes,
            entries: self.entries.len() as u64,
        });
        // `length` ended the run where a number would not fit.
        if page_rows == 0 {
            self.entries.extend(pages.iter().map(|page| row(page) as u32));
        }
        if page_bytes == 0 {
            self.entries.extend(pages.iter().map(|page| offset(page) as u32));
        }
        self.rows += rows;
        self.pages += pages.len() as u64;
    }
}

/// The number of `pages` in the first run.
fn length(pages: &[Location]) -> usize {
    let Some(first) = pages.first() else {
        return 0;
    };
    let joins = |pair: &[Location]| {
        let end = pair[0].offset + u64::from(pair[0].size);
        end == pair[1].offset
            && u32::try_from(pair[1].offset - first.offset).is_ok()
            && u32::try_from(pair[1].first_row - first.first_row).is_ok()
    };
    1 + pages.windows(2).take_while(|pair| joins(pair)).count()
}

/// The constant step of `value` from page to page, up to `total`; zero if steps differ.
fn step(pages: &[Location], value: impl Fn(&Location) -> u64, total: u64) -> u64 {
    let step = pages.get(1).map_or(total, &value);
    let even = pages
        .iter()
        .enumerate()
        .all(|(number, page)| value(page) == number as u64 * step);
    let last = total.wrapping_sub((pages.len() as u64 - 1).wrapping_mul(step));
    if even && (1..=step).contains(&last) {
        step
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::format::footer::Chunk;

    fn runs(rows: u64, pages: &[(u64, u32, u64)]) -> Runs {
        let chunk = Chunk::plain(0, rows, 0..1 << 40);
        let pages = pages
            .iter()
            .map(|&(offset, size, first_row)| Location {
                offset,
                size,
                first_row,
            })
            .collect();
        Runs::of(&ChunkPages {
            chunk,
            dictionary: None,
            pages,
        })
    }

    #[test]
    fn even_pages_take_no_entries() {
        let mut found = Runs::default();
        found.append(0, &runs(10, &[(100, 50, 0), (150, 50, 4), (200, 30, 8)]));
        assert_eq!(
            (found.runs.len(), found.entries.len(), found.rows, found.pages),
            (1, 0, 10, 3)
        );
        assert_eq!(
            (
                found.runs[0].page_rows,
                found.runs[0].page_bytes,
                found.runs[0].end
            ),
            (4, 50, 230)
        );
    }

    #[test]
    fn uneven_pages_take_an_entry_each_for_what_is_uneven() {
        let mut found = Runs::default();
        found.append(0, &runs(10, &[(100, 50, 0), (150, 50, 4), (200, 51, 8)]));
        assert_eq!(
            (found.runs[0].page_rows, &found.entries[..]),
            (4, &[0, 50, 100][..])
        );
        found.append(1, &runs(3, &[(300, 5, 0), (305, 5, 1)]));
        assert_eq!(
            (
                found.runs[1].page_bytes,
                found.runs[1].first_row,
                &found.entries[3..]
            ),
            (5, 10, &[0, 1][..])
        );
    }

    #[test]
    fn a_gap_or_a_number_beyond_32_bits_begins_another_run() {
        let mut found = Runs::default();
        let far = (1 << 31) + 100;
        found.append(0, &runs(9, &[(100, 50, 0), (160, 50, 4), (210, 50, 8)]));
        assert_eq!(
            found.runs.iter().map(|run| run.page_in_chunk).collect::<Vec<_>>(),
            [0, 1]
        );
        let mut found = Runs::default();
        found.append(
            0,
            &runs(
                9,
                &[
                    (0, far, 0),
                    (u64::from(far), far, 4),
                    (2 * u64::from(far), far, 8),
                ],
            ),
        );
        assert_eq!(
            found
                .runs
                .iter()
                .map(|run| (run.begin, run.first_row))
                .collect::<Vec<_>>(),
            [(0, 0), (4_294_967_496, 8)]
        );
    }
}
