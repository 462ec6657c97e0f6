//! How many texts hold each token, how often, and the text of a token: the rows of a vocabulary.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, StringArray, make_array};
use arrow_data::ArrayData;
use arrow_pyarrow::PyArrowType;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rustc_hash::FxHashMap;

use crate::lexer::Lexer;
use crate::strings::Strings;
use crate::tally::Tally;

/// How many texts hold a token, how often, and the token's own text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usage {
    pub texts: u64,
    pub occurrences: u64,
    /// `None` for a token longer than the counter's `max_text_bytes`.
    pub text: Option<Box<str>>,
}

/// Counts tokens over many texts.
pub struct Counter {
    lexer: Lexer,
    max_text_bytes: usize,
    /// Where the usage of a token stands in `usages`.
    places: FxHashMap<u64, u32>,
    usages: Vec<(u64, Usage)>,
}

impl Counter {
    pub fn new(lexer: Lexer, max_text_bytes: usize) -> Self {
        Self {
            lexer,
            max_text_bytes,
            places: FxHashMap::default(),
            usages: Vec::new(),
        }
    }

    pub fn len(&self) -> usize {
        self.usages.len()
    }

    /// Counts a text that `copies` documents have.
    pub fn add(&mut self, text: &str, copies: u64) {
        let (lexer, max_text_bytes) = (self.lexer, self.max_text_bytes);
        let mut tally = Tally::new(text.len());
        lexer.each_token(text, |token, words| {
            tally.count(token, || {
                *self.places.entry(token).or_insert_with(|| {
                    let bytes = words.iter().map(|word| word.len() + 1).sum::<usize>() - 1;
                    let text = (bytes <= max_text_bytes).then(|| lexer.canonical(words).into());
                    let usage = Usage {
                        texts: 0,
                        occurrences: 0,
                        text,
                    };
                    self.usages.push((token, usage));
                    (self.usages.len() - 1) as u32
                })
            });
        });
        for counted in tally.counted() {
            let usage = &mut self.usages[counted.tag as usize].1;
            usage.texts += copies;
            usage.occurrences += copies * u64::from(counted.count);
        }
    }

    /// What was counted since the last call, sorted by token.
    pub fn drain(&mut self) -> Vec<(u64, Usage)> {
        self.places.clear();
        let mut rows = std::mem::take(&mut self.usages);
        rows.sort_unstable_by_key(|row| row.0);
        rows
    }
}

/// `TokenCounter` of the Python module.
#[pyclass]
struct TokenCounter(Counter);

#[pymethods]
impl TokenCounter {
    #[new]
    fn new(kind: &str, max_text_bytes: usize) -> PyResult<Self> {
        let lexer = Lexer::parse(kind).map_err(PyValueError::new_err)?;
        Ok(Self(Counter::new(lexer, max_text_bytes)))
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn add(
        &mut self,
        py: Python<'_>,
        texts: PyArrowType<ArrayData>,
        copies: PyArrowType<ArrayData>,
    ) -> PyResult<()> {
        let (texts, copies) = (make_array(texts.0), make_array(copies.0));
        let strings = Strings::new(&texts, "texts").map_err(PyValueError::new_err)?;
        let copies = copies
            .as_primitive_opt::<Int64Type>()
            .filter(|copies| copies.len() == strings.len() && copies.null_count() == 0)
            .ok_or_else(|| {
                PyValueError::new_err("`copies` is no int64 column with a number for each text. Pass one.")
            })?;
        py.detach(|| {
            for (row, &copies) in copies.values().iter().enumerate() {
                if let Some(text) = strings.get(row) {
                    self.0.add(text, copies.cast_unsigned());
                }
            }
        });
        Ok(())
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

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<TokenCounter>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use xxhash_rust::xxh3::xxh3_64;

    #[test]
    fn a_counter_counts_texts_and_occurrences() {
        let mut counter = Counter::new(Lexer::parse("prose").unwrap(), 3);
        counter.add("one One two", 1);
        counter.add("one three", 4);
        let usage = |texts, occurrences, text: Option<&str>| Usage {
            texts,
            occurrences,
            text: text.map(Into::into),
        };
        let mut expected = [
            (xxh3_64(b"one"), usage(5, 6, Some("one"))),
            (xxh3_64(b"two"), usage(1, 1, Some("two"))),
            (xxh3_64(b"three"), usage(4, 4, None)),
        ];
        expected.sort_unstable_by_key(|row| row.0);
        assert_eq!(counter.drain(), expected);
        counter.add("one", 1);
        assert_eq!(counter.drain(), [(xxh3_64(b"one"), usage(1, 1, Some("one")))]);
    }

    #[test]
    fn a_shingle_has_the_text_of_its_words() {
        let mut counter = Counter::new(Lexer::parse("prose-2grams").unwrap(), 7);
        counter.add("One (two) three", 1);
        let mut texts: Vec<_> = counter.drain().into_iter().map(|row| row.1.text).collect();
        texts.sort();
        assert_eq!(texts, [None, Some("one two".into())]);
    }
}
