//! The part of Thrift's compact protocol that footers, offset indexes and page headers need.
//!
//!     struct   fields, then a zero byte
//!     field    one byte: difference to the last field's number in the high half, type in the low one;
//!              where the difference is zero, the number follows as a zigzag varint
//!     list     one byte: length in the high half (15: a varint follows), type of its elements in the low one
//!
//! The parser allocates nothing, and rejects lengths beyond the given bytes.

/// The reason why a struct is unreadable.
#[derive(Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The bytes end before the struct does.
    Short,
    /// The bytes are not such a struct.
    Malformed(&'static str),
}

pub type Result<T> = std::result::Result<T, Trouble>;

const DEEPEST: usize = 32; // footers nest five deep

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    True,
    False,
    Byte,
    Integer,
    Double,
    Binary,
    List,
    Map,
    Struct,
    Uuid,
}

impl Kind {
    fn of(code: u8) -> Result<Self> {
        Ok(match code {
            1 => Self::True,
            2 => Self::False,
            3 => Self::Byte,
            4..=6 => Self::Integer,
            7 => Self::Double,
            8 => Self::Binary,
            9 | 10 => Self::List,
            11 => Self::Map,
            12 => Self::Struct,
            13 => Self::Uuid,
            _ => return Err(Trouble::Malformed("a field of an unknown type")),
        })
    }
}

