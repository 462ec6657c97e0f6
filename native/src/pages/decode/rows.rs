//! Byte strings gathered from pages into one Arrow array of the requested type.
//!
//! Values are appended to one buffer, or read into it, whichever encoding and type their pages have.

use std::fmt;
use std::sync::Arc;

use arrow_array::types::{BinaryType, ByteArrayType, LargeBinaryType, LargeUtf8Type, Utf8Type};
use arrow_array::{ArrayRef, GenericByteArray, OffsetSizeTrait};
use arrow_buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::DataType;

use super::space::Space;

const MOST_EXPECTED: usize = 1 << 30; // bytes allocated in advance

/// An array of byte strings under construction.
pub struct Rows {
    kind: DataType,
    ends: Vec<i64>,
    data: Space,
    /// The numbers of the nulls, ascending.
    nulls: Vec<usize>,
    expected: usize,
}

/// Why rows do not form an array of the requested type.
#[derive(Debug)]
pub enum Misfit {
    /// They have more bytes than the type's offsets count.
    TooLong,
    /// A value is not UTF-8, and the type is one of strings.
    NotUtf8,
    /// The type is not one of byte strings.
    NotBytes,
}

impl fmt::Display for Misfit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::TooLong => "its values take more than 2 GiB",
            Self::NotUtf8 => "a value is not UTF-8",
            Self::NotBytes => "its values are not byte strings",
        })
    }
}

/// Whether the type's values are byte strings.
pub fn of_bytes(kind: &DataType) -> bool {
    matches!(
        kind,
        DataType::Binary | DataType::LargeBinary | DataType::Utf8 | DataType::LargeUtf8
    )
}

impl Rows {
    pub fn new(kind: DataType) -> Self {
        Self {
            kind,
            ends: Vec::new(),
            data: Space::default(),
            nulls: Vec::new(),
            expected: 0,
        }
    }

    /// Announces the number of values, so that the first one's length determines an allocation.
    pub fn expect(&mut self, n: usize) {
        self.expected = n;
    }

    pub fn push_bytes(&mut self, value: &[u8]) {
        self.make_room(value.len());
        self.data.next(value.len()).copy_from_slice(value);
        self.data.keep(value.len());
        self.ends.push(self.data.len() as i64);
    }

    /// Lets `fill` write a value of `length` bytes at its final place, and keeps it if `fill` returns true.
    pub fn push_filled<E>(
        &mut self,
        length: usize,
        fill: impl FnOnce(&mut [u8]) -> Result<bool, E>,
    ) -> Result<bool, E> {
        self.make_room(length);
        let kept = fill(self.data.next(length))?;
        if kept {
            self.data.keep(length);
            self.ends.push(self.data.len() as i64);
        }
        Ok(kept)
    }

    fn make_room(&mut self, length: usize) {
        if self.ends.is_empty() {
            self.ends.reserve(self.expected);
            self.data
                .expect(self.expected.saturating_mul(length).min(MOST_EXPECTED));
        }
    }

    /// Bytes of all values.
    pub fn n_bytes(&self) -> usize {
        self.data.len()
    }

    pub fn push_null(&mut self) {
        self.nulls.push(self.ends.len());
        self.ends.push(self.data.len() as i64);
    }

    /// All rows in the order of their appends.
    pub fn finish(self) -> Result<ArrayRef, Misfit> {
        match self.kind {
            DataType::Binary => self.build::<BinaryType>(),
            DataType::LargeBinary => self.build::<LargeBinaryType>(),
            DataType::Utf8 => self.build::<Utf8Type>(),
            DataType::LargeUtf8 => self.build::<LargeUtf8Type>(),
            _ => Err(Misfit::NotBytes),
        }
    }

    fn build<T: ByteArrayType>(self) -> Result<ArrayRef, Misfit> {
        let Self {
            ends, data, nulls, ..
        } = self;
        let nulls = (!nulls.is_empty()).then(|| {
            let mut valid = vec![true; ends.len()];
            nulls.iter().for_each(|&number| valid[number] = false);
            NullBuffer::from(valid)
        });
        let mut offsets = Vec::with_capacity(ends.len() + 1);
        offsets.push(T::Offset::default());
        for end in ends {
            offsets.push(offset::<T::Offset>(end).ok_or(Misfit::TooLong)?);
        }
        let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
        // Offsets, nulls and bytes fit each other, so only the check of UTF-8 can fail.
        GenericByteArray::<T>::try_new(offsets, data.into_buffer(), nulls)
            .map(|array| Arc::new(array) as ArrayRef)
            .map_err(|_| Misfit::NotUtf8)
    }
}

fn offset<O: OffsetSizeTrait>(end: i64) -> Option<O> {
    O::from_usize(usize::try_from(end).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::cast::AsArray;
    use arrow_array::{Array, LargeBinaryArray, StringArray};

    #[test]
    fn values_and_nulls_keep_their_order_in_the_requested_type() {
        let mut rows = Rows::new(DataType::LargeBinary);
        rows.push_bytes(b"a");
        rows.push_null();
        rows.push_bytes(b"");
        rows.push_bytes(b"cd");
        let array = rows.finish().unwrap();
        let expected = LargeBinaryArray::from_opt_vec(vec![Some(b"a"), None, Some(b""), Some(b"cd")]);
        assert_eq!(array.as_binary::<i64>(), &expected);
    }

    #[test]
    fn no_rows_are_an_empty_array_of_the_type() {
        let array = Rows::new(DataType::LargeUtf8).finish().unwrap();
        assert_eq!((array.data_type(), array.len()), (&DataType::LargeUtf8, 0));
    }

    #[test]
    fn a_type_without_byte_strings_is_refused() {
        assert!(matches!(
            Rows::new(DataType::Int16).finish(),
            Err(Misfit::NotBytes)
        ));
    }

    #[test]
    fn invalid_utf8_is_refused() {
        let mut rows = Rows::new(DataType::Utf8);
        rows.push_bytes("ö".as_bytes());
        assert_eq!(
            rows.finish().unwrap().as_string::<i32>(),
            &StringArray::from(vec!["ö"])
        );
        let mut rows = Rows::new(DataType::Utf8);
        rows.push_bytes(&[0xff]);
        assert!(matches!(rows.finish(), Err(Misfit::NotUtf8)));
    }
}
