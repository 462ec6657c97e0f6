//! Token weights: (1 + ln tf) * ln(1 + N / df), for N documents of which df hold the token.
//!
//! A table holds the exact document frequency of every token of two documents or more; a token that it lacks
//! weighs what a token of one document weighs. Most tokens of a corpus are in one document, so the table is
//! shorter than the vocabulary. All numbers are little-endian:
//!
//! ```text
//! magic (8 bytes) | N (8) | number of lines (8) | zeros (40) | lines (64 each): 8 entries, 0 for a free one
//! entry: document frequency (4 bytes), then the low 32 bits of the token (4)
//! ```
//!
//! The high bits of a token name its line, which holds six entries on average; what finds it full stands in
//! the next one. So a token takes eleven bytes and costs one wait for memory. What is not exact are 32 of a
//! token's bits: of a billion tokens that the table lacks, one or two have the line and the bits of an entry and
//! weigh less than they should. Workers map the bytes of one file; nothing is copied or unpacked.

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt8Type};
use arrow_array::{Array, ArrayRef, UInt8Array, make_array};
use arrow_buffer::MutableBuffer;
use arrow_data::ArrayData;
use arrow_pyarrow::PyArrowType;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::bag::Bag;
use crate::ln::ln;

const MAGIC: [u8; 8] = *b"idf-df-1";
const PER_LINE: usize = 6; // of 8
const DAMAGED: &str = "The idf table is damaged or of another version. Build it again with `IdfBuilder`.";

/// Document frequencies and counts whose logarithms are kept at hand.
const AT_HAND: u32 = 4096;
const COUNTS_AT_HAND: u32 = 256;
/// Tokens whose lines are fetched together.
const TOGETHER: usize = 64;

type Line = [[u8; 8]; 8];

/// The line of a token among those that are any token's; it ascends with the token.
#[inline]
fn line(token: u64, n_lines: usize) -> usize {
    ((u128::from(token) * n_lines as u128) >> 64) as usize
}

/// The header and the lines of the table of these (token, document frequency), which are sorted here.
fn table(tokens: &mut [(u64, u32)], n_documents: u64) -> Result<Vec<Line>, String> {
    tokens.sort_unstable();
    if let Some(twice) = tokens.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        return Err(format!(
            "Token {} comes twice. Pass each token of the vocabulary once.",
            twice[0].0.cast_signed()
        ));
    }
    if let Some(&(token, frequency)) = tokens.iter().find(|row| u64::from(row.1) > n_documents) {
        return Err(format!(
            "Token {} is in {frequency} of {n_documents} documents. Count the vocabulary again.",
            token.cast_signed()
        ));
    }
    let n_lines = tokens.len() / PER_LINE + 1;
    let mut table = vec![Line::default(); n_lines + 1];
    table[0][..3].copy_from_slice(&[MAGIC, n_documents.to_le_bytes(), (n_lines as u64).to_le_bytes()]);
    let mut next = 0; // the first free entry
    for &(token, frequency) in &*tokens {
        next = next.max(8 * (line(token, n_lines) + 1));
        if next == 8 * table.len() {
            table.push(Line::default());
        }
        let [a, b, c, d] = frequency.to_le_bytes();
        let [e, f, g, h] = (token as u32).to_le_bytes();
        table[next / 8][next % 8] = [a, b, c, d, e, f, g, h];
        next += 1;
    }
    table.push(Line::default()); // a free entry ends every search
    Ok(table)
}

/// Turns counts into weights with one table.
pub struct Weights<'a> {
    n_documents: f64,
    /// How many lines are any token's; those behind them have what the last ones had no room for.
    n_lines: usize,
    lines: &'a [Line],
    /// The idf of document frequencies from one on.
    idf: Vec<f64>,
    /// 1 + ln tf of counts.
    damped: Vec<f64>,
}

impl<'a> Weights<'a> {
    pub fn new(table: &'a [u8]) -> Result<Self, String> {
        Self::parsed(table).ok_or_else(|| DAMAGED.to_owned())
    }

