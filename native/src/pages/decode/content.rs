//! What a cache keeps: the rows of a page, for access in any order, or a chunk's dictionary.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;

use super::decoder::Dictionary;
use super::rows::Rows;

const OVERHEAD: usize = 128; // bytes of a page besides its values

/// The rows of a page, or a dictionary.
pub enum Content {
    /// Byte strings in PLAIN encoding, each after its length in 4 bytes, from `begin` on in `bytes`.
    Bytes {
        bytes: Vec<u8>,
        begin: usize,
        /// A zero, then the end of each value, counted from `begin`.
        ends: Vec<u32>,
    },
    Array(ArrayRef),
    /// The dictionary of a column chunk, which any of its pages may need.
    Dictionary(Dictionary),
}

impl Content {
    pub fn bytes(bytes: Vec<u8>, begin: usize, ends: Vec<u32>) -> Self {
        Self::Bytes { bytes, begin, ends }
    }

    /// Its bytes in memory.
    pub fn size(&self) -> usize {
        OVERHEAD
            + match self {
                Self::Bytes { bytes, ends, .. } => bytes.capacity() + 4 * ends.capacity(),
                Self::Array(array) => array.get_buffer_memory_size(),
                Self::Dictionary(dictionary) => dictionary.size(),
            }
    }

    /// The number of rows, none for a dictionary.
    pub fn rows(&self) -> usize {
        match self {
            Self::Bytes { ends, .. } => ends.len().saturating_sub(1),
            Self::Array(array) => array.len(),
            Self::Dictionary(_) => 0,
        }
    }

    /// Appends a row of byte strings to `rows`; `None` for another type or a missing row.
    pub fn append(&self, row: usize, rows: &mut Rows) -> Option<()> {
        match self.value(row)? {
            Some(value) => rows.push_bytes(value),
            None => rows.push_null(),
        }
        Some(())
    }

    /// A row of byte strings: `Some(None)` for null, `None` for another type or a missing row.
    pub fn value(&self, row: usize) -> Option<Option<&[u8]>> {
        match self {
            Self::Bytes { bytes, begin, ends } => {
                let (from, to) = (*ends.get(row)? as usize + 4, *ends.get(row + 1)? as usize);
                Some(Some(bytes.get(begin + from..begin + to)?))
            }
            Self::Dictionary(_) => None,
            Self::Array(array) if row >= array.len() => None,
            Self::Array(array) if array.is_null(row) => Some(None),
            Self::Array(array) => Some(Some(match array.data_type() {
                DataType::Binary => array.as_binary::<i32>().value(row),
                DataType::LargeBinary => array.as_binary::<i64>().value(row),
                DataType::Utf8 => array.as_string::<i32>().value(row).as_bytes(),
                DataType::LargeUtf8 => array.as_string::<i64>().value(row).as_bytes(),
                _ => return None,
            })),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{BinaryArray, Int32Array, LargeStringArray};
    use std::sync::Arc;

    #[test]
    fn a_value_is_a_slice_of_its_page_whatever_holds_it() {
        let plain = Content::bytes(b"xx\x02\0\0\0ab\0\0\0\0".to_vec(), 2, vec![0, 6, 10]);
        assert_eq!(plain.value(0), Some(Some(&b"ab"[..])));
        assert_eq!(plain.value(1), Some(Some(&b""[..])));
        assert_eq!(plain.value(2), None);
        let nulls = Content::Array(Arc::new(BinaryArray::from_opt_vec(vec![Some(b"ab"), None])));
        assert_eq!(
            (nulls.value(0), nulls.value(1)),
            (Some(Some(&b"ab"[..])), Some(None))
        );
        let large = Content::Array(Arc::new(LargeStringArray::from(vec!["ö"])));
        assert_eq!(
            (large.value(0), large.value(1)),
            (Some(Some("ö".as_bytes())), None)
        );
        assert_eq!(Content::Array(Arc::new(Int32Array::from(vec![1]))).value(0), None);
    }
}
