//! The texts of an Arrow array.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;

/// The texts of an array of strings, in order.
pub fn strings(texts: &ArrayRef) -> Result<Box<dyn Iterator<Item = Option<&str>> + '_>, String> {
    match texts.data_type() {
        DataType::Utf8 => Ok(Box::new(texts.as_string::<i32>().iter())),
        DataType::LargeUtf8 => Ok(Box::new(texts.as_string::<i64>().iter())),
        other => Err(format!(
            "The texts are of type {other}. Cast them to string or large_string."
        )),
    }
}
