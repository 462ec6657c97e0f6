//! Columns of batches, and Arrow strings and binaries of either width as slices.

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{
    Array, ArrayRef, BinaryArray, Int64Array, LargeBinaryArray, LargeStringArray, ListArray, RecordBatch,
    StringArray,
};
use arrow_schema::DataType;

/// A borrowed array of `string` or `large_string`.
#[derive(Clone, Copy)]
pub enum Strings<'a> {
    Small(&'a StringArray),
    Large(&'a LargeStringArray),
}

impl<'a> Strings<'a> {
    /// `name` is only for the error's sentence.
    pub fn new(array: &'a ArrayRef, name: &str) -> Result<Self, String> {
        match array.data_type() {
            DataType::Utf8 => Ok(Self::Small(array.as_string())),
            DataType::LargeUtf8 => Ok(Self::Large(array.as_string())),
            other => Err(format!("`{name}` holds {other}. Pass strings.")),
        }
    }

    pub fn len(self) -> usize {
        match self {
            Self::Small(array) => array.len(),
            Self::Large(array) => array.len(),
        }
    }

    /// The string at `row`, `None` for a null.
    pub fn get(self, row: usize) -> Option<&'a str> {
        match self {
            Self::Small(array) => array.is_valid(row).then(|| array.value(row)),
            Self::Large(array) => array.is_valid(row).then(|| array.value(row)),
        }
    }

    /// The string at `row`, an error naming the column for a null.
    pub fn required(self, row: usize, name: &str) -> Result<&'a str, String> {
        self.get(row)
            .ok_or_else(|| format!("Row {row} has no `{name}`. Every row needs one."))
    }
}

/// A borrowed array of `binary` or `large_binary`.
#[derive(Clone, Copy)]
pub enum Binaries<'a> {
    Small(&'a BinaryArray),
    Large(&'a LargeBinaryArray),
}

impl<'a> Binaries<'a> {
    /// `name` is only for the error's sentence.
    pub fn new(array: &'a ArrayRef, name: &str) -> Result<Self, String> {
        match array.data_type() {
            DataType::Binary => Ok(Self::Small(array.as_binary())),
            DataType::LargeBinary => Ok(Self::Large(array.as_binary())),
            other => Err(format!("`{name}` holds {other}. Pass binaries.")),
        }
    }

    /// The bytes at `row`, `None` for a null.
    pub fn get(self, row: usize) -> Option<&'a [u8]> {
        match self {
            Self::Small(array) => array.is_valid(row).then(|| array.value(row)),
            Self::Large(array) => array.is_valid(row).then(|| array.value(row)),
        }
    }
}

/// The column `name` of `batch`.
pub fn column<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a ArrayRef, String> {
    batch
        .column_by_name(name)
        .ok_or_else(|| format!("The batch has no column `{name}`."))
}

/// The column `name` of `batch` as strings.
pub fn string_column<'a>(batch: &'a RecordBatch, name: &str) -> Result<Strings<'a>, String> {
    Strings::new(column(batch, name)?, name)
}

/// The column `name` of `batch` with lists of int64.
pub fn int64_lists<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a ListArray, String> {
    column(batch, name)?
        .as_list_opt::<i32>()
        .filter(|lists| lists.values().as_primitive_opt::<Int64Type>().is_some())
        .ok_or_else(|| format!("Column `{name}` does not hold lists of int64. Cast it first."))
}

/// The int64 column `name` of `batch`.
pub fn int64_column<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a Int64Array, String> {
    column(batch, name)?
        .as_primitive_opt::<Int64Type>()
        .ok_or_else(|| format!("Column `{name}` is not int64. Cast it first."))
}
