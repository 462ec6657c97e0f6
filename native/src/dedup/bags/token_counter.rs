//! The rows of a vocabulary: for each token the number of its texts and of its occurrences, and its own text.
//!
//! A table of millions of tokens does not fit in a cache, and each token of each text would wait for memory. So
//! tokens are collected in parts, by their first bits, and counted part by part. The counts of a part, to merge
//! with the counts of other counters, are bytes:
//!
//! ```text
//! token (8 bytes) | texts | occurrences | bytes of the text plus one, 0 for none | text | token ...
//! ```
//!
//! Numbers have seven bits per byte, the lowest first, and set the eighth if more follow.

use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, Int64Builder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, Int32Array, RecordBatch};
use arrow_pyarrow::PyArrowType;
use pyo3::prelude::*;
use rustc_hash::FxHashMap;

use super::bag::Bag;
use super::packed_bag::spelled;
use crate::dedup::python::{Batch, detached};
use crate::dedup::strings::{Binaries, column, int64_column};

const PART_BITS: u32 = 8; // of a token: a part's table has some thousand tokens
const WAITING: usize = 1 << 12; // uncounted tokens of a part, 24 bytes each

/// The number of texts with a token and of its occurrences, and its text if it was spelled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub texts: u64,
    pub occurrences: u64,
    pub text: Option<Box<str>>,
}

impl Usage {
    fn pack(&self, token: u64, packed: &mut Vec<u8>) {
        let text = self.text.as_deref().unwrap_or_default();
        packed.extend(token.to_le_bytes());
        push_number(packed, self.texts);
        push_number(packed, self.occurrences);
        push_number(packed, self.text.as_ref().map_or(0, |text| text.len() as u64 + 1));
        packed.extend(text.as_bytes());
    }
}

fn push_number(packed: &mut Vec<u8>, mut number: u64) {
    while number > 0x7f {
        packed.push(number as u8 | 0x80);
        number >>= 7;
    }
    packed.push(number as u8);
}

fn pop_number(packed: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let (byte, rest) = packed.split_first()?;
        *packed = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// The packed counts of a token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counted<'a> {
    texts: u64,
    occurrences: u64,
    text: Option<&'a str>,
}

impl<'a> Counted<'a> {
    /// The next token of packed counts.
    fn pop(packed: &mut &'a [u8]) -> Option<(u64, Self)> {
        let (token, rest) = packed.split_first_chunk()?;
        *packed = rest;
        let (texts, occurrences) = (pop_number(packed)?, pop_number(packed)?);
        let text = match usize::try_from(pop_number(packed)?).ok()?.checked_sub(1) {
            None => None,
            Some(bytes) => {
                let (text, rest) = packed.split_at_checked(bytes)?;
                *packed = rest;
                Some(std::str::from_utf8(text).ok()?)
            }
        };
        let counted = Self {
            texts,
            occurrences,
            text,
        };
        Some((u64::from_le_bytes(*token), counted))
    }

    fn add(&mut self, other: Self) {
        self.texts += other.texts;
        self.occurrences += other.occurrences;
        self.text = match (self.text, other.text) {
            (Some(one), Some(two)) => Some(one.min(two)),
            (one, two) => one.or(two),
        };
    }
}

/// The tokens of the packed counts of one part, each once, ascending.
fn merged<'a>(counts: impl Iterator<Item = &'a [u8]>) -> Result<Vec<(u64, Counted<'a>)>, String> {
    let mut tokens: FxHashMap<u64, Counted<'a>> = FxHashMap::default();
    for mut packed in counts {
        while !packed.is_empty() {
            let (token, counted) =
                Counted::pop(&mut packed).ok_or("Invalid `counts`. Count again with `TokenCounter`.")?;
            tokens.entry(token).or_default().add(counted);
        }
    }
    let mut tokens: Vec<_> = tokens.into_iter().collect();
    tokens.sort_unstable_by_key(|row| row.0);
    Ok(tokens)
}

