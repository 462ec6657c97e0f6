//! One page from its bytes to rows of an Arrow array, without input or output.
//!
//! The decoder walks pages of byte strings in PLAIN encoding without nulls, such as packed tokens: a wanted row is a
//! slice, appended to the rows. The array readers of the `parquet` crate read every other page, as a row group of
//! this one page, so all types, encodings, nulls and nested columns work.

use std::borrow::Cow;
use std::collections::VecDeque;

use arrow_array::ArrayRef;
use bytes::Bytes;
use parquet::basic::{Encoding, Type as Physical};
use parquet::column::page::Page;

use super::body::{Body, Parts};
use super::content::Content;
use super::delta::end_of_numbers;
use super::one_page::rows_of;
use super::rows::{Rows, of_bytes};
use crate::pages::error::{PageError, Place, Result};
use crate::pages::format::codec::{Codec, Decompressor};
use crate::pages::format::footer::Leaf;
use crate::pages::format::header::PageKind;

const PLAIN: i32 = 0;
const MOST_VALUES: usize = 1 << 27;
const MOST_BYTES: usize = 1 << 31; // values of fixed length
const BEYOND: &str = "a value reaches beyond its end";
/// What is wrong with a page of fewer rows than its index says, or of another type than its column.
pub const MISSING_ROW: &str = "it lacks a row of its index";

/// The page to decode, for errors, and its entry in the index.
#[derive(Clone, Copy)]
pub struct PageOf<'a> {
    pub place: Place<'a>,
    pub row_group: usize,
    pub page: usize,
    pub rows: usize,
    pub codec: Codec,
}

impl PageOf<'_> {
    fn corrupt(&self, what: impl std::fmt::Display) -> PageError {
        self.place.corrupt_page(self.row_group, self.page, what)
    }
}

/// A dictionary page, decompressed.
#[derive(Clone)]
pub struct Dictionary {
    bytes: Bytes,
    values: u32,
    encoding: i32,
    sorted: bool,
}

impl Dictionary {
    /// Its bytes in memory.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }
}

/// Decodes pages; reuses its buffers.
#[derive(Default)]
pub struct Decoder {
    decompressor: Decompressor,
    scratch: Vec<u8>,
}

impl Decoder {
    /// Bytes of its buffers.
    pub fn size(&self) -> usize {
        self.scratch.capacity()
    }

    /// The dictionary of a column chunk, from its page's bytes.
    pub fn dictionary(&mut self, of: PageOf<'_>, leaf: &Leaf, page: &[u8]) -> Result<Dictionary> {
        let corrupt = |what: &str| {
            of.place
                .corrupt_chunk(of.row_group, format!("its dictionary page: {what}"))
        };
        let body = Body::open(page, of.codec, &mut self.decompressor, &mut self.scratch)
            .map_err(|it| corrupt(&it))?;
        let PageKind::Dictionary(kind) = body.header.kind else {
            return Err(corrupt("it is a page of another type"));
        };
        let least = match leaf.physical {
            Physical::BYTE_ARRAY => 4,
            _ => leaf.width.max(1),
        };
        if (kind.values as usize).saturating_mul(least) > body.bytes.len() {
            return Err(corrupt("it is too short for the values its header promises"));
        }
        let bytes = Bytes::copy_from_slice(body.bytes);
        Ok(Dictionary {
            bytes,
            values: kind.values,
            encoding: kind.encoding,
            sorted: kind.sorted,
        })
    }

    /// Appends one row of a page of byte strings to `rows`; calls `dictionary` only if the page needs it.
    pub fn append(
        &mut self,
        of: PageOf<'_>,
        leaf: &Leaf,
        page: &[u8],
        row: u32,
        dictionary: impl FnOnce() -> Result<Option<Dictionary>>,
        rows: &mut Rows,
    ) -> Result<()> {
        let body = Body::open(page, of.codec, &mut self.decompressor, &mut self.scratch)
            .map_err(|it| of.corrupt(it))?;
        let parts = checked(of, leaf, &body)?;
        if walkable(leaf, &body, &parts) {
            let value = PlainValues(parts.values).nth(row as usize);
            rows.push_bytes(value.ok_or_else(|| of.corrupt(BEYOND))?);
            return Ok(());
        }
        let content = Content::Array(array_of(of, leaf, &body, &parts, dictionary)?);
        content
            .append(row as usize, rows)
            .ok_or_else(|| of.corrupt(MISSING_ROW))
    }