    fn parsed(table: &'a [u8]) -> Option<Self> {
        let (entries, []) = table.as_chunks::<8>() else {
            return None;
        };
        let (lines, []) = entries.as_chunks::<8>() else {
            return None;
        };
        let ([magic, n_documents, n_lines, ..], lines) = lines.split_first()?;
        let n_lines = usize::try_from(u64::from_le_bytes(*n_lines)).ok()?;
        let n_documents = u64::from_le_bytes(*n_documents) as f64;
        let whole =
            *magic == MAGIC && (1..lines.len()).contains(&n_lines) && *lines.last()? == Line::default();
        whole.then(|| Self {
            n_documents,
            n_lines,
            lines,
            idf: (1..=AT_HAND).map(|df| idf(n_documents, df)).collect(),
            damped: (0..COUNTS_AT_HAND).map(damped).collect(),
        })
    }

    /// The weight of each token of `bag`, in `weights`.
    pub fn of(&self, bag: &Bag, weights: &mut Vec<f64>) -> Result<(), String> {
        weights.clear();
        weights.reserve(bag.tokens.len());
        for (tokens, counts) in bag.tokens.chunks(TOGETHER).zip(bag.counts.chunks(TOGETHER)) {
            self.fetch(tokens);
            for (&token, &count) in tokens.iter().zip(counts) {
                let frequency = self.document_frequency(token).ok_or(DAMAGED)?;
                let tf = self.damped.get(count as usize).copied();
                let idf = self.idf.get(frequency as usize - 1).copied();
                weights.push(
                    tf.unwrap_or_else(|| damped(count))
                        * idf.unwrap_or_else(|| self::idf(self.n_documents, frequency)),
                );
            }
        }
        Ok(())
    }

    /// Looks at the lines of `tokens`. A large table lies in no near cache: here no step waits for another,
    /// where a search waits for its line before it is known where the next one begins.
    #[inline]
    fn fetch(&self, tokens: &[u64]) {
        let bytes = tokens
            .iter()
            .map(|&token| self.lines[line(token, self.n_lines)][7][0]);
        std::hint::black_box(bytes.fold(0, |seen, byte| seen ^ byte));
    }

    /// One for a token that the table lacks; `None` where the table is damaged.
    #[inline]
    fn document_frequency(&self, token: u64) -> Option<u32> {
        for entries in &self.lines[line(token, self.n_lines)..] {
            let mut frequency = 0;
            for entry in entries.map(u64::from_le_bytes) {
                let is_its = (entry >> 32) as u32 == token as u32;
                frequency = if is_its {
                    frequency.max(entry as u32)
                } else {
                    frequency
                };
            }
            if frequency > 0 {
                return Some(frequency);
            }
            if entries[7] == [0; 8] {
                return Some(1);
            }
        }
        None
    }
}

fn idf(n_documents: f64, document_frequency: u32) -> f64 {
    ln(1.0 + n_documents / f64::from(document_frequency))
}

fn damped(count: u32) -> f64 {
    if count > 1 {
        1.0 + ln(f64::from(count))
    } else {
        1.0
    }
}

/// The bytes of a table, no line of which lies in two of the processor's.
fn aligned(table: &[Line]) -> UInt8Array {
    let bytes = table.as_flattened().as_flattened();
    let mut aligned = MutableBuffer::new(bytes.len());
    aligned.extend_from_slice(bytes);
    UInt8Array::new(aligned.into(), None)
}

/// The bytes of a table that Python passes on.
pub fn table_bytes(table: ArrayData) -> Result<UInt8Array, String> {
    make_array(table)
        .as_primitive_opt::<UInt8Type>()
        .filter(|bytes| bytes.null_count() == 0)
        .cloned()
        .ok_or_else(|| DAMAGED.to_owned())
}

