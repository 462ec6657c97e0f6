//! A table of document frequencies, from which `weights.rs` weighs tokens.
//!
//! It holds the exact frequency of every token of two documents or more; a missing token has the weight of one
//! document. Most tokens of a corpus are in one document, so the table is shorter than the vocabulary. N is the
//! number of documents; all numbers are little-endian:
//!
//! ```text
//! magic (8 bytes) | N (8) | number of hot entries (8) | of lines (8) | zeros (32) | hot entries | lines (64 each)
//! line: 8 entries (8 bytes each), 0 for a free entry
//! entry: document frequency (4 bytes), then the low 32 bits of the token (4)
//! ```
//!
//! The high bits of a token name its line, which holds six entries on average; entries overflow to the next line.
//! The high bits also name a hot entry, a copy of the entry of the most frequent token that shares it: most tokens
//! of a text are found among the hot entries, which stay in a near cache. An entry has only 32 of a token's bits:
//! of a billion tokens, one or two share the line and the bits of another token and get its weight. Workers map
//! the bytes of one file and neither copy nor unpack them.

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, UInt8Array, make_array};
use arrow_buffer::MutableBuffer;
use arrow_data::ArrayData;
use arrow_pyarrow::PyArrowType;
use pyo3::prelude::*;

use crate::dedup::python::detached;

pub const MAGIC: [u8; 8] = *b"idf-df-1";
const PER_LINE: usize = 6; // entries in use, of 8
pub const MOST_HOT: usize = 1 << 16; // 512 KiB

pub type Entry = [u8; 8];
pub type Line = [Entry; 8];

fn entry(token: u64, frequency: u32) -> Entry {
    (u64::from(token as u32) << 32 | u64::from(frequency)).to_le_bytes()
}

/// The position of a token among `n` lines or entries; it ascends with the token.
#[inline]
pub fn place(token: u64, n: usize) -> usize {
    ((u128::from(token) * n as u128) >> 64) as usize
}

/// The header and the lines of the table of `entries` (token, document frequency), which it sorts.
pub fn table(tokens: &mut [(u64, u32)], n_documents: u64) -> Result<Vec<Line>, String> {
    tokens.sort_unstable();
    if let Some(twice) = tokens.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        return Err(format!(
            "Token {} occurs twice. Pass each token of the vocabulary once.",
            twice[0].0.cast_signed()
        ));
    }
    if let Some(&(token, frequency)) = tokens.iter().find(|row| u64::from(row.1) > n_documents) {
        return Err(format!(
            "Token {} is in {frequency} of {n_documents} documents. Count the vocabulary again.",
            token.cast_signed()
        ));
    }
    let n_hot = tokens.len().next_power_of_two().clamp(8, MOST_HOT);
    let n_lines = tokens.len() / PER_LINE + 1;
    let first = 1 + n_hot / 8;
    let mut table = vec![Line::default(); first + n_lines];
    let sizes = [n_documents, n_hot as u64, n_lines as u64].map(u64::to_le_bytes);
    table[0][0] = MAGIC;
    table[0][1..4].copy_from_slice(&sizes);

    let hot = table[1..first].as_flattened_mut();
    for &(token, frequency) in &*tokens {
        let hottest = &mut hot[place(token, n_hot)];
        if frequency > u64::from_le_bytes(*hottest) as u32 {
            *hottest = entry(token, frequency);
        }
    }
    let mut next = 0; // the first free entry
    for &(token, frequency) in &*tokens {
        next = next.max(8 * (first + place(token, n_lines)));
        if next == 8 * table.len() {
            table.push(Line::default());
        }
        table[next / 8][next % 8] = entry(token, frequency);
        next += 1;
    }
    table.push(Line::default()); // a free entry ends every search
    Ok(table)
}

/// The bytes of a table, aligned so that a line lies in one cache line.
fn aligned(table: &[Line]) -> UInt8Array {
    let bytes = table.as_flattened().as_flattened();
    let mut aligned = MutableBuffer::new(bytes.len());
    aligned.extend_from_slice(bytes);
    UInt8Array::new(aligned.into(), None)
}

/// Collects the rows of a vocabulary in any order: 16 bytes for each token of two documents or more.
#[pyclass]
#[derive(Default)]
struct IdfBuilder {
    tokens: Vec<(u64, u32)>,
}

impl IdfBuilder {
    fn append(&mut self, tokens: &ArrayRef, frequencies: &ArrayRef) -> Result<(), String> {
        let (Some(tokens), Some(frequencies)) = (
            tokens.as_primitive_opt::<Int64Type>(),
            frequencies.as_primitive_opt::<Int64Type>(),
        ) else {
            return Err("Tokens and document frequencies must be int64 arrays. Cast them first.".into());
        };
        if tokens.len() != frequencies.len() || tokens.null_count() + frequencies.null_count() > 0 {
            return Err(
                "Tokens and document frequencies differ in length or hold nulls. Pass one frequency per token."
                    .into(),
            );
        }
        for (&token, &frequency) in tokens.values().iter().zip(frequencies.values()) {
            let frequency = u32::try_from(frequency).ok().filter(|&it| it > 0).ok_or_else(|| {
                format!("Token {token} is in {frequency} documents; an idf table holds 1 to {}. Count the vocabulary again, or split the group.", u32::MAX)
            })?;
            if frequency > 1 {
                self.tokens.push((token.cast_unsigned(), frequency));
            }
        }
        Ok(())
    }
}

#[pymethods]
impl IdfBuilder {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    fn add(
        &mut self,
        py: Python<'_>,
        tokens: PyArrowType<ArrayData>,
        document_frequencies: PyArrowType<ArrayData>,
    ) -> PyResult<()> {
        let (tokens, frequencies) = (make_array(tokens.0), make_array(document_frequencies.0));
        detached(py, || self.append(&tokens, &frequencies))
    }

    fn finish(&mut self, py: Python<'_>, n_documents: u64) -> PyResult<PyArrowType<ArrayData>> {
        let mut tokens = std::mem::take(&mut self.tokens);
        detached(py, || table(&mut tokens, n_documents)).map(|lines| PyArrowType(aligned(&lines).into_data()))
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<IdfBuilder>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_frequencies_are_refused() {
        assert!(
            table(&mut [(7, 3), (7, 4)], 9)
                .unwrap_err()
                .contains("occurs twice")
        );
        assert!(
            table(&mut [(7, 10)], 9)
                .unwrap_err()
                .contains("10 of 9 documents")
        );
    }
}
