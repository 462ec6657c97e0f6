//! A page's body: checked against its header, decompressed, and divided into levels and values.
//!
//!     version 1    | repetition levels? | definition levels? | values |      levels: length, 4 bytes, then runs
//!     version 2    the same without lengths, which are in the header

use crate::pages::format::codec::{Codec, Decompressor};
use crate::pages::format::header::{PageHeader, PageKind};
use crate::pages::format::thrift::Trouble;

const RLE: i32 = 3;
const BIT_PACKED: i32 = 4;

/// Levels and values of a data page, or the values of a dictionary, decompressed.
#[derive(Clone, Copy)]
pub struct Body<'a> {
    pub header: PageHeader,
    pub bytes: &'a [u8],
    /// Whether the bytes are in the scratch buffer, not in the page.
    pub decompressed: bool,
}

impl<'a> Body<'a> {
    /// The body of `page`, which is exactly one page with its header; `scratch` takes the decompressed bytes.
    pub fn open(
        page: &'a [u8],
        codec: Codec,
        decompressor: &mut Decompressor,
        scratch: &'a mut Vec<u8>,
    ) -> Result<Self, String> {
        let header = PageHeader::parse(page).map_err(|trouble| match trouble {
            Trouble::Short => "its header is cut short".to_owned(),
            Trouble::Malformed(what) => format!("it has {what}"),
        })?;
        let stored = page.get(header.length..).unwrap_or_default();
        if stored.len() != header.compressed as usize {
            return Err(format!(
                "{} bytes follow its header, which promises {}",
                stored.len(),
                header.compressed
            ));
        }
        if header
            .checksum
            .is_some_and(|checksum| checksum != crc32fast::hash(stored))
        {
            return Err("its checksum differs from the one its writer stored".into());
        }
        let length = header.uncompressed as usize;
        let (levels, compressed) = match header.kind {
            PageKind::DataV2(data) => {
                let levels = data.definition_bytes as usize + data.repetition_bytes as usize;
                (levels, data.compressed && codec != Codec::Plain)
            }
            _ => (0, codec != Codec::Plain),
        };
        if levels > stored.len() || levels > length {
            return Err("its levels are longer than it".into());
        }
        if !compressed {
            if stored.len() != length {
                return Err(format!(
                    "it is not compressed and has {} bytes, its header promises {length}",
                    stored.len()
                ));
            }
            return Ok(Self {
                header,
                bytes: stored,
                decompressed: false,
            });
        }
        scratch.clear();
        scratch.extend_from_slice(&stored[..levels]);
        if length > levels {
            decompressor.append(codec, &stored[levels..], length - levels, scratch)?;
        }
        Ok(Self {
            header,
            bytes: scratch,
            decompressed: true,
        })
    }

    /// Encoding of the values.
    pub fn encoding(&self) -> i32 {
        match self.header.kind {
            PageKind::Data(data) => data.encoding,
            PageKind::DataV2(data) => data.encoding,
            PageKind::Dictionary(dictionary) => dictionary.encoding,
            PageKind::Other => -1,
        }
    }

    /// Number of values, including nulls.
    pub fn values(&self) -> usize {
        match self.header.kind {
            PageKind::Data(data) => data.values as usize,
            PageKind::DataV2(data) => data.values as usize,
            PageKind::Dictionary(dictionary) => dictionary.values as usize,
            PageKind::Other => 0,
        }
    }

    /// The definition levels (if encoded as runs) and the values of a data page.
    pub fn parts(&self, max_repetition: i16, max_definition: i16) -> Option<Parts<'a>> {
        match self.header.kind {
            PageKind::Data(data) => {
                let (_, rest) = level_run(self.bytes, max_repetition, data.repetition_encoding, data.values)?;
                let (levels, values) =
                    level_run(rest, max_definition, data.definition_encoding, data.values)?;
                Some(Parts { levels, values })
            }
            PageKind::DataV2(data) => {
                let (_, rest) = self.bytes.split_at_checked(data.repetition_bytes as usize)?;
                let (levels, values) = rest.split_at_checked(data.definition_bytes as usize)?;
                Some(Parts {
                    levels: Some(levels),
                    values,
                })
            }
            _ => None,
        }
    }
}

/// The result of `Body::parts`.
#[derive(Clone, Copy)]
pub struct Parts<'a> {
    pub levels: Option<&'a [u8]>,
    pub values: &'a [u8],
}

impl Parts<'_> {
    /// Whether the definition levels, of at most one bit, exclude nulls.
    pub fn all_defined(&self, max_definition: i16, values: usize) -> bool {
        max_definition == 0 || (max_definition == 1 && self.levels.is_some_and(|runs| all_ones(runs, values)))
    }
}

/// Levels of version 1 and the bytes after them; the levels are empty if not encoded as runs.
fn level_run(bytes: &[u8], most: i16, encoding: i32, values: u32) -> Option<(Option<&[u8]>, &[u8])> {
    if most == 0 {
        return Some((None, bytes));
    }
    match encoding {
        RLE => {
            let (length, rest) = bytes.split_first_chunk::<4>()?;
            let (levels, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
            Some((Some(levels), rest))
        }
        BIT_PACKED => {
            let bits = u64::from(16 - most.cast_unsigned().leading_zeros());
            let length = (u64::from(values) * bits).div_ceil(8);
            Some((None, bytes.get(usize::try_from(length).ok()?..)?))
        }
        _ => None,
    }
}

/// Whether runs of bits begin with at least `values` ones.
fn all_ones(mut runs: &[u8], values: usize) -> bool {
    let mut left = values;
    while left > 0 {
        let Some((header, rest)) = varint(runs) else {
            return false;
        };
        let count = (header >> 1) as usize;
        if header & 1 == 0 {
            let Some((&1, rest)) = rest.split_first() else {
                return false;
            };
            if count == 0 {
                return false;
            }
            (left, runs) = (left.saturating_sub(count), rest);
        } else {
            let Some((bytes, rest)) = rest.split_at_checked(count) else {
                return false;
            };
            if count == 0 {
                return false;
            }
            for &byte in bytes {
                let mask = if left < 8 { (1u8 << left) - 1 } else { 0xff };
                if byte & mask != mask {
                    return false;
                }
                left = left.saturating_sub(8);
            }
            runs = rest;
        }
    }
    true
}

fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0;
    for (place, &byte) in bytes.iter().take(9).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * place);
        if byte < 0x80 {
            return Some((value, &bytes[place + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ones_differ_from_anything_else() {
        for (runs, values, expected) in [
            (&[2, 1][..], 1, true),
            (&[2, 0], 1, false),
            (&[2, 1], 2, false),
            (&[4, 1, 2, 1], 3, true),
            (&[3, 0xff], 8, true),
            (&[3, 0x7f], 7, true),
            (&[3, 0x7f], 8, false),
            (&[0x80, 0x01, 1], 64, true),
            (&[3], 1, false),
            (&[0, 1, 0, 1], 1, false),
            (&[], 0, true),
            (&[], 1, false),
        ] {
            assert_eq!(all_ones(runs, values), expected, "{runs:?}");
        }
    }

    proptest! {
        #[test]
        fn any_runs_are_ones_or_not(runs in proptest::collection::vec(any::<u8>(), 0..60), values in 0usize..5000) {
            let _ = all_ones(&runs, values);
        }

        #[test]
        fn any_bytes_are_a_body_or_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
            let mut scratch = Vec::new();
            if let Ok(body) = Body::open(&bytes, Codec::Snappy, &mut Decompressor::default(), &mut scratch) {
                let _ = body.parts(1, 1);
            }
        }
    }
}
