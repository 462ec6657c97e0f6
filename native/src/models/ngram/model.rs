//! Interpolated Witten-Bell probabilities of tokens, from counts of n-grams.
//!
//! With h a context and h' the same without its first token,
//!
//!     P(w | h) = (c(hw) + T(h) P(w | h')) / (c(h) + T(h))
//!
//! where c(h) counts all tokens that follow h and T(h) the distinct ones (Witten & Bell, 1991; Chen & Goodman, "An
//! Empirical Study of Smoothing Techniques", 1998, section 2.4). Below single tokens stands the uniform
//! distribution, so that every text has finite bits. An n-gram that was counted holds its probability and what its
//! followers that were not counted have left (the backoff of an ARPA file), so scoring looks a few n-grams up.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Float64Array, make_array};
use arrow_data::ArrayData;
use arrow_pyarrow::PyArrowType;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rustc_hash::FxHashMap;

use super::ORDER;
use super::counts::{Counts, Followers, context, ending, key, length_of, parsed, pushed};
use super::pieces::{Encoder, Merges};
use crate::models::texts::strings;

/// An n-gram: its key, the bits of its last token after the others, and the bits to add where a token follows that
/// did not follow it.
#[derive(Clone, Copy, Default)]
struct Entry {
    key: u64, // 0 is no n-gram
    bits: f32,
    backoff: f32,
}

/// A table of open addressing; half of it is empty.
struct Table {
    entries: Vec<Entry>,
    shift: u32,
}

impl Table {
    fn with_room(n_entries: usize) -> Self {
        let size = (2 * n_entries).next_power_of_two().max(2);
        Self {
            entries: vec![Entry::default(); size],
            shift: 64 - size.trailing_zeros(),
        }
    }

    #[inline]
    fn place(&self, key: u64) -> usize {
        let mut at = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize;
        while self.entries[at].key != key && self.entries[at].key != 0 {
            at = (at + 1) & (self.entries.len() - 1);
        }
        at
    }

    #[inline]
    fn get(&self, key: u64) -> Option<&Entry> {
        let entry = &self.entries[self.place(key)];
        (entry.key == key).then_some(entry)
    }
}

#[pyclass(frozen, module = "factory._native")]
struct NgramModel {
    merges: Merges,
    table: Table,
    unseen: f64, // bits of a token that was never counted
}

impl NgramModel {
    fn from_counts(merges: Merges, counts: &Counts) -> Result<Self, String> {
        let followers = Followers::from_counts(counts, merges.vocabulary())?;
        let mut by_length: Vec<Vec<u64>> = vec![Vec::new(); ORDER + 1];
        for ngram in counts.keys() {
            by_length[length_of(*ngram)].push(*ngram);
        }
        let uniform = 1.0 / merges.vocabulary() as f64;
        let left_over = |(tokens, kinds): (i64, i64)| kinds as f64 / (tokens + kinds) as f64;
        let mut table = Table::with_room(counts.len());
        let mut probabilities: FxHashMap<u64, f64> = FxHashMap::default();
        for (length, ngrams) in by_length.iter().enumerate().skip(1) {
            for ngram in ngrams {
                let (all, below) = match length {
                    1 => (followers.of_no_context, uniform),
                    _ => (
                        followers.of_contexts[&context(*ngram)],
                        probabilities[&ending(*ngram)],
                    ),
                };
                let own = counts[ngram] as f64 / (all.0 + all.1) as f64;
                let probability = own + left_over(all) * below;
                probabilities.insert(*ngram, probability);
                let own_followers = followers.of_contexts.get(ngram);
                let backoff = own_followers.map_or(0.0, |all| -left_over(*all).log2());
                let at = table.place(*ngram);
                table.entries[at] = Entry {
                    key: *ngram,
                    bits: -probability.log2() as f32,
                    backoff: backoff as f32,
                };
            }
        }
        let unseen = -(left_over(followers.of_no_context) * uniform).log2();
        Ok(Self {
            merges,
            table,
            unseen,
        })
    }

    /// Calls `visit` with each token of a text and its bits.
    fn for_each_token(&self, tokens: &[u16], mut visit: impl FnMut(u16, f64)) {
        let mut window = 0u64;
        let mut known = 0; // the length of the longest counted n-gram that ends before the token
        for token in tokens {
            let before = window;
            window = pushed(window, *token);
            let mut bits = 0.0;
            let mut length = ORDER.min(known + 1);
            loop {
                if let Some(entry) = self.table.get(key(window, length)) {
                    bits += f64::from(entry.bits);
                    break;
                }
                length -= 1;
                if length == 0 {
                    bits += self.unseen;
                    break;
                }
                if let Some(entry) = self.table.get(key(before, length)) {
                    bits += f64::from(entry.backoff);
                }
            }
            known = length;
            visit(*token, bits);
        }
    }

    fn bits_of(&self, texts: &ArrayRef) -> Result<Float64Array, String> {
        let mut encoder = Encoder::new(&self.merges);
        let mut tokens = Vec::new();
        let bits = strings(texts)?.map(|text| {
            text.map(|text| {
                let mut sum = 0.0;
                encoder.encode(text, &mut tokens);
                self.for_each_token(&tokens, |_, bits| sum += bits);
                sum
            })
        });
        Ok(bits.collect())
    }
}

#[pymethods]
impl NgramModel {
    #[new]
    fn new(
        merges: Vec<(u16, u16)>,
        ngrams: PyArrowType<ArrayData>,
        counts: PyArrowType<ArrayData>,
    ) -> PyResult<Self> {
        let counts = parsed(&make_array(ngrams.0), &make_array(counts.0));
        Merges::from_pairs(&merges)
            .and_then(|merges| Self::from_counts(merges, &counts?))
            .map_err(PyValueError::new_err)
    }

    fn bits(&self, py: Python<'_>, texts: PyArrowType<ArrayData>) -> PyResult<PyArrowType<ArrayData>> {
        py.detach(|| self.bits_of(&make_array(texts.0)))
            .map(|bits| PyArrowType((Arc::new(bits) as ArrayRef).to_data()))
            .map_err(PyValueError::new_err)
    }

    fn token_bits(&self, py: Python<'_>, text: &str) -> Vec<(usize, usize, f64)> {
        py.detach(|| {
            let mut tokens = Vec::new();
            Encoder::new(&self.merges).encode(text, &mut tokens);
            let mut places = Vec::with_capacity(tokens.len());
            let mut begin = 0;
            self.for_each_token(&tokens, |token, bits| {
                let end = begin + self.merges.length(token);
                places.push((begin, end, bits));
                begin = end;
            });
            places
        })
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<NgramModel>()
}