/// A cursor over bytes of the compact protocol.
pub struct Compact<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Compact<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Number of bytes read.
    pub fn position(&self) -> usize {
        self.at
    }

    fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    fn byte(&mut self) -> Result<u8> {
        let byte = *self.bytes.get(self.at).ok_or(Trouble::Short)?;
        self.at += 1;
        Ok(byte)
    }

    fn advance(&mut self, n: usize) -> Result<()> {
        if n > self.left() {
            return Err(Trouble::Short);
        }
        self.at += n;
        Ok(())
    }

    fn varint(&mut self) -> Result<u64> {
        let mut value = 0;
        for shift in (0..70).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Trouble::Malformed("a number of more than 64 bits"))
    }

    /// A signed integer.
    pub fn integer(&mut self) -> Result<i64> {
        let value = self.varint()?;
        Ok((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }

    /// A size or a count of at most 2^31 - 1.
    pub fn size(&mut self) -> Result<u32> {
        u32::try_from(self.integer()?)
            .ok()
            .filter(|&size| size <= i32::MAX.cast_unsigned())
            .ok_or(Trouble::Malformed("a negative or huge size"))
    }

    /// The next field's number and type, `None` at the end of the struct; `last` starts at zero.
    pub fn field(&mut self, last: &mut i64) -> Result<Option<Kind>> {
        let byte = self.byte()?;
        if byte == 0 {
            return Ok(None);
        }
        *last = match byte >> 4 {
            0 => self.integer()?,
            difference => last.saturating_add(i64::from(difference)),
        };
        Kind::of(byte & 0xf).map(Some)
    }

    /// The type and number of the next elements.
    pub fn list(&mut self) -> Result<(Kind, usize)> {
        let byte = self.byte()?;
        let length = match byte >> 4 {
            15 => self.varint()?,
            length => u64::from(length),
        };
        // An element takes at least one byte.
        let length = usize::try_from(length)
            .ok()
            .filter(|&it| it <= self.left())
            .ok_or(Trouble::Short)?;
        Ok((
            if length == 0 {
                Kind::Byte
            } else {
                Kind::of(byte & 0xf)?
            },
            length,
        ))
    }

    /// Skips a field's value.
    pub fn skip(&mut self, kind: Kind) -> Result<()> {
        self.skip_within(kind, DEEPEST)
    }

    fn skip_within(&mut self, kind: Kind, depth: usize) -> Result<()> {
        let depth = depth
            .checked_sub(1)
            .ok_or(Trouble::Malformed("structs nested too deep"))?;
        match kind {
            Kind::True | Kind::False => Ok(()),
            Kind::Byte => self.advance(1),
            Kind::Integer => self.varint().map(drop),
            Kind::Double => self.advance(8),
            Kind::Uuid => self.advance(16),
            Kind::Binary => {
                let length = self.varint()?;
                self.advance(usize::try_from(length).map_err(|_| Trouble::Short)?)
            }
            Kind::List => {
                let (kind, length) = self.list()?;
                (0..length).try_for_each(|_| self.skip_element(kind, depth))
            }
            Kind::Map => {
                let length = self.varint()?;
                if length == 0 {
                    return Ok(());
                }
                let kinds = self.byte()?;
                let (key, value) = (Kind::of(kinds >> 4)?, Kind::of(kinds & 0xf)?);
                for _ in 0..length {
                    self.skip_element(key, depth)?;
                    self.skip_element(value, depth)?;
                }
                Ok(())
            }
            Kind::Struct => {
                let mut last = 0;
                while let Some(kind) = self.field(&mut last)? {
                    self.skip_within(kind, depth)?;
                }
                Ok(())
            }
        }
    }

    /// In lists and maps a Boolean takes a byte; in a struct the field's type holds it.
    fn skip_element(&mut self, kind: Kind, depth: usize) -> Result<()> {
        match kind {
            Kind::True | Kind::False => self.advance(1),
            kind => self.skip_within(kind, depth),
        }
    }
}

/// Whether `bytes` are exactly one struct with lengths that fit the bytes.
pub fn check_struct(bytes: &[u8]) -> std::result::Result<(), &'static str> {
    match Compact::new(bytes).skip(Kind::Struct) {
        Ok(()) => Ok(()),
        Err(Trouble::Short) => Err("its metadata names a length beyond its end"),
        Err(Trouble::Malformed(what)) => Err(what),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn integers_are_zigzag_varints() {
        for (bytes, value) in [
            (&[0][..], 0),
            (&[1], -1),
            (&[2], 1),
            (&[0xfe, 0xff, 0xff, 0xff, 0x0f], i64::from(i32::MAX)),
        ] {
            assert_eq!(Compact::new(bytes).integer(), Ok(value));
        }
        assert_eq!(Compact::new(&[0x80]).integer(), Err(Trouble::Short));
        assert!(matches!(
            Compact::new(&[0xff; 11]).integer(),
            Err(Trouble::Malformed(_))
        ));
    }

    #[test]
    fn a_size_is_neither_negative_nor_huge() {
        assert_eq!(Compact::new(&[4]).size(), Ok(2));
        assert!(Compact::new(&[1]).size().is_err());
        assert!(Compact::new(&[0x80, 0x80, 0x80, 0x80, 0x10]).size().is_err());
    }

    #[test]
    fn fields_follow_by_difference_or_by_number() {
        let mut found = Compact::new(&[0x15, 2, 0x05, 20, 4, 0x11, 0]);
        let mut last = 0;
        assert_eq!(found.field(&mut last), Ok(Some(Kind::Integer)));
        assert_eq!((last, found.integer()), (1, Ok(1)));
        assert_eq!(found.field(&mut last), Ok(Some(Kind::Integer)));
        assert_eq!((last, found.integer()), (10, Ok(2)));
        assert_eq!(found.field(&mut last), Ok(Some(Kind::True)));
        assert_eq!((last, found.field(&mut last)), (11, Ok(None)));
    }

    #[test]
    fn a_list_is_no_longer_than_the_bytes() {
        assert_eq!(
            Compact::new(&[0xf5, 0xff, 0xff, 0x7f, 0]).list(),
            Err(Trouble::Short)
        );
        assert!(check_struct(&[0x19, 0xf5, 0xff, 0xff, 0x7f, 0, 0]).is_err());
    }

    #[test]
    fn nesting_has_an_end() {
        assert!(check_struct(&[0x1c; 1000]).is_err());
        assert!(check_struct(&[0x19; 1000]).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_struct_or_are_not(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = check_struct(&bytes);
        }
    }
}
