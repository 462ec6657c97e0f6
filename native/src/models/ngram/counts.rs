//! How often each n-gram occurs.
//!
//! A key holds the tokens of an n-gram, the last in the lowest bits, and their number in the highest. Counting
//! meets one n-gram a position, the longest that ends there; the shorter ones that end there are its ends, so their
//! counts are sums. So counts of parts of a corpus add up to those of the whole.

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, make_array};
use arrow_data::ArrayData;
use arrow_pyarrow::PyArrowType;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex};

use super::ORDER;
use super::pieces::{BITS, Encoder, Merges};
use crate::models::texts::strings;

const ORDER_SHIFT: u32 = 60;
const TOKENS: u64 = (1 << ORDER_SHIFT) - 1;

pub type Counts = FxHashMap<u64, i64>;

/// The key of `length` tokens; the last is in the lowest bits of `tokens`, and longer ones are cut off.
#[inline]
pub fn key(tokens: u64, length: usize) -> u64 {
    let kept = tokens & ((1u64 << (BITS as usize * length)) - 1);
    (length as u64) << ORDER_SHIFT | kept
}

/// The tokens of a key, the last in the lowest bits.
#[inline]
pub fn tokens_of(key: u64) -> u64 {
    key & TOKENS
}

/// The number of tokens of a key.
#[inline]
pub fn length_of(key: u64) -> usize {
    (key >> ORDER_SHIFT) as usize
}

/// The tokens so far, with one more.
#[inline]
pub fn pushed(tokens: u64, token: u16) -> u64 {
    (tokens << BITS | u64::from(token)) & TOKENS
}

/// The n-gram without its first token.
pub fn ending(key_of: u64) -> u64 {
    key(tokens_of(key_of), length_of(key_of) - 1)
}

/// The n-gram without its last token.
pub fn context(key_of: u64) -> u64 {
    key(tokens_of(key_of) >> BITS, length_of(key_of) - 1)
}

/// The counts of n-grams of all lengths, from those of the longest at each position. n-grams of three tokens or
/// more that occur fewer than `least` times are left out.
fn of_all_lengths(longest: Counts, least: i64) -> Counts {
    let mut by_length: Vec<Counts> = vec![Counts::default(); ORDER + 1];
    for (ngram, count) in longest {
        *by_length[length_of(ngram)].entry(ngram).or_insert(0) += count;
    }
    for length in (2..=ORDER).rev() {
        let (shorter, longer) = by_length.split_at_mut(length);
        for (ngram, count) in &longer[0] {
            *shorter[length - 1].entry(ending(*ngram)).or_insert(0) += count;
        }
    }
    by_length
        .into_iter()
        .flatten()
        .filter(|(ngram, count)| length_of(*ngram) < 3 || *count >= least)
        .collect()
}

/// Counts as two columns, by key.
fn columns(counts: &Counts) -> Result<RecordBatch, String> {
    let mut keys: Vec<u64> = counts.keys().copied().collect();
    keys.sort_unstable();
    let numbers: Int64Array = keys.iter().map(|key| counts[key]).collect();
    let ngrams: Int64Array = keys.iter().map(|key| *key as i64).collect();
    RecordBatch::try_from_iter([
        ("ngram", Arc::new(ngrams) as ArrayRef),
        ("count", Arc::new(numbers) as ArrayRef),
    ])
    .map_err(|error| error.to_string())
}

/// Two columns as counts, those of one n-gram added up; refuses keys that are none.
pub fn parsed(ngrams: &ArrayRef, counts: &ArrayRef) -> Result<Counts, String> {
    let column = |array: &ArrayRef, name: &str| {
        array
            .as_primitive_opt::<Int64Type>()
            .filter(|column| column.null_count() == 0)
            .cloned()
            .ok_or_else(|| format!("The {name} are no int64 without nulls. Cast them."))
    };
    let (ngrams, counts) = (column(ngrams, "n-grams")?, column(counts, "counts")?);
    if ngrams.len() != counts.len() {
        return Err(format!(
            "There are {} n-grams and {} counts.",
            ngrams.len(),
            counts.len()
        ));
    }
    let mut sums = Counts::default();
    for (ngram, count) in ngrams.values().iter().zip(counts.values()) {
        let length = length_of(*ngram as u64);
        if *ngram < 0
            || !(1..=ORDER).contains(&length)
            || key(tokens_of(*ngram as u64), length) != *ngram as u64
        {
            return Err(format!("{ngram} is no n-gram of 1 to {ORDER} tokens."));
        }
        if *count < 1 {
            return Err(format!(
                "The n-gram {ngram} has the count {count}. Counts are 1 and more."
            ));
        }
        *sums.entry(*ngram as u64).or_insert(0) += count;
    }
    Ok(sums)
}