    /// All rows of `page` as an array of the column's type.
    pub fn page(
        &mut self,
        of: PageOf<'_>,
        leaf: &Leaf,
        page: &[u8],
        dictionary: impl FnOnce() -> Result<Option<Dictionary>>,
    ) -> Result<ArrayRef> {
        let body = Body::open(page, of.codec, &mut self.decompressor, &mut self.scratch)
            .map_err(|it| of.corrupt(it))?;
        let parts = checked(of, leaf, &body)?;
        if !walkable(leaf, &body, &parts) {
            return array_of(of, leaf, &body, &parts, dictionary);
        }
        let mut rows = Rows::new(leaf.field.data_type().clone());
        rows.expect(of.rows);
        let mut values = PlainValues(parts.values);
        for _ in 0..of.rows {
            rows.push_bytes(values.next().ok_or_else(|| of.corrupt(BEYOND))?);
        }
        rows.finish().map_err(|misfit| of.corrupt(misfit))
    }

    /// All rows of `page`, as its own bytes if they are plain byte strings.
    pub fn content(
        &mut self,
        of: PageOf<'_>,
        leaf: &Leaf,
        page: Cow<'_, [u8]>,
        dictionary: impl FnOnce() -> Result<Option<Dictionary>>,
    ) -> Result<Content> {
        let mut scratch = Vec::new();
        let body =
            Body::open(&page, of.codec, &mut self.decompressor, &mut scratch).map_err(|it| of.corrupt(it))?;
        let parts = checked(of, leaf, &body)?;
        if !walkable(leaf, &body, &parts) {
            return Ok(Content::Array(array_of(of, leaf, &body, &parts, dictionary)?));
        }
        let ends = ends(parts.values, body.values()).ok_or_else(|| of.corrupt(BEYOND))?;
        let within = body.bytes.len() - parts.values.len(); // values are the last part of a body
        Ok(if body.decompressed {
            scratch.shrink_to_fit();
            Content::bytes(scratch, within, ends)
        } else {
            let begin = body.header.length + within;
            Content::bytes(page.into_owned(), begin, ends)
        })
    }
}

/// Levels and values of a data page, checked for the number of rows in the index.
fn checked<'a>(of: PageOf<'_>, leaf: &Leaf, body: &Body<'a>) -> Result<Parts<'a>> {
    if !matches!(body.header.kind, PageKind::Data(_) | PageKind::DataV2(_)) {
        return Err(of.corrupt("it is not a data page"));
    }
    let parts = body
        .parts(leaf.max_repetition, leaf.max_definition)
        .ok_or_else(|| of.corrupt("its levels are longer than it, or of an unknown encoding"))?;
    let values = body.values();
    if leaf.width.saturating_mul(values) > MOST_BYTES {
        return Err(of.corrupt("its values take more space than a page can have"));
    }
    if values > MOST_VALUES || (leaf.max_repetition == 0 && values != of.rows) {
        return Err(of.corrupt(format!("it has {values} values for {} rows", of.rows)));
    }
    Ok(parts)
}

/// Whether a page consists of plain byte strings without nulls.
pub fn walkable(leaf: &Leaf, body: &Body<'_>, parts: &Parts<'_>) -> bool {
    body.encoding() == PLAIN
        && leaf.max_repetition == 0
        && leaf.physical == Physical::BYTE_ARRAY
        && of_bytes(leaf.field.data_type())
        && parts.all_defined(leaf.max_definition, body.values())
}

/// A zero, then the end of each of `n` byte strings in PLAIN encoding; `None` if one reaches beyond the bytes.
fn ends(values: &[u8], n: usize) -> Option<Vec<u32>> {
    let mut at = 0usize;
    let mut ends = Vec::with_capacity(n + 1);
    ends.push(0);
    for _ in 0..n {
        let length = values.get(at..)?.first_chunk::<4>()?;
        at = at.checked_add(4 + u32::from_le_bytes(*length) as usize)?;
        ends.push(u32::try_from(at).ok().filter(|_| at <= values.len())?);
    }
    Some(ends)
}

/// Byte strings in PLAIN encoding, each after its length in 4 bytes; ends before one that reaches beyond the bytes.
struct PlainValues<'a>(&'a [u8]);

impl<'a> Iterator for PlainValues<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let (length, rest) = self.0.split_first_chunk::<4>()?;
        let (value, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        self.0 = rest;
        Some(value)
    }
}

fn encoding(code: i32) -> Option<Encoding> {
    Some(match code {
        0 => Encoding::PLAIN,
        2 => Encoding::PLAIN_DICTIONARY,
        3 => Encoding::RLE,
        5 => Encoding::DELTA_BINARY_PACKED,
        6 => Encoding::DELTA_LENGTH_BYTE_ARRAY,
        7 => Encoding::DELTA_BYTE_ARRAY,
        8 => Encoding::RLE_DICTIONARY,
        9 => Encoding::BYTE_STREAM_SPLIT,
        _ => return None,
    })
}

