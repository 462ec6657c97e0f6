//! A page's header: the type, sizes and encoding of the body after it.
//!
//!     | header (Thrift) | body: `compressed` bytes, with a checksum from some writers |
//!
//! Body of a data page, version 1: repetition levels, definition levels and values, compressed together;
//! version 2: the levels uncompressed, then the values.

use super::thrift::{Compact, Kind, Result, Trouble};

/// Longest header: statistics may hold two values of a row each.
pub const LONGEST: usize = 16 << 20;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Data {
    pub values: u32,
    pub encoding: i32,
    pub definition_encoding: i32,
    pub repetition_encoding: i32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataV2 {
    pub values: u32,
    pub nulls: u32,
    pub rows: u32,
    pub encoding: i32,
    pub definition_bytes: u32,
    pub repetition_bytes: u32,
    pub compressed: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dictionary {
    pub values: u32,
    pub encoding: i32,
    pub sorted: bool,
}

/// The type of a page, with the header's fields for that type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageKind {
    Data(Data),
    DataV2(DataV2),
    Dictionary(Dictionary),
    /// An index page, which no known writer writes.
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageHeader {
    /// Bytes of the body as stored.
    pub compressed: u32,
    /// Bytes of the decompressed body.
    pub uncompressed: u32,
    /// CRC-32 of the body as stored.
    pub checksum: Option<u32>,
    pub kind: PageKind,
    /// Bytes of the header itself.
    pub length: usize,
}

impl PageHeader {
    /// The header at the start of `bytes`; `Short` if it needs more bytes.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let mut compact = Compact::new(bytes);
        let (mut number, mut uncompressed, mut compressed, mut checksum) = (None, None, None, None);
        let mut kind = None;
        let mut last = 0;
        while let Some(field) = compact.field(&mut last)? {
            match (last, field) {
                (1, Kind::Integer) => number = Some(compact.integer()?),
                (2, Kind::Integer) => uncompressed = Some(compact.size()?),
                (3, Kind::Integer) => compressed = Some(compact.size()?),
                (4, Kind::Integer) => checksum = Some(checksum_of(compact.integer()?)?),
                (5, Kind::Struct) => kind = Some(PageKind::Data(data(&mut compact)?)),
                (7, Kind::Struct) => kind = Some(PageKind::Dictionary(dictionary(&mut compact)?)),
                (8, Kind::Struct) => kind = Some(PageKind::DataV2(data_v2(&mut compact)?)),
                (_, field) => compact.skip(field)?,
            }
        }
        let kind = match (number, kind) {
            (Some(0), Some(found @ PageKind::Data(_)))
            | (Some(2), Some(found @ PageKind::Dictionary(_)))
            | (Some(3), Some(found @ PageKind::DataV2(_))) => found,
            (Some(1), None) => PageKind::Other,
            _ => {
                return Err(Trouble::Malformed(
                    "a page header whose parts do not fit its type",
                ));
            }
        };
        let missing = Trouble::Malformed("a page header without sizes");
        let (Some(uncompressed), Some(compressed)) = (uncompressed, compressed) else {
            return Err(missing);
        };
        Ok(Self {
            compressed,
            uncompressed,
            checksum,
            kind,
            length: compact.position(),
        })
    }
}

/// Writers store the 32 bits as a signed number, some as an unsigned one.
fn checksum_of(value: i64) -> Result<u32> {
    if i64::from(i32::MIN) <= value && value <= i64::from(u32::MAX) {
        Ok(value as u32)
    } else {
        Err(Trouble::Malformed("a checksum of more than 32 bits"))
    }
}

fn code(compact: &mut Compact<'_>) -> Result<i32> {
    i32::try_from(compact.integer()?).map_err(|_| Trouble::Malformed("an unknown encoding"))
}

fn data(compact: &mut Compact<'_>) -> Result<Data> {
    let mut found = Data::default();
    let mut last = 0;
    while let Some(field) = compact.field(&mut last)? {
        match (last, field) {
            (1, Kind::Integer) => found.values = compact.size()?,
            (2, Kind::Integer) => found.encoding = code(compact)?,
            (3, Kind::Integer) => found.definition_encoding = code(compact)?,
            (4, Kind::Integer) => found.repetition_encoding = code(compact)?,
            (_, field) => compact.skip(field)?,
        }
    }
    Ok(found)
}

fn data_v2(compact: &mut Compact<'_>) -> Result<DataV2> {
    let mut found = DataV2 {
        compressed: true,
        ..DataV2::default()
    };
    let mut last = 0;
    while let Some(field) = compact.field(&mut last)? {
        match (last, field) {
            (1, Kind::Integer) => found.values = compact.size()?,
            (2, Kind::Integer) => found.nulls = compact.size()?,
            (3, Kind::Integer) => found.rows = compact.size()?,
            (4, Kind::Integer) => found.encoding = code(compact)?,
            (5, Kind::Integer) => found.definition_bytes = compact.size()?,
            (6, Kind::Integer) => found.repetition_bytes = compact.size()?,
            (7, Kind::True) => found.compressed = true,
            (7, Kind::False) => found.compressed = false,
            (_, field) => compact.skip(field)?,
        }
    }
    Ok(found)
}

fn dictionary(compact: &mut Compact<'_>) -> Result<Dictionary> {
    let mut found = Dictionary::default();
    let mut last = 0;
    while let Some(field) = compact.field(&mut last)? {
        match (last, field) {
            (1, Kind::Integer) => found.values = compact.size()?,
            (2, Kind::Integer) => found.encoding = code(compact)?,
            (3, Kind::True) => found.sorted = true,
            (_, field) => compact.skip(field)?,
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Version 1, 3 values, PLAIN, levels RLE, 10 bytes stored and 20 decompressed, checksum -2.
    const HEADER: [u8; 19] = [
        0x15, 0, 0x15, 40, 0x15, 20, 0x15, 3, 0x1c, 0x15, 6, 0x15, 0, 0x15, 6, 0x15, 6, 0, 0,
    ];

    #[test]
    fn a_header_says_what_follows() {
        let found = PageHeader::parse(&[&HEADER[..], &[9; 40]].concat()).unwrap();
        assert_eq!((found.compressed, found.uncompressed, found.length), (10, 20, 19));
        assert_eq!(found.checksum, Some(u32::MAX - 1));
        let expected = Data {
            values: 3,
            encoding: 0,
            definition_encoding: 3,
            repetition_encoding: 3,
        };
        assert_eq!(found.kind, PageKind::Data(expected));
    }

    #[test]
    fn a_header_cut_anywhere_is_short() {
        for length in 0..HEADER.len() {
            assert_eq!(PageHeader::parse(&HEADER[..length]), Err(Trouble::Short));
        }
    }

    #[test]
    fn parts_must_fit_the_type() {
        let mut header = HEADER;
        header[1] = 6; // data page version 2, without its part
        assert!(matches!(PageHeader::parse(&header), Err(Trouble::Malformed(_))));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_header_or_are_not(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = PageHeader::parse(&bytes);
        }

        #[test]
        fn a_flipped_bit_is_noticed_or_changes_a_number(at in 0usize..HEADER.len(), bit in 0u8..8) {
            let mut header = HEADER;
            header[at] ^= 1 << bit;
            if let Ok(found) = PageHeader::parse(&header) {
                prop_assert!(found.length <= header.len());
            }
        }
    }
}
