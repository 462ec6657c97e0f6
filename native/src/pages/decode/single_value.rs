//! An uncompressed page of one byte string, whose value is read straight into the result.
//!
//!     | header, levels, length | value |
//!       head                     rest, in the result
//!
//! Rows of packed tokens have equal lengths, and so do their heads: a value probably has the length of the one
//! before. The head tells whether the prediction was right; if not, the page is reassembled and decoded as any other.

use super::body::Body;
use super::decoder::{PageOf, walkable};
use crate::pages::format::codec::Codec;
use crate::pages::format::footer::Leaf;
use crate::pages::format::header::PageHeader;

const LONGEST_HEAD: usize = 1 << 10;

/// Predicts the length of a page's value from the last pages.
#[derive(Default)]
pub struct LengthPredictor {
    last: usize,
    /// The last length if it occurred twice in a row, else zero.
    length: usize,
}

impl LengthPredictor {
    /// The lengths of the head and the value of a page of `size` bytes; without a prediction the value's is zero.
    pub fn split(&self, of: PageOf<'_>, size: usize) -> (usize, usize) {
        let may = divides(of) && self.length > 0;
        match size.checked_sub(self.length) {
            Some(head) if may && head <= LONGEST_HEAD => (head, self.length),
            _ => (size, 0),
        }
    }

    /// Records the length of a decoded value.
    pub fn record(&mut self, of: PageOf<'_>, size: usize, length: usize) {
        let length = if divides(of) && length < size { length } else { 0 };
        self.length = if length == self.last { length } else { 0 };
        self.last = length;
    }
}

fn divides(of: PageOf<'_>) -> bool {
    of.rows == 1 && of.codec == Codec::Plain
}

/// Whether `head` and `value` form a valid uncompressed page of this one value.
pub fn is_one_value(of: PageOf<'_>, leaf: &Leaf, head: &[u8], value: &[u8]) -> bool {
    let Ok(header) = PageHeader::parse(head) else {
        return false;
    };
    let begin = head.get(header.length..).unwrap_or_default();
    let stored = begin.len() + value.len();
    if !divides(of) || header.compressed as usize != stored || header.uncompressed as usize != stored {
        return false;
    }
    if let Some(checksum) = header.checksum {
        let mut found = crc32fast::Hasher::new();
        found.update(begin);
        found.update(value);
        if found.finalize() != checksum {
            return false;
        }
    }
    let body = Body {
        header,
        bytes: begin,
        decompressed: false,
    };
    let Some(parts) = body.parts(leaf.max_repetition, leaf.max_definition) else {
        return false;
    };
    let length = u32::try_from(value.len()).map(u32::to_le_bytes);
    body.values() == 1
        && length.is_ok_and(|it| parts.values == it.as_slice())
        && walkable(leaf, &body, &parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::error::Place;

    const OF: PageOf<'_> = PageOf {
        place: Place {
            file: "f",
            column: "c",
        },
        row_group: 0,
        page: 0,
        rows: 1,
        codec: Codec::Plain,
    };

    #[test]
    fn a_page_is_divided_once_two_values_were_equally_long() {
        let mut predictor = LengthPredictor::default();
        predictor.record(OF, 130, 100);
        assert_eq!(predictor.split(OF, 130), (130, 0));
        predictor.record(OF, 131, 100);
        assert_eq!(predictor.split(OF, 130), (30, 100));
        assert_eq!(predictor.split(OF, 90), (90, 0));
        assert_eq!(predictor.split(OF, 100 + LONGEST_HEAD + 1), (1_124 + 1, 0));
        assert_eq!(predictor.split(PageOf { rows: 2, ..OF }, 130), (130, 0));
        predictor.record(OF, 130, 99);
        assert_eq!(predictor.split(OF, 130), (130, 0));
    }
}