fn level_encoding(code: i32) -> Encoding {
    #[allow(deprecated)] // old files have it
    if code == 4 {
        Encoding::BIT_PACKED
    } else {
        Encoding::RLE
    }
}

/// The rows of a page by the array readers, in the column's type.
fn array_of(
    of: PageOf<'_>,
    leaf: &Leaf,
    body: &Body<'_>,
    parts: &Parts<'_>,
    dictionary: impl FnOnce() -> Result<Option<Dictionary>>,
) -> Result<ArrayRef> {
    let pages = pages_of(of, leaf, body, parts, dictionary)?;
    rows_of(leaf, of.rows, pages).map_err(|what| of.corrupt(what))
}

fn pages_of(
    of: PageOf<'_>,
    leaf: &Leaf,
    body: &Body<'_>,
    parts: &Parts<'_>,
    dictionary: impl FnOnce() -> Result<Option<Dictionary>>,
) -> Result<VecDeque<Page>> {
    let code = body.encoding();
    let known = encoding(code).ok_or_else(|| {
        of.place.unsupported(
            format!(
                "page {} of row group {} has the unknown encoding {code}",
                of.page, of.row_group
            ),
            "Rewrite the file.",
        )
    })?;
    let values = body.values();
    let mut pages = VecDeque::new();
    let mut buf = Bytes::copy_from_slice(body.bytes);
    match known {
        Encoding::PLAIN_DICTIONARY | Encoding::RLE_DICTIONARY => {
            let found = dictionary()?.ok_or_else(|| of.corrupt("its dictionary page is missing"))?;
            pages.push_back(Page::DictionaryPage {
                buf: found.bytes,
                num_values: found.values,
                encoding: encoding(found.encoding).unwrap_or(Encoding::PLAIN),
                is_sorted: found.sorted,
            });
            match parts.values.first() {
                Some(&width) if width > 32 => return Err(of.corrupt("its values have more than 32 bits")),
                Some(_) => {}
                None => buf = Bytes::from([body.bytes, &[0]].concat()), // only nulls: the writer omitted the bit width
            }
        }
        Encoding::DELTA_BINARY_PACKED | Encoding::DELTA_LENGTH_BYTE_ARRAY | Encoding::DELTA_BYTE_ARRAY => {
            let contradiction = || of.corrupt("its differences do not have the length its header promises");
            let end = end_of_numbers(parts.values, values).ok_or_else(contradiction)?;
            if known == Encoding::DELTA_BYTE_ARRAY {
                end_of_numbers(&parts.values[end..], values).ok_or_else(contradiction)?;
            }
        }
        Encoding::BYTE_STREAM_SPLIT if leaf.width == 0 => {
            return Err(of.corrupt("its encoding does not fit its type"));
        }
        _ => {}
    }
    pages.push_back(match body.header.kind {
        PageKind::DataV2(data) => Page::DataPageV2 {
            buf,
            num_values: data.values,
            encoding: known,
            num_nulls: data.nulls,
            num_rows: data.rows,
            def_levels_byte_len: data.definition_bytes,
            rep_levels_byte_len: data.repetition_bytes,
            is_compressed: false,
            statistics: None,
        },
        PageKind::Data(data) => Page::DataPage {
            buf,
            num_values: data.values,
            encoding: known,
            def_level_encoding: level_encoding(data.definition_encoding),
            rep_level_encoding: level_encoding(data.repetition_encoding),
            statistics: None,
        },
        _ => return Err(of.corrupt("it is not a data page")),
    });
    Ok(pages)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn plain(values: &[&[u8]]) -> Vec<u8> {
        values
            .iter()
            .flat_map(|it| [&(it.len() as u32).to_le_bytes(), *it].concat())
            .collect()
    }

    #[test]
    fn a_value_is_a_slice_of_its_page() {
        let values: [&[u8]; 4] = [b"aa", b"", b"cccc", b"d"];
        let bytes = plain(&values);
        assert_eq!(PlainValues(&bytes).collect::<Vec<_>>(), values);
        assert_eq!(PlainValues(&bytes).nth(2), Some(values[2]));
        assert_eq!(PlainValues(&bytes).nth(4), None);
    }

    proptest! {
        #[test]
        fn a_page_cut_anywhere_is_refused(
            values in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..20), 1..10), at in 0usize..300
        ) {
            let values: Vec<&[u8]> = values.iter().map(Vec::as_slice).collect();
            let bytes = plain(&values);
            let last = PlainValues(&bytes[..at.min(bytes.len())]).nth(values.len() - 1);
            prop_assert_eq!(last.is_some(), at >= bytes.len());
            prop_assert_eq!(ends(&bytes[..at.min(bytes.len())], values.len()).is_some(), at >= bytes.len());
        }
    }
}
