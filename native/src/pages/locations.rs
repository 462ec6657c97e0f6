//! The pages of a column chunk: from its offset index, or from one pass over its page headers.
//!
//!     chunk        | dictionary page? | page 0 | page 1 | ... |          pages may have gaps between them
//!     Location     where a page begins, how long it is with its header, its first row in the row group
//!
//! Bytes come from the caller. What is found is checked against the chunk: pages lie inside it, one after
//! another, and their rows are the row group's.

use std::ops::Range;

use super::error::{Place, Result};
use super::footer::Chunk;
use super::header::{self, Content, PageHeader};
use super::thrift::{self, Compact, Kind, Trouble};

/// Rows of one page beyond which a header's number is not believed.
const MOST_ROWS: u64 = 1 << 27;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    pub offset: u64,
    pub size: u32,
    pub first_row: u64,
}

/// A column chunk with its pages.
#[derive(Clone, Debug)]
pub struct ChunkPages {
    pub chunk: Chunk,
    pub dictionary: Option<Range<u64>>,
    pub pages: Vec<Location>,
}

/// The pages an offset index names. `bytes` is the index as the file holds it.
pub fn from_offset_index(place: Place<'_>, chunk: Chunk, bytes: &[u8]) -> Result<ChunkPages> {
    let number = chunk.row_group;
    let pages = parse(bytes).map_err(|trouble| {
        let what = match trouble {
            Trouble::Short => "its offset index is cut short",
            Trouble::Malformed(what) => what,
        };
        place.corrupt_chunk(number, what)
    })?;
    let begin = pages.first().map_or(chunk.bytes.end, |page| page.offset);
    let dictionary = (begin > chunk.bytes.start && !pages.is_empty()).then_some(chunk.bytes.start..begin);
    checked(
        place,
        ChunkPages {
            chunk,
            dictionary,
            pages,
        },
    )
}

fn parse(bytes: &[u8]) -> thrift::Result<Vec<Location>> {
    let mut compact = Compact::new(bytes);
    let mut pages = Vec::new();
    let mut last = 0;
    while let Some(field) = compact.field(&mut last)? {
        if (last, field) != (1, Kind::List) {
            compact.skip(field)?;
            continue;
        }
        let (kind, length) = compact.list()?;
        if length > 0 && kind != Kind::Struct {
            return Err(Trouble::Malformed(
                "its offset index lists something else than pages",
            ));
        }
        pages = (0..length)
            .map(|_| location(&mut compact))
            .collect::<thrift::Result<_>>()?;
    }
    Ok(pages)
}

fn location(compact: &mut Compact<'_>) -> thrift::Result<Location> {
    let (mut offset, mut size, mut first_row) = (None, None, None);
    let mut last = 0;
    while let Some(field) = compact.field(&mut last)? {
        match (last, field) {
            (1, Kind::Integer) => offset = u64::try_from(compact.integer()?).ok(),
            (2, Kind::Integer) => size = Some(compact.size()?),
            (3, Kind::Integer) => first_row = u64::try_from(compact.integer()?).ok(),
            (_, field) => compact.skip(field)?,
        }
    }
    match (offset, size, first_row) {
        (Some(offset), Some(size), Some(first_row)) => Ok(Location {
            offset,
            size,
            first_row,
        }),
        _ => Err(Trouble::Malformed("its offset index has a page without a place")),
    }
}

fn checked(place: Place<'_>, found: ChunkPages) -> Result<ChunkPages> {
    let ChunkPages { chunk, pages, .. } = &found;
    let corrupt = |page: usize, what: &str| place.corrupt_page(chunk.row_group, page, what);
    let (mut end, mut row) = (chunk.bytes.start, 0);
    for (number, page) in pages.iter().enumerate() {
        if page.offset < end
            || page.size == 0
            || chunk.bytes.end.saturating_sub(page.offset) < u64::from(page.size)
        {
            return Err(corrupt(
                number,
                "it does not lie inside its column chunk, after the page before it",
            ));
        }
        if page.first_row < row || page.first_row > chunk.rows || (number == 0 && page.first_row != 0) {
            return Err(corrupt(
                number,
                "its first row is not one of the rows that are left",
            ));
        }
        let next = pages.get(number + 1).map_or(chunk.rows, |next| next.first_row);
        if next.saturating_sub(page.first_row) > MOST_ROWS {
            return Err(corrupt(number, "it claims more rows than a page can have"));
        }
        end = page.offset + u64::from(page.size);
        row = page.first_row;
    }
    if pages.is_empty() && chunk.rows > 0 {
        return Err(place.corrupt_chunk(chunk.row_group, "it has rows and no pages"));
    }
    Ok(found)
}

