//! Records of 64-bit numbers, packed into parts by the first bits of their first number.
//!
//! One row per record would cost Spark more than the work on it. Spark shuffles rows (part, records) of many records
//! instead; all records with the same first number are in one part. Numbers are little-endian.

use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray, Int32Array, RecordBatch};

use crate::dedup::strings::{Binaries, column};

const PART_BITS: u32 = 12;
const NUMBER_BYTES: usize = 8;

/// Packed records, by part.
pub struct Parts {
    parts: Vec<Vec<u8>>,
    held: usize,
}

impl Parts {
    pub fn new() -> Self {
        Self {
            parts: vec![Vec::new(); 1 << PART_BITS],
            held: 0,
        }
    }

    /// The number of records.
    pub fn held(&self) -> usize {
        self.held
    }

    #[inline]
    pub fn push<const N: usize>(&mut self, record: [i64; N]) {
        let part = &mut self.parts[(record[0].cast_unsigned() >> (u64::BITS - PART_BITS)) as usize];
        part.extend_from_slice(record.map(i64::to_le_bytes).as_flattened());
        self.held += 1;
    }

    /// Remove all records: (number, packed records) of each part that has any.
    pub fn drain(&mut self) -> Vec<(i32, Vec<u8>)> {
        self.held = 0;
        (0..)
            .zip(&mut self.parts)
            .filter(|(_, part)| !part.is_empty())
            .map(|(number, part)| (number, std::mem::take(part)))
            .collect()
    }

    /// The result of `drain` as rows (part, records).
    pub fn rows(&mut self) -> Result<RecordBatch, String> {
        let (numbers, packed): (Vec<_>, Vec<_>) = self.drain().into_iter().unzip();
        RecordBatch::try_from_iter([
            ("part", Arc::new(Int32Array::from(numbers)) as ArrayRef),
            ("records", Arc::new(BinaryArray::from_iter_values(packed))),
        ])
        .map_err(|error| error.to_string())
    }
}

/// All records in a batch's column `records`.
pub fn records<const N: usize>(batch: &RecordBatch) -> Result<Vec<[i64; N]>, String> {
    let packed = Binaries::new(column(batch, "records")?, "records")?;
    let mut records = Vec::new();
    for row in 0..batch.num_rows() {
        let numbers = unpacked(packed.get(row).unwrap_or_default())?;
        let (found, rest) = numbers.as_chunks::<N>();
        if !rest.is_empty() {
            return Err(format!(
                "`records` of row {row} does not hold records of {N} numbers. Make it again."
            ));
        }
        records.extend_from_slice(found);
    }
    Ok(records)
}

/// Numbers of eight bytes each.
pub fn unpacked(packed: &[u8]) -> Result<Vec<i64>, String> {
    let (numbers, []) = packed.as_chunks::<NUMBER_BYTES>() else {
        return Err(format!(
            "{} bytes are not a multiple of {NUMBER_BYTES}. Make the numbers again.",
            packed.len()
        ));
    };
    Ok(numbers.iter().map(|bytes| i64::from_le_bytes(*bytes)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int32Type;

    #[test]
    fn first_bits_choose_the_part_and_records_are_unchanged() {
        let mut parts = Parts::new();
        let given = [[-1, 4], [3, -9], [i64::MIN, 5], [-1, 6]];
        given.iter().for_each(|&record| parts.push(record));
        assert_eq!(parts.held(), 4);
        let rows = parts.rows().unwrap();
        assert_eq!(
            rows.column(0).as_primitive::<Int32Type>().values(),
            &[0, 2048, 4095]
        );
        assert_eq!(
            records::<2>(&rows).unwrap(),
            [[3, -9], [i64::MIN, 5], [-1, 4], [-1, 6]]
        );
        assert_eq!((parts.held(), parts.rows().unwrap().num_rows()), (0, 0));
    }

    #[test]
    fn records_of_another_length_are_refused() {
        let mut parts = Parts::new();
        parts.push([1, 2]);
        assert!(
            records::<4>(&parts.rows().unwrap())
                .unwrap_err()
                .contains("4 numbers")
        );
        assert!(unpacked(&[0; 19]).unwrap_err().contains("19 bytes"));
    }
}