/// Gathers the rows of a vocabulary in any order: 16 bytes a token of two documents or more.
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
            return Err("Tokens and document frequencies are int64 arrays. Cast them first.".into());
        };
        if tokens.len() != frequencies.len() || tokens.null_count() + frequencies.null_count() > 0 {
            return Err(
                "Tokens and document frequencies differ in length or hold nulls. Pass one frequency a token."
                    .into(),
            );
        }
        for (&token, &frequency) in tokens.values().iter().zip(frequencies.values()) {
            let frequency = u32::try_from(frequency).ok().filter(|&it| it > 0).ok_or_else(|| {
                format!("Token {token} is in {frequency} documents, and an idf table counts 1 to {}. Count the vocabulary again, or split the group.", u32::MAX)
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
        py.detach(|| self.append(&tokens, &frequencies))
            .map_err(PyValueError::new_err)
    }

    fn finish(&mut self, py: Python<'_>, n_documents: u64) -> PyResult<PyArrowType<ArrayData>> {
        let mut tokens = std::mem::take(&mut self.tokens);
        py.detach(|| table(&mut tokens, n_documents))
            .map(|lines| PyArrowType(aligned(&lines).into_data()))
            .map_err(PyValueError::new_err)
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<IdfBuilder>()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use proptest::prelude::*;

    fn table_of(frequencies: &BTreeMap<u64, u32>, n_documents: u64) -> Vec<u8> {
        let mut tokens: Vec<_> = frequencies
            .iter()
            .map(|(&token, &df)| (token, df))
            .rev()
            .collect();
        table(&mut tokens, n_documents)
            .unwrap()
            .as_flattened()
            .as_flattened()
            .to_vec()
    }

    #[test]
    fn a_weight_is_damped_count_times_idf() {
        let table = table_of(&[(3, 10), (u64::MAX, 5000)].into(), 6000);
        let bag = Bag {
            tokens: vec![3, 4, u64::MAX],
            counts: vec![1, 2, 1000],
            n_tokens: 1003,
        };
        let mut weights = Vec::new();
        Weights::new(&table).unwrap().of(&bag, &mut weights).unwrap();
        let expected = [
            601f64.ln(),
            (1.0 + 2f64.ln()) * 6001f64.ln(),
            (1.0 + 1000f64.ln()) * 2.2f64.ln(),
        ];
        for (weight, expected) in weights.iter().zip(expected) {
            assert!((weight - expected).abs() < 1e-12);
        }
    }

    #[test]
    fn every_token_of_many_is_found() {
        let tokens: BTreeMap<u64, u32> = (0..100_000)
            .map(|i| (crate::hash::mix(i, 5), 2 + (i % 70_000) as u32))
            .collect();
        let table = table_of(&tokens, 70_001);
        assert!(table.len() <= 11 * tokens.len() + 512);
        let weights = Weights::new(&table).unwrap();
        for (&token, &frequency) in &tokens {
            assert_eq!(weights.document_frequency(token), Some(frequency));
            assert_eq!(weights.document_frequency(crate::hash::mix(token, 6)), Some(1));
        }
    }

    proptest! {
        #[test]
        fn what_is_in_the_table_is_found_and_nothing_else(
            tokens in proptest::collection::btree_map(0u64..400, 2u32..u32::MAX, 0..200), shift in 0u32..56,
        ) {
            let tokens: BTreeMap<u64, u32> = tokens.iter().map(|(&token, &df)| (token << shift | token, df)).collect();
            let table = table_of(&tokens, u64::MAX);
            let weights = Weights::new(&table).unwrap();
            for token in (0..400).map(|token| token << shift | token) {
                let expected = tokens.get(&token).copied().unwrap_or(1);
                prop_assert_eq!(weights.document_frequency(token), Some(expected));
            }
        }

        #[test]
        fn a_damaged_table_is_an_error_or_gives_other_weights(at in 0usize..900, byte: u8, cut in 0usize..900) {
            let mut table = table_of(&(0..90).map(|i| (crate::hash::mix(i, 1), 3)).collect(), 9);
            prop_assert!(Weights::new(&table[..cut.min(table.len() - 1)]).is_err());
            let at = at % table.len();
            table[at] = byte;
            if let Ok(weights) = Weights::new(&table) {
                for token in 0..200 {
                    weights.document_frequency(crate::hash::mix(token, 1));
                }
            }
        }
    }

    #[test]
    fn what_no_vocabulary_counts_is_refused() {
        assert!(
            table(&mut [(7, 3), (7, 4)], 9)
                .unwrap_err()
                .contains("comes twice")
        );
        assert!(
            table(&mut [(7, 10)], 9)
                .unwrap_err()
                .contains("10 of 9 documents")
        );
    }
}
