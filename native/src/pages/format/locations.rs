//! The pages of a column chunk, from its offset index (without one, `header_scan.rs` finds them).
//!
//!     chunk        | dictionary page? | page 0 | page 1 | ... |          pages may have gaps between them
//!     Location     a page's offset, its length with its header, its first row in the row group
//!
//! Bytes come from the caller. Pages are checked against the chunk: they are inside it, one after another, and have
//! the rows of the row group.

use std::ops::Range;

use super::footer::Chunk;
use super::thrift::{self, Compact, Kind, Trouble};
use crate::pages::error::{Place, Result};

/// Most rows of one page; a larger number means damage.
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

/// The pages in an offset index, from its bytes in the file.
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
    ChunkPages {
        chunk,
        dictionary,
        pages,
    }
    .checked(place)
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
            return Err(Trouble::Malformed("its offset index does not list pages"));
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
        _ => Err(Trouble::Malformed(
            "its offset index has a page without a location",
        )),
    }
}

impl ChunkPages {
    /// The pages, if they are in the chunk one after another and have its rows.
    pub fn checked(self, place: Place<'_>) -> Result<Self> {
        let Self { chunk, pages, .. } = &self;
        let corrupt = |page: usize, what: &str| place.corrupt_page(chunk.row_group, page, what);
        let (mut end, mut row) = (chunk.bytes.start, 0);
        for (number, page) in pages.iter().enumerate() {
            if page.offset < end
                || page.size == 0
                || chunk.bytes.end.saturating_sub(page.offset) < u64::from(page.size)
            {
                return Err(corrupt(
                    number,
                    "it is not inside its column chunk, after the page before it",
                ));
            }
            if page.first_row < row || page.first_row > chunk.rows || (number == 0 && page.first_row != 0) {
                return Err(corrupt(number, "its first row is not one of the remaining rows"));
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
        Ok(self)
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

    #[test]
    fn an_offset_index_lists_the_pages_after_the_dictionary() {
        let bytes = offset_index(&[(130, 10, 0), (140, 20, 7)]);
        let found = from_offset_index(PLACE, Chunk::plain(4, 9, 100..160), &bytes).unwrap();
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
            let message = from_offset_index(PLACE, Chunk::plain(4, 9, 100..160), &offset_index(pages))
                .unwrap_err()
                .to_string();
            assert!(
                message.contains("some.parquet")
                    && message.contains("`tokens`")
                    && message.contains("row group 4"),
                "{message}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_bytes_end_in_pages_or_in_a_sentence(
            bytes in proptest::collection::vec(any::<u8>(), 0..120), rows in 0u64..1000
        ) {
            let _ = from_offset_index(PLACE, Chunk::plain(4, rows, 0..1000), &bytes);
        }
    }
}