/// The rows (part, counts) of whole parts, sorted by part, as rows of a vocabulary.
///
/// A token in at least `text_documents` texts has its text, if it was spelled.
fn merge_counts(batch: &RecordBatch, text_documents: u64) -> Result<RecordBatch, String> {
    let parts = column(batch, "part")?
        .as_primitive_opt::<Int32Type>()
        .ok_or("Column `part` is not int32. Cast it first.")?;
    let counts = Binaries::new(column(batch, "counts")?, "counts")?;
    let (mut tokens, mut texts) = (Int64Builder::new(), StringBuilder::new());
    let (mut documents, mut occurrences) = (Int64Builder::new(), Int64Builder::new());
    let mut begin = 0;
    for part in parts.values().chunk_by(|one, next| one == next) {
        let rows = begin..begin + part.len();
        begin = rows.end;
        for (token, counted) in merged(rows.map(|row| counts.get(row).unwrap_or_default()))? {
            tokens.append_value(token.cast_signed());
            documents.append_value(counted.texts.cast_signed());
            occurrences.append_value(counted.occurrences.cast_signed());
            texts.append_option(counted.text.filter(|_| counted.texts >= text_documents));
        }
    }
    RecordBatch::try_from_iter_with_nullable([
        ("token", Arc::new(tokens.finish()) as ArrayRef, false),
        ("document_frequency", Arc::new(documents.finish()), false),
        ("term_frequency", Arc::new(occurrences.finish()), false),
        ("text", Arc::new(texts.finish()), true),
    ])
    .map_err(|error| error.to_string())
}

/// Tokens with the same first bits.
#[derive(Default)]
struct Part {
    usages: FxHashMap<u64, Usage>,
    /// (token, texts, occurrences) to count later.
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

    /// Number of tokens counted so far, except some of the last ones.
    pub fn len(&self) -> usize {
        self.parts.iter().map(|part| part.usages.len()).sum()
    }

    /// Counts a text that `copies` documents have, and keeps the texts of its tokens.
    pub fn add(&mut self, bag: &Bag, token_texts: &[u8], copies: u64) -> Result<(), String> {
        for (&token, &count) in bag.tokens.iter().zip(&bag.counts) {
            let part = self.part(token);
            part.waiting.push((token, copies, copies * u64::from(count)));
            if part.waiting.len() == WAITING {
                part.count();
            }
        }
        for spelling in spelled(token_texts) {
            let (token, text) = spelling?;
            self.part(token).usages.entry(token).or_default().text = Some(text.into());
        }
        Ok(())
    }

    /// The counts since the last call of each part that has tokens.
    pub fn drain(&mut self) -> impl Iterator<Item = (usize, Vec<u8>)> {
        self.parts.iter_mut().enumerate().filter_map(|(number, part)| {
            part.count();
            let mut packed = Vec::with_capacity(part.usages.len() * 16);
            for (token, usage) in part.usages.drain() {
                usage.pack(token, &mut packed);
            }
            (!packed.is_empty()).then_some((number, packed))
        })
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

    /// Counts the rows (bag, token_texts, copies).
    #[pyo3(name = "add")]
    fn add_py(&mut self, py: Python<'_>, batch: Batch) -> PyResult<()> {
        detached(py, || self.add(&batch.0))
    }

    fn drain(&mut self, py: Python<'_>) -> PyResult<Batch> {
        detached(py, || {
            let (mut numbers, mut counts) = (Vec::new(), BinaryBuilder::new());
            for (number, packed) in self.0.drain() {
                numbers.push(number as i32);
                counts.append_value(packed);
            }
            RecordBatch::try_from_iter([
                ("part", Arc::new(Int32Array::from(numbers)) as ArrayRef),
                ("counts", Arc::new(counts.finish())),
            ])
            .map_err(|error| error.to_string())
        })
        .map(PyArrowType)
    }
}

impl TokenCounter {
    fn add(&mut self, batch: &RecordBatch) -> Result<(), String> {
        let bags = Binaries::new(column(batch, "bag")?, "bag")?;
        let token_texts = Binaries::new(column(batch, "token_texts")?, "token_texts")?;
        let copies = int64_column(batch, "copies")?;
        for (row, &copies) in copies.values().iter().enumerate() {
            let bag = Bag::unpacked(bags.get(row).unwrap_or_default())?;
            let token_texts = token_texts.get(row).unwrap_or_default();
            self.0.add(&bag, token_texts, copies.cast_unsigned())?;
        }
        Ok(())
    }
}

#[pyfunction]
#[pyo3(name = "merge_counts")]
fn merge_counts_py(py: Python<'_>, batch: Batch, text_documents: u64) -> PyResult<Batch> {
    detached(py, || merge_counts(&batch.0, text_documents)).map(PyArrowType)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(merge_counts_py, module)?)?;
    module.add_class::<TokenCounter>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dedup::bags::lexer::Lexer;
    use xxhash_rust::xxh3::xxh3_64;