/// A pass over the page headers of a chunk, for files without an offset index.
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
    /// `window` is how many bytes are asked for at a time; `repeated` says whether values are not rows.
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

    /// The bytes to push next; nothing once the chunk has been passed over.
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

    /// The chunk's pages, once nothing more is wanted.
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
        checked(
            place,
            ChunkPages {
                chunk,
                dictionary,
                pages,
            },
        )
    }

    fn take(&mut self, place: Place<'_>, header: PageHeader) -> Result<()> {
        let size = header.length as u64 + u64::from(header.compressed);
        let end = self.at.saturating_add(size);
        let Some(size) = u32::try_from(size).ok().filter(|_| end <= self.chunk.bytes.end) else {
            return Err(self.corrupt(place, "it reaches beyond its column chunk"));
        };
        let rows = match header.content {
            Content::Dictionary(_) if self.pages.is_empty() && self.dictionary.is_none() => {
                self.dictionary = Some(self.at..end);
                None
            }
            Content::Dictionary(_) => {
                return Err(self.corrupt(place, "it is a dictionary between data pages"));
            }
            Content::Data(data) if self.repeated && self.holds_all(data.values) => Some(self.chunk.rows),
            Content::Data(_) if self.repeated => {
                return Err(place.unsupported(
                    "its pages do not say how many rows they hold, because a row has several values",
                    "Write the file with an offset index, or with data pages of version 2.",
                ));
            }
            Content::Data(data) => Some(u64::from(data.values)),
            Content::DataV2(data) => Some(u64::from(data.rows)),
            Content::Other => None,
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

    /// Whether a page with so many values is the chunk's only one.
    fn holds_all(&self, values: u32) -> bool {
        self.pages.is_empty() && u64::from(values) == self.chunk.values
    }

    fn corrupt(&self, place: Place<'_>, what: &str) -> super::error::PageError {
        place.corrupt_page(self.chunk.row_group, self.pages.len(), what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::codec::Codec;
    use proptest::prelude::*;

    const PLACE: Place<'static> = Place {
        file: "some.parquet",
        column: "tokens",
    };

    fn chunk(rows: u64, bytes: Range<u64>) -> Chunk {
        Chunk {
            row_group: 4,
            rows,
            values: rows,
            bytes,
            codec: Codec::Plain,
            offset_index: None,
        }
    }

    fn varint(mut value: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        while value >= 0x80 {
            bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        bytes.push(value as u8);
        bytes
    }

    fn offset_index(pages: &[(u64, u64, u64)]) -> Vec<u8> {
        let mut bytes = vec![0x19, 0xfc];
        bytes.extend(varint(pages.len() as u64));
        for &(offset, size, row) in pages {
            for number in [offset, size, row] {
                bytes.push(0x16);
                bytes.extend(varint(2 * number));
            }
            bytes.push(0);
        }
        bytes.push(0);
        bytes
    }

    /// A page of version 1 with so many rows and a body of 5 bytes, or a dictionary page.
    fn page(rows: u64, dictionary: bool) -> Vec<u8> {
        let mut bytes = vec![0x15, if dictionary { 4 } else { 0 }, 0x15, 10, 0x15, 10];
        bytes.push(if dictionary { 0x4c } else { 0x2c });
        bytes.push(0x15);
        bytes.extend(varint(2 * rows));
        bytes.extend([0x15, 0, 0, 0]);
        bytes.extend([7; 5]);
        bytes
    }

    #[test]
    fn an_offset_index_lists_the_pages_and_what_lies_before_is_the_dictionary() {
        let bytes = offset_index(&[(130, 10, 0), (140, 20, 7)]);
        let found = from_offset_index(PLACE, chunk(9, 100..160), &bytes).unwrap();
        assert_eq!(found.dictionary, Some(100..130));
        let expected = [(130, 10, 0), (140, 20, 7)].map(|(offset, size, first_row)| Location {
            offset,
            size,
            first_row,
        });
        assert_eq!(found.pages, expected);
    }

    #[test]
    fn pages_outside_their_chunk_or_out_of_order_are_refused() {
        for pages in [
            &[(90, 10, 0)][..],
            &[(150, 11, 0)],
            &[(100, 0, 0)],
            &[(100, 20, 0), (110, 20, 5)],
            &[(100, 10, 1)],
            &[(100, 10, 0), (110, 10, 10)],
            &[(100, 10, 0), (110, 10, 5), (120, 10, 4)],
            &[],
        ] {
            let said = from_offset_index(PLACE, chunk(9, 100..160), &offset_index(pages))
                .unwrap_err()
                .to_string();
            assert!(
                said.contains("some.parquet") && said.contains("`tokens`") && said.contains("row group 4"),
                "{said}"
            );
        }
    }

    #[test]
    fn a_scan_finds_what_the_headers_say_whatever_the_window() {
        let bytes = [page(3, true), page(4, false), page(1, false), page(2, false)].concat();
        for window in 1..80 {
            let mut scan = HeaderScan::new(chunk(7, 50..50 + bytes.len() as u64), false, window);
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
            let mut scan = HeaderScan::new(chunk(rows, 0..length as u64), false, 4096);
            let pushed = scan.push(PLACE, &bytes[..length]);
            assert!(pushed.and_then(|()| scan.finish(PLACE).map(drop)).is_err());
        }
    }

    #[test]
    fn rows_of_several_values_need_an_offset_index_unless_one_page_has_them_all() {
        let scan = |values| {
            let bytes = page(6, false);
            let mut chunk = chunk(2, 0..bytes.len() as u64);
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
            let _ = from_offset_index(PLACE, chunk(rows, 0..1000), &bytes);
            let mut scan = HeaderScan::new(chunk(rows, 0..bytes.len() as u64), false, window);
            while let Some(wanted) = scan.wanted() {
                if scan.push(PLACE, &bytes[wanted.start as usize..wanted.end as usize]).is_err() {
                    return Ok(());
                }
            }
            let _ = scan.finish(PLACE);
        }
    }
}
