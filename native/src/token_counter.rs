//! How many texts hold each token, how often, and the text of a token: the rows of a vocabulary.
//!
//! A table of millions of tokens lies in no cache, and each token of each text would wait for memory. So what
//! is to be counted is collected in parts, by the first bits of the token, and counted part by part.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_pyarrow::PyArrowType;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rustc_hash::FxHashMap;

use crate::bag::Bag;
use crate::packed_bag::spelled;
use crate::strings::{Binaries, column};

const PART_BITS: u32 = 8; // of a token: the table of a part is that of some thousand tokens
const WAITING: usize = 1 << 12; // of a part, 24 bytes each

/// How many texts hold a token, how often, and the token's own text where it was spelled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub texts: u64,
    pub occurrences: u64,
    pub text: Option<Box<str>>,
}

/// Tokens that begin with the same bits.
#[derive(Default)]
struct Part {
    usages: FxHashMap<u64, Usage>,
    /// (token, texts, occurrences) that are not counted yet.
    waiting: Vec<(u64, u64, u64)>,
}

impl Part {
    fn count(&mut self) {
        for (token, texts, occurrences) in self.waiting.drain(..) {
            let usage = self.usages.entry(token).or_default();
            usage.texts += texts;
            usage.occurrences += occurrences;
        }
    }
}

/// Counts tokens over many texts.
pub struct Counter {
    parts: Vec<Part>,
}

impl Counter {
    pub fn new() -> Self {
        Self {
            parts: (0..1 << PART_BITS).map(|_| Part::default()).collect(),
        }
    }

    /// Tokens counted so far; some of the last ones may be missing.
    pub fn len(&self) -> usize {
        self.parts.iter().map(|part| part.usages.len()).sum()
    }

    /// Counts a text that `copies` documents have, and keeps how its tokens are spelled.
    pub fn add(&mut self, bag: &Bag, spellings: &[u8], copies: u64) -> Result<(), String> {
        for (&token, &count) in bag.tokens.iter().zip(&bag.counts) {
            let part = self.part(token);
            part.waiting.push((token, copies, copies * u64::from(count)));
            if part.waiting.len() == WAITING {
                part.count();
            }
        }
        for spelling in spelled(spellings) {
            let (token, text) = spelling?;
            self.part(token).usages.entry(token).or_default().text = Some(text.into());
        }
        Ok(())
    }

    /// What was counted since the last call, sorted by token.
    pub fn drain(&mut self) -> Vec<(u64, Usage)> {
        let mut rows = Vec::with_capacity(self.len());
        for part in &mut self.parts {
            part.count();
            let begin = rows.len();
            rows.extend(part.usages.drain());
            rows[begin..].sort_unstable_by_key(|row| row.0);
        }
        rows
    }

    fn part(&mut self, token: u64) -> &mut Part {
        &mut self.parts[(token >> (u64::BITS - PART_BITS)) as usize]
    }
}

/// `TokenCounter` of the Python module.
#[pyclass]
struct TokenCounter(Counter);

#[pymethods]
impl TokenCounter {
    #[new]
    fn new() -> Self {
        Self(Counter::new())
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// Counts the rows (bag, spellings, copies).
    #[pyo3(name = "add")]
    fn add_py(&mut self, py: Python<'_>, batch: PyArrowType<RecordBatch>) -> PyResult<()> {
        py.detach(|| self.add(&batch.0)).map_err(PyValueError::new_err)
    }

    fn drain(&mut self, py: Python<'_>) -> PyResult<PyArrowType<RecordBatch>> {
        let rows = py.detach(|| self.0.drain());
        let integers =
            |value: fn(&(u64, Usage)) -> i64| Arc::new(Int64Array::from_iter_values(rows.iter().map(value)));
        let texts: StringArray = rows.iter().map(|row| row.1.text.as_deref()).collect();
        RecordBatch::try_from_iter_with_nullable([
            ("token", integers(|row| row.0.cast_signed()) as ArrayRef, false),
            ("document_frequency", integers(|row| row.1.texts as i64), false),
            ("term_frequency", integers(|row| row.1.occurrences as i64), false),
            ("text", Arc::new(texts), true),
        ])
        .map(PyArrowType)
        .map_err(|error| PyValueError::new_err(error.to_string()))
    }
}

impl TokenCounter {
    fn add(&mut self, batch: &RecordBatch) -> Result<(), String> {
        let bags = Binaries::new(column(batch, "bag")?, "bag")?;
        let spellings = Binaries::new(column(batch, "spellings")?, "spellings")?;
        let copies = column(batch, "copies")?
            .as_primitive_opt::<Int64Type>()
            .filter(|copies| copies.null_count() == 0)
            .ok_or("`copies` is no int64 column with a number for each bag. Pass one.")?;
        for (row, &copies) in copies.values().iter().enumerate() {
            let bag = Bag::unpacked(bags.get(row).unwrap_or_default())?;
            let spellings = spellings.get(row).unwrap_or_default();
            self.0.add(&bag, spellings, copies.cast_unsigned())?;
        }
        Ok(())
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<TokenCounter>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexer::Lexer;
    use xxhash_rust::xxh3::xxh3_64;

    fn bag(text: &str) -> Bag {
        Bag::of(text, Lexer::parse("prose").unwrap(), usize::MAX)
    }

    fn spelling(word: &str) -> Vec<u8> {
        let token = xxh3_64(word.as_bytes()).to_le_bytes();
        [
            &token,
            (word.len() as u32).to_le_bytes().as_slice(),
            word.as_bytes(),
        ]
        .concat()
    }

    #[test]
    fn a_counter_counts_texts_and_occurrences() {
        let mut counter = Counter::new();
        counter.add(&bag("one One two"), &spelling("one"), 1).unwrap();
        counter.add(&bag("one three"), &[], 4).unwrap();
        let usage = |texts, occurrences, text: Option<&str>| Usage {
            texts,
            occurrences,
            text: text.map(Into::into),
        };
        let mut expected = [
            (xxh3_64(b"one"), usage(5, 6, Some("one"))),
            (xxh3_64(b"two"), usage(1, 1, None)),
            (xxh3_64(b"three"), usage(4, 4, None)),
        ];
        expected.sort_unstable_by_key(|row| row.0);
        assert_eq!(counter.drain(), expected);
        counter.add(&bag("one"), &[], 1).unwrap();
        assert_eq!(counter.drain(), [(xxh3_64(b"one"), usage(1, 1, None))]);
    }

    #[test]
    fn more_than_wait_are_counted() {
        let mut counter = Counter::new();
        for _ in 0..WAITING + 3 {
            counter.add(&bag("word"), &[], 1).unwrap();
        }
        assert_eq!(counter.len(), 1);
        assert_eq!(counter.drain()[0].1.texts, WAITING as u64 + 3);
    }
}
