//! The content fingerprint of rows: one 128-bit hash a row, added over rows modulo 2^128.
//!
//! Addition makes the result independent of row order, batches and partitions, and lets an append add to
//! the sum of the rows before it. Within a row each column contributes a hash seeded with its name, so column
//! order does not matter and a null adds nothing (an added column that is null changes no fingerprint).
//! The sum of a row's columns is hashed once more: without that, swapping two values of one column
//! between rows would go undetected. Integers hash as 64 bits and strings as their bytes, so the physical
//! width an engine chose (`int32` or `int64`, `string` or `large_string`) does not matter either. Decimals hash
//! as their value, so that zeros at the end, which follow from the scale of a type, do not matter.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType,
};
use arrow_array::{Array, ArrayRef, OffsetSizeTrait, RecordBatch};
use arrow_buffer::ArrowNativeType;
use arrow_pyarrow::PyArrowType;
use arrow_schema::{DataType, TimeUnit};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use xxhash_rust::xxh3::{xxh3_64, xxh3_128, xxh3_128_with_seed};

/// The hash of a null in a list, where leaving it out would move the elements behind it.
const NULL_ELEMENT: u128 = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c834;

/// The sum over the rows of `batch` of the hashes of `columns`.
pub fn fingerprint(batch: &RecordBatch, columns: &[String]) -> Result<u128, String> {
    let mut rows = vec![0u128; batch.num_rows()];
    for name in columns {
        let array = batch
            .column_by_name(name)
            .ok_or_else(|| format!("The batch has no column `{name}` to fingerprint."))?;
        let hashes = hash_values(array, xxh3_64(name.as_bytes()))
            .map_err(|kind| format!("Column `{name}` holds {kind}, which has no fingerprint."))?;
        for (row, hash) in rows.iter_mut().zip(hashes) {
            *row = row.wrapping_add(hash.unwrap_or(0));
        }
    }
    Ok(rows
        .iter()
        .fold(0, |sum, row| sum.wrapping_add(xxh3_128(&row.to_le_bytes()))))
}

/// One hash per value, `None` for a null.
fn hash_values(array: &ArrayRef, seed: u64) -> Result<Vec<Option<u128>>, DataType> {
    let integer = |value: i64| xxh3_128_with_seed(&value.to_le_bytes(), seed);
    Ok(match array.data_type() {
        DataType::Utf8 => hash_strings::<i32>(array, seed),
        DataType::LargeUtf8 => hash_strings::<i64>(array, seed),
        DataType::Binary => hash_bytes::<i32>(array, seed),
        DataType::LargeBinary => hash_bytes::<i64>(array, seed),
        DataType::Boolean => array
            .as_boolean()
            .iter()
            .map(|v| v.map(|v| integer(i64::from(v))))
            .collect(),
        DataType::Int8 => each(array.as_primitive::<Int8Type>(), |v| integer(i64::from(v))),
        DataType::Int16 => each(array.as_primitive::<Int16Type>(), |v| integer(i64::from(v))),
        DataType::Int32 => each(array.as_primitive::<Int32Type>(), |v| integer(i64::from(v))),
        DataType::Int64 => each(array.as_primitive::<Int64Type>(), integer),
        DataType::Date32 => each(array.as_primitive::<Date32Type>(), |v| integer(i64::from(v))),
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            each(array.as_primitive::<TimestampMicrosecondType>(), integer)
        }
        DataType::Float32 => each(array.as_primitive::<Float32Type>(), |v| {
            integer(float_bits(f64::from(v)))
        }),
        DataType::Float64 => each(array.as_primitive::<Float64Type>(), |v| integer(float_bits(v))),
        DataType::Decimal128(_, scale) => {
            let hash = |digits: i128| xxh3_128_with_seed(&decimal_bytes(digits, *scale), seed);
            each(array.as_primitive::<Decimal128Type>(), hash)
        }
        DataType::List(_) => hash_lists::<i32>(array, seed)?,
        DataType::LargeList(_) => hash_lists::<i64>(array, seed)?,
        DataType::Struct(_) => hash_structs(array, seed)?,
        DataType::Map(_, _) => hash_maps(array, seed)?,
        DataType::Null => vec![None; array.len()],
        other => return Err(other.clone()),
    })
}

