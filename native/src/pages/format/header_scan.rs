//! One pass over the page headers of a column chunk, for files without an offset index.
//!
//! A header has its page's length, so a scan skips the bodies between headers. Bytes come from the caller, a window
//! at a time.

use std::ops::Range;

use super::footer::Chunk;
use super::header::{self, PageHeader, PageKind};
use super::locations::{ChunkPages, Location};
use super::thrift::Trouble;
use crate::pages::error::{PageError, Place, Result};

/// A pass over the page headers of a chunk.
pub struct HeaderScan {
    chunk: Chunk,
    repeated: bool,
    at: u64,
    row: u64,
    window: u64,
    dictionary: Option<Range<u64>>,
    pages: Vec<Location>,
}

impl HeaderScan {
    /// `window` is the number of bytes to request at a time; `repeated` says whether rows have several values.
    pub fn new(chunk: Chunk, repeated: bool, window: u64) -> Self {
        Self {
            at: chunk.bytes.start,
            chunk,
            repeated,
            row: 0,
            window,
            dictionary: None,
            pages: Vec::new(),
        }
    }

    /// The bytes to push next; `None` after the whole chunk.
    pub fn wanted(&self) -> Option<Range<u64>> {
        let end = self.chunk.bytes.end;
        (self.at < end && self.row < self.chunk.rows)
            .then(|| self.at..end.min(self.at.saturating_add(self.window)))
    }

    /// Takes the bytes of `wanted`.
    pub fn push(&mut self, place: Place<'_>, bytes: &[u8]) -> Result<()> {
        let begin = self.at;
        loop {
            let passed = usize::try_from(self.at - begin).unwrap_or(usize::MAX);
            let Some(left) = bytes.get(passed..).filter(|left| !left.is_empty()) else {
                return Ok(());
            };
            if self.wanted().is_none() {
                return Ok(());
            }
            let header = match PageHeader::parse(left) {
                Ok(header) => header,
                Err(Trouble::Short) if passed > 0 => return Ok(()),
                Err(Trouble::Short) if self.at + (left.len() as u64) < self.chunk.bytes.end => {
                    if left.len() >= header::LONGEST {
                        return Err(self.corrupt(place, "its header does not end"));
                    }
                    self.window = self.window.saturating_mul(4); // a header longer than the window
                    return Ok(());
                }
                Err(Trouble::Short) => return Err(self.corrupt(place, "its header is cut short")),
                Err(Trouble::Malformed(what)) => return Err(self.corrupt(place, what)),
            };
            self.take(place, header)?;
        }
    }

    /// The chunk's pages, after `wanted` has become `None`.
    pub fn finish(self, place: Place<'_>) -> Result<ChunkPages> {
        if self.row != self.chunk.rows {
            let what = format!(
                "its pages hold {} rows, its footer says {}",
                self.row, self.chunk.rows
            );
            return Err(place.corrupt_chunk(self.chunk.row_group, what));
        }
        let Self {
            chunk,
            dictionary,
            pages,
            ..
        } = self;
        ChunkPages {
            chunk,
            dictionary,
            pages,
        }
        .checked(place)
    }

    fn take(&mut self, place: Place<'_>, header: PageHeader) -> Result<()> {
        let size = header.length as u64 + u64::from(header.compressed);
        let end = self.at.saturating_add(size);
        let Some(size) = u32::try_from(size).ok().filter(|_| end <= self.chunk.bytes.end) else {
            return Err(self.corrupt(place, "it reaches beyond its column chunk"));
        };
        let rows = match header.kind {
            PageKind::Dictionary(_) if self.pages.is_empty() && self.dictionary.is_none() => {
                self.dictionary = Some(self.at..end);
                None
            }
            PageKind::Dictionary(_) => {
                return Err(self.corrupt(place, "it is a dictionary between data pages"));
            }
            PageKind::Data(data) if self.repeated && self.holds_all(data.values) => Some(self.chunk.rows),
            PageKind::Data(_) if self.repeated => {
                return Err(place.unsupported(
                    "its pages do not have their numbers of rows, because rows have several values",
                    "Write the file with an offset index, or with data pages of version 2.",
                ));
            }
            PageKind::Data(data) => Some(u64::from(data.values)),
            PageKind::DataV2(data) => Some(u64::from(data.rows)),
            PageKind::Other => None,
        };
        if let Some(rows) = rows {
            if rows > self.chunk.rows - self.row {
                return Err(self.corrupt(place, "it holds more rows than its row group"));
            }
            self.pages.push(Location {
                offset: self.at,
                size,
                first_row: self.row,
            });
            self.row += rows;
        }
        self.at = end;
        Ok(())
    }