/// What follows contexts: all tokens, and the distinct ones.
#[derive(Debug)]
pub struct Followers {
    pub of_contexts: FxHashMap<u64, (i64, i64)>,
    pub of_no_context: (i64, i64),
}

impl Followers {
    /// Refuses tokens outside the vocabulary, n-grams with a part that is not counted, and counts of no token.
    pub fn from_counts(counts: &Counts, vocabulary: usize) -> Result<Self, String> {
        let mut of_contexts: FxHashMap<u64, (i64, i64)> = FxHashMap::default();
        let (mut total, mut distinct) = (0i64, 0i64);
        for (ngram, count) in counts {
            if length_of(*ngram) == 1 {
                if tokens_of(*ngram) as usize >= vocabulary {
                    return Err(format!("Token {} is none of {vocabulary}.", tokens_of(*ngram)));
                }
                total += count;
                distinct += 1;
                continue;
            }
            let (tokens, kinds) = of_contexts.entry(context(*ngram)).or_insert((0, 0));
            *tokens += count;
            *kinds += 1;
            for shorter in [context(*ngram), ending(*ngram)] {
                if !counts.contains_key(&shorter) {
                    return Err(format!(
                        "The n-gram {ngram} is counted, and its part {shorter} is not."
                    ));
                }
            }
        }
        if total == 0 {
            return Err("No token is counted, so there is no model. Count some text.".into());
        }
        Ok(Self {
            of_contexts,
            of_no_context: (total, distinct),
        })
    }
}

/// Counts the longest n-gram at each position of texts.
#[pyclass(frozen, module = "factory._native")]
struct NgramCounter {
    merges: Merges,
    counts: Mutex<Counts>,
}

#[pymethods]
impl NgramCounter {
    #[new]
    fn new(merges: Vec<(u16, u16)>) -> PyResult<Self> {
        let merges = Merges::from_pairs(&merges).map_err(PyValueError::new_err)?;
        Ok(Self {
            merges,
            counts: Mutex::default(),
        })
    }

    fn add(&self, py: Python<'_>, texts: PyArrowType<ArrayData>) -> PyResult<()> {
        py.detach(|| {
            let texts = make_array(texts.0);
            let mut counts = self.counts.lock().map_err(|error| error.to_string())?;
            let mut encoder = Encoder::new(&self.merges);
            let mut tokens = Vec::new();
            for text in strings(&texts)?.flatten() {
                encoder.encode(text, &mut tokens);
                let mut window = 0;
                for (at, token) in tokens.iter().enumerate() {
                    window = pushed(window, *token);
                    *counts.entry(key(window, ORDER.min(at + 1))).or_insert(0) += 1;
                }
            }
            Ok(())
        })
        .map_err(|error: String| PyValueError::new_err(error))
    }

    fn counts(&self, py: Python<'_>) -> PyResult<PyArrowType<RecordBatch>> {
        py.detach(|| columns(&*self.counts.lock().map_err(|error| error.to_string())?))
            .map(PyArrowType)
            .map_err(PyValueError::new_err)
    }
}

#[pyfunction]
fn ngram_table(
    py: Python<'_>,
    ngrams: PyArrowType<ArrayData>,
    counts: PyArrowType<ArrayData>,
    least: i64,
) -> PyResult<PyArrowType<RecordBatch>> {
    py.detach(|| {
        let longest = parsed(&make_array(ngrams.0), &make_array(counts.0))?;
        columns(&of_all_lengths(longest, least))
    })
    .map(PyArrowType)
    .map_err(PyValueError::new_err)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<NgramCounter>()?;
    module.add_function(wrap_pyfunction!(ngram_table, module)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_holds_tokens_and_their_number() {
        let tokens = [7u16, 4095, 0, 3, 9, 11].into_iter().fold(0, pushed);
        let five = key(tokens, 5);
        assert_eq!(length_of(five), 5);
        assert_eq!(ending(five), key(tokens, 4));
        assert_eq!(tokens_of(context(key(tokens, 2))), 9);
    }

    #[test]
    fn shorter_ngrams_are_sums_of_those_that_end_with_them() {
        let [ab, b] = [key(pushed(pushed(0, 1), 2), 2), key(2, 1)];
        let counts = of_all_lengths(Counts::from_iter([(ab, 3), (b, 1)]), 1);
        assert_eq!(counts, Counts::from_iter([(ab, 3), (b, 4)]));
    }
}