/// The bits of a float; all NaNs are one, and both zeros are one.
fn float_bits(value: f64) -> i64 {
    let canonical = if value.is_nan() { f64::NAN } else { value + 0.0 };
    canonical.to_bits().cast_signed()
}

/// The value `digits * 10^-scale` as its digits without zeros at the end, and their scale.
fn decimal_bytes(mut digits: i128, scale: i8) -> [u8; 17] {
    let mut scale = if digits == 0 { 0 } else { scale };
    while digits != 0 && digits % 10 == 0 {
        digits /= 10;
        scale -= 1;
    }
    let mut bytes = [0u8; 17];
    bytes[..16].copy_from_slice(&digits.to_le_bytes());
    bytes[16] = scale.to_le_bytes()[0];
    bytes
}

fn each<T: arrow_array::ArrowPrimitiveType>(
    array: &arrow_array::PrimitiveArray<T>,
    hash: impl Fn(T::Native) -> u128,
) -> Vec<Option<u128>> {
    array.iter().map(|value| value.map(&hash)).collect()
}

fn hash_strings<O: OffsetSizeTrait>(array: &ArrayRef, seed: u64) -> Vec<Option<u128>> {
    let hash = |value: &str| xxh3_128_with_seed(value.as_bytes(), seed);
    array
        .as_string::<O>()
        .iter()
        .map(|value| value.map(hash))
        .collect()
}

fn hash_bytes<O: OffsetSizeTrait>(array: &ArrayRef, seed: u64) -> Vec<Option<u128>> {
    let hash = |value: &[u8]| xxh3_128_with_seed(value, seed);
    array
        .as_binary::<O>()
        .iter()
        .map(|value| value.map(hash))
        .collect()
}

/// Hashes of lists: elements are folded one after another, so that order and length count.
fn hash_lists<O: OffsetSizeTrait>(array: &ArrayRef, seed: u64) -> Result<Vec<Option<u128>>, DataType> {
    let list = array.as_list::<O>();
    let elements = hash_values(list.values(), seed)?;
    let offsets = list.value_offsets();
    Ok((0..list.len())
        .map(|row| {
            list.is_valid(row).then(|| {
                let span = offsets[row].as_usize()..offsets[row + 1].as_usize();
                fold(&elements[span], seed)
            })
        })
        .collect())
}

fn fold(elements: &[Option<u128>], seed: u64) -> u128 {
    let start = xxh3_128_with_seed(&elements.len().to_le_bytes(), seed);
    elements.iter().fold(start, |state, element| {
        let mut bytes = [0u8; 32];
        bytes[..16].copy_from_slice(&state.to_le_bytes());
        bytes[16..].copy_from_slice(&element.unwrap_or(NULL_ELEMENT).to_le_bytes());
        xxh3_128(&bytes)
    })
}

fn hash_structs(array: &ArrayRef, seed: u64) -> Result<Vec<Option<u128>>, DataType> {
    let structs = array.as_struct();
    let mut sums = vec![0u128; structs.len()];
    for (field, values) in structs.fields().iter().zip(structs.columns()) {
        let hashes = hash_values(values, seed ^ xxh3_64(field.name().as_bytes()))?;
        for (sum, hash) in sums.iter_mut().zip(hashes) {
            *sum = sum.wrapping_add(hash.unwrap_or(0));
        }
    }
    Ok(sums
        .iter()
        .enumerate()
        .map(|(row, sum)| structs.is_valid(row).then(|| xxh3_128(&sum.to_le_bytes())))
        .collect())
}

/// Hashes of maps: entries are added, because engines keep the entries of a map in different orders.
fn hash_maps(array: &ArrayRef, seed: u64) -> Result<Vec<Option<u128>>, DataType> {
    let map = array.as_map();
    let keys = hash_values(map.keys(), seed)?;
    let values = hash_values(map.values(), seed.rotate_left(32))?;
    let offsets = map.value_offsets();
    Ok((0..map.len())
        .map(|row| {
            map.is_valid(row).then(|| {
                let span = offsets[row].as_usize()..offsets[row + 1].as_usize();
                let entries = keys[span.clone()].iter().zip(&values[span]);
                let sum = entries.fold(1u128, |sum, (key, value)| {
                    sum.wrapping_add(fold(&[*key, *value], seed))
                });
                xxh3_128(&sum.to_le_bytes())
            })
        })
        .collect())
}