    fn bag(text: &str) -> Bag {
        let lexer = Lexer::parse("prose").unwrap();
        Bag::of_text(&lexer.fold(text), lexer, usize::MAX, |_, _| ())
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

    /// The merged counts of several drains.
    fn rows(drains: &[Vec<(usize, Vec<u8>)>]) -> Vec<(u64, Counted<'_>)> {
        let parts = drains.iter().flatten();
        let found = merged(parts.map(|(_, counts)| &counts[..])).unwrap();
        for (number, counts) in drains.iter().flatten() {
            let tokens = merged([&counts[..]].into_iter()).unwrap();
            assert!(
                tokens
                    .iter()
                    .all(|row| row.0 >> (u64::BITS - PART_BITS) == *number as u64)
            );
        }
        found
    }

    #[test]
    fn a_counter_counts_texts_and_occurrences_over_drains() {
        let mut counter = Counter::new();
        counter.add(&bag("one One two"), &spelling("one"), 1).unwrap();
        counter.add(&bag("one three"), &[], 300).unwrap();
        let first = counter.drain().collect();
        assert_eq!((counter.len(), counter.drain().count()), (0, 0));
        counter.add(&bag("one"), &spelling("one"), 1).unwrap();
        let counted = |texts, occurrences, text| Counted {
            texts,
            occurrences,
            text,
        };
        let mut expected = [
            (xxh3_64(b"one"), counted(302, 303, Some("one"))),
            (xxh3_64(b"two"), counted(1, 1, None)),
            (xxh3_64(b"three"), counted(300, 300, None)),
        ];
        expected.sort_unstable_by_key(|row| row.0);
        assert_eq!(rows(&[first, counter.drain().collect()]), expected);
    }

    #[test]
    fn more_than_wait_are_counted() {
        let mut counter = Counter::new();
        for _ in 0..WAITING + 3 {
            counter.add(&bag("word"), &[], 1).unwrap();
        }
        assert_eq!(counter.len(), 1);
        assert_eq!(rows(&[counter.drain().collect()])[0].1.texts, WAITING as u64 + 3);
    }

    #[test]
    fn numbers_of_any_size_come_back_and_counts_cut_short_do_not() {
        for number in [0, 1, 127, 128, 1 << 35, u64::MAX] {
            let mut packed = Vec::new();
            push_number(&mut packed, number);
            let mut rest = &packed[..];
            assert_eq!((pop_number(&mut rest), rest.len()), (Some(number), 0));
        }
        let mut packed = Vec::new();
        let usage = Usage {
            texts: 3,
            occurrences: 900,
            text: Some("Größe".into()),
        };
        usage.pack(7, &mut packed);
        assert_eq!(merged([&packed[..]].into_iter()).unwrap().len(), 1);
        for cut in 1..packed.len() {
            assert!(merged([&packed[..cut]].into_iter()).is_err());
        }
    }
}
