//! Rows gathered from pages into one Arrow array.
//!
//! Values of variable length are appended to one buffer, or read into it; rows that the array readers decoded stay
//! separate arrays until the end.

use std::sync::Arc;

use arrow_array::types::{BinaryType, ByteArrayType, LargeBinaryType, LargeUtf8Type, Utf8Type};
use arrow_array::{Array, ArrayRef, GenericByteArray, OffsetSizeTrait, new_empty_array};
use arrow_buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::DataType;
use arrow_select::concat::concat;

use super::space::Space;

const MOST_EXPECTED: usize = 1 << 30; // bytes allocated in advance

/// An array under construction.
pub struct Rows {
    kind: DataType,
    ends: Vec<i64>,
    data: Space,
    /// Whether each value is valid.
    nulls: Vec<usize>,
    arrays: Vec<ArrayRef>,
    expected: usize,
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
            arrays: Vec::new(),
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

    /// Bytes of the values appended since the last array.
    pub fn n_bytes(&self) -> usize {
        self.data.len()
    }

    pub fn push_null(&mut self) {
        self.nulls.push(self.ends.len());
        self.ends.push(self.data.len() as i64);
    }

    /// Appends an array of rows.
    pub fn push_array(&mut self, array: ArrayRef) -> Result<(), String> {
        self.flush()?;
        self.arrays.push(array);
        Ok(())
    }

    /// All rows in the order of their appends.
    pub fn finish(mut self) -> Result<ArrayRef, String> {
        self.flush()?;
        match &self.arrays[..] {
            [] => Ok(new_empty_array(&self.kind)),
            [one] => Ok(Arc::clone(one)),
            several => {
                let several: Vec<&dyn Array> = several.iter().map(AsRef::as_ref).collect();
                concat(&several).map_err(|error| error.to_string())
            }
        }
    }

    fn flush(&mut self) -> Result<(), String> {
        if self.ends.is_empty() {
            return Ok(());
        }
        let (ends, data) = (std::mem::take(&mut self.ends), std::mem::take(&mut self.data));
        let nulls = std::mem::take(&mut self.nulls);
        let nulls = (!nulls.is_empty()).then(|| {
            let mut valid = vec![true; ends.len()];
            nulls.iter().for_each(|&number| valid[number] = false);
            NullBuffer::from(valid)
        });
        let made = match self.kind {
            DataType::Binary => build::<BinaryType>(&ends, data, nulls),
            DataType::LargeBinary => build::<LargeBinaryType>(&ends, data, nulls),
            DataType::Utf8 => build::<Utf8Type>(&ends, data, nulls),
            DataType::LargeUtf8 => build::<LargeUtf8Type>(&ends, data, nulls),
            ref other => Err(format!("{other} is not a type of bytes")),
        };
        self.arrays.push(made?);
        Ok(())
    }
}

fn build<T: ByteArrayType>(ends: &[i64], data: Space, nulls: Option<NullBuffer>) -> Result<ArrayRef, String> {
    let mut offsets = Vec::with_capacity(ends.len() + 1);
    offsets.push(T::Offset::default());
    for &end in ends {
        offsets
            .push(offset::<T::Offset>(end).ok_or("they take more than 2 GiB: request fewer rows at a time")?);
    }
    let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
    GenericByteArray::<T>::try_new(offsets, data.into_buffer(), nulls)
        .map(|array| Arc::new(array) as ArrayRef)
        .map_err(|error| error.to_string())
}

fn offset<O: OffsetSizeTrait>(end: i64) -> Option<O> {
    O::from_usize(usize::try_from(end).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::cast::AsArray;
    use arrow_array::{BinaryArray, StringArray};

    #[test]
    fn bytes_and_arrays_keep_their_order() {
        let mut rows = Rows::new(DataType::Binary);
        rows.push_bytes(b"a");
        rows.push_bytes(b"");
        rows.push_array(Arc::new(BinaryArray::from_opt_vec(vec![None, Some(b"b")])))
            .unwrap();
        rows.push_null();
        rows.push_bytes(b"cd");
        let found = rows.finish().unwrap();
        let expected =
            BinaryArray::from_opt_vec(vec![Some(b"a"), Some(b""), None, Some(b"b"), None, Some(b"cd")]);
        assert_eq!(found.as_binary::<i32>(), &expected);
    }

    #[test]
    fn no_rows_are_an_empty_array_of_the_type() {
        assert_eq!(
            Rows::new(DataType::Int16).finish().unwrap().data_type(),
            &DataType::Int16
        );
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
        assert!(rows.finish().is_err());
    }
}