#[pyfunction]
#[pyo3(name = "fingerprint")]
fn fingerprint_py(
    py: Python<'_>,
    batch: PyArrowType<RecordBatch>,
    columns: Vec<String>,
) -> PyResult<[u8; 16]> {
    py.detach(|| fingerprint(&batch.0, &columns))
        .map(u128::to_le_bytes)
        .map_err(PyValueError::new_err)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(fingerprint_py, module)?)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Decimal128Array, Int32Array, Int64Array, LargeStringArray, RecordBatch, StringArray};
    use proptest::prelude::*;

    use super::*;

    fn batch(rows: &[(Option<String>, i64)]) -> RecordBatch {
        let text: StringArray = rows.iter().map(|row| row.0.clone()).collect();
        let number: Int64Array = rows.iter().map(|row| Some(row.1)).collect();
        RecordBatch::try_from_iter([
            ("text", Arc::new(text) as ArrayRef),
            ("number", Arc::new(number) as ArrayRef),
        ])
        .unwrap()
    }

    fn of(rows: &[(Option<String>, i64)]) -> u128 {
        fingerprint(&batch(rows), &["text".into(), "number".into()]).unwrap()
    }

    proptest! {
        #[test]
        fn order_and_batches_do_not_matter(mut rows in prop::collection::vec((any::<Option<String>>(), any::<i64>()), 0..20), cut in 0usize..20) {
            let whole = of(&rows);
            let cut = cut.min(rows.len());
            prop_assert_eq!(whole, of(&rows[..cut]).wrapping_add(of(&rows[cut..])));
            rows.reverse();
            prop_assert_eq!(whole, of(&rows));
        }
    }

    #[test]
    fn swapping_two_values_of_a_column_changes_it() {
        let (a, b) = (Some("a".to_string()), Some("b".to_string()));
        assert_ne!(of(&[(a.clone(), 1), (b.clone(), 2)]), of(&[(a, 2), (b, 1)]));
    }

    #[test]
    fn the_width_an_engine_chose_does_not_matter() {
        let wide = batch(&[(Some("a".into()), 7)]);
        let narrow = RecordBatch::try_from_iter([
            ("number", Arc::new(Int32Array::from(vec![7])) as ArrayRef),
            ("text", Arc::new(LargeStringArray::from(vec!["a"])) as ArrayRef),
        ])
        .unwrap();
        let columns = ["number".to_string(), "text".to_string()];
        assert_eq!(fingerprint(&wide, &columns), fingerprint(&narrow, &columns));
    }

    fn of_decimals(digits: &[Option<i128>], scale: i8) -> u128 {
        let amounts: Decimal128Array = digits.iter().copied().collect();
        let amounts = amounts.with_precision_and_scale(38, scale).unwrap();
        let batch = RecordBatch::try_from_iter([("amount", Arc::new(amounts) as ArrayRef)]).unwrap();
        fingerprint(&batch, &["amount".into()]).unwrap()
    }

    proptest! {
        #[test]
        fn a_decimal_is_its_value_at_any_scale(digits in -10i128.pow(30)..10i128.pow(30), scale in 0i8..30, zeros in 0u32..8) {
            let padded = of_decimals(&[Some(digits * 10i128.pow(zeros))], scale + zeros as i8);
            prop_assert_eq!(of_decimals(&[Some(digits)], scale), padded);
            prop_assert_ne!(of_decimals(&[Some(digits + 1)], scale), padded);
        }
    }

    #[test]
    fn every_digit_the_sign_the_point_and_nulls_count_in_a_decimal() {
        let most = 10i128.pow(38) - 1;
        let columns = [
            of_decimals(&[Some(most)], 0),
            of_decimals(&[Some(most - 1)], 0),
            of_decimals(&[Some(-most)], 0),
            of_decimals(&[Some(most)], 38),
            of_decimals(&[Some(0)], 38),
            of_decimals(&[None], 0),
        ];
        for (number, sum) in columns.iter().enumerate() {
            assert!(!columns[..number].contains(sum), "{number}");
        }
        assert_eq!(of_decimals(&[Some(0)], 0), of_decimals(&[Some(0)], 38));
    }

    #[test]
    fn a_missing_column_is_named() {
        let message = fingerprint(&batch(&[]), &["nothing".into()]).unwrap_err();
        assert!(message.contains("`nothing`"));
    }
}