    /// Whether a page with `values` values is the only page of the chunk.
    fn holds_all(&self, values: u32) -> bool {
        self.pages.is_empty() && u64::from(values) == self.chunk.values
    }

    fn corrupt(&self, place: Place<'_>, what: &str) -> PageError {
        place.corrupt_page(self.chunk.row_group, self.pages.len(), what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PLACE: Place<'static> = Place {
        file: "some.parquet",
        column: "tokens",
    };

    /// A page of version 1 with `rows` rows and a body of 5 bytes, or a dictionary page.
    fn page(rows: u8, dictionary: bool) -> Vec<u8> {
        let mut bytes = vec![0x15, if dictionary { 4 } else { 0 }, 0x15, 10, 0x15, 10];
        bytes.push(if dictionary { 0x4c } else { 0x2c });
        bytes.push(0x15);
        bytes.push(2 * rows);
        bytes.extend([0x15, 0, 0, 0]);
        bytes.extend([7; 5]);
        bytes
    }

    #[test]
    fn a_scan_finds_what_the_headers_say_whatever_the_window() {
        let bytes = [page(3, true), page(4, false), page(1, false), page(2, false)].concat();
        for window in 1..80 {
            let mut scan = HeaderScan::new(Chunk::plain(4, 7, 50..50 + bytes.len() as u64), false, window);
            while let Some(wanted) = scan.wanted() {
                let range = (wanted.start - 50) as usize..(wanted.end - 50) as usize;
                scan.push(PLACE, &bytes[range]).unwrap();
            }
            let found = scan.finish(PLACE).unwrap();
            let size = bytes.len() as u64 / 4;
            assert_eq!(found.dictionary, Some(50..50 + size));
            assert_eq!(
                found.pages.iter().map(|page| page.first_row).collect::<Vec<_>>(),
                [0, 4, 5]
            );
            assert_eq!(found.pages[2].offset, 50 + 3 * size);
        }
    }

    #[test]
    fn a_chunk_cut_short_or_with_other_rows_is_refused() {
        let bytes = [page(4, false), page(1, false)].concat();
        for (rows, length) in [
            (5, bytes.len() - 1),
            (5, bytes.len() - 8),
            (6, bytes.len()),
            (4, 3),
        ] {
            let mut scan = HeaderScan::new(Chunk::plain(4, rows, 0..length as u64), false, 4096);
            let pushed = scan.push(PLACE, &bytes[..length]);
            assert!(pushed.and_then(|()| scan.finish(PLACE).map(drop)).is_err());
        }
    }

    #[test]
    fn repeated_rows_need_an_offset_index_or_a_single_page() {
        let scan = |values| {
            let bytes = page(6, false);
            let mut chunk = Chunk::plain(4, 2, 0..bytes.len() as u64);
            chunk.values = values;
            let mut scan = HeaderScan::new(chunk, true, 4096);
            scan.push(PLACE, &bytes).map(|()| scan.pages.len())
        };
        assert_eq!(scan(6).unwrap(), 1);
        assert!(scan(9).unwrap_err().to_string().contains("offset index"));
    }

    proptest! {
        #[test]
        fn any_bytes_end_in_pages_or_in_a_sentence(
            bytes in proptest::collection::vec(any::<u8>(), 0..120), rows in 0u64..1000, window in 1u64..50
        ) {
            let mut scan = HeaderScan::new(Chunk::plain(4, rows, 0..bytes.len() as u64), false, window);
            while let Some(wanted) = scan.wanted() {
                if scan.push(PLACE, &bytes[wanted.start as usize..wanted.end as usize]).is_err() {
                    return Ok(());
                }
            }
            let _ = scan.finish(PLACE);
        }
    }
}
