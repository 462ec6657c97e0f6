//! Bits of texts before and after a model continues on other texts.
//!
//! To continue is to add counts: c(hw) + weight c_a(hw) for every n-gram of the texts a, where c are the counts of
//! the base. The distinct followers of a context grow by those that are new to it. The counts of a are an overlay
//! that is looked up beside the base, so the cost is that of the texts and never that of the base. Rare n-grams
//! that the base has left out stay left out.

use std::sync::Arc;

use arrow_array::builder::Float64Builder;
use arrow_array::{ArrayRef, RecordBatch, make_array};
use arrow_data::ArrayData;
use arrow_pyarrow::PyArrowType;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rustc_hash::FxHashMap;

use super::ORDER;
use super::counts::{Counts, Followers, context, key, length_of, parsed, pushed};
use super::pieces::{Encoder, Merges};
use crate::models::texts::strings;

/// How often an n-gram occurs, how many tokens follow it, and how many distinct ones.
#[derive(Clone, Copy, Default)]
struct Node {
    count: u32,
    followers: u32,
    kinds: u32,
}

/// n-grams with their followers; those of no token are apart.
#[derive(Default)]
struct Nodes {
    ngrams: FxHashMap<u64, Node>,
    root: Node,
}

impl Nodes {
    fn from_counts(counts: &Counts, vocabulary: usize) -> Result<Self, String> {
        let followers = Followers::from_counts(counts, vocabulary)?;
        let narrow = |number: i64| {
            u32::try_from(number).map_err(|_| {
                format!("An n-gram has {number} tokens or followers. A proxy holds at most 2^32 - 1.")
            })
        };
        let node = |count: i64, (tokens, kinds): (i64, i64)| -> Result<Node, String> {
            Ok(Node {
                count: narrow(count)?,
                followers: narrow(tokens)?,
                kinds: narrow(kinds)?,
            })
        };
        let ngrams = counts.iter().map(|(ngram, count)| {
            let own = followers.of_contexts.get(ngram).copied().unwrap_or_default();
            Ok((*ngram, node(*count, own)?))
        });
        Ok(Self {
            ngrams: ngrams.collect::<Result<_, String>>()?,
            root: node(0, followers.of_no_context)?,
        })
    }

    #[inline]
    fn get(&self, ngram: u64) -> Node {
        self.ngrams.get(&ngram).copied().unwrap_or_default()
    }

    /// The n-grams of texts: their counts, all their followers, and the kinds of followers that `base` lacks.
    fn beside<'a>(base: &Nodes, texts: impl Iterator<Item = &'a str>, encoder: &mut Encoder) -> Self {
        let mut overlay = Self::default();
        let mut tokens = Vec::new();
        for text in texts {
            encoder.encode(text, &mut tokens);
            let mut window = 0;
            for (position, token) in tokens.iter().enumerate() {
                window = pushed(window, *token);
                for length in 1..=ORDER.min(position + 1) {
                    overlay.ngrams.entry(key(window, length)).or_default().count += 1;
                }
            }
        }
        let counts: Vec<(u64, u32)> = overlay
            .ngrams
            .iter()
            .map(|(ngram, node)| (*ngram, node.count))
            .collect();
        for (ngram, count) in counts {
            let is_new = u32::from(!base.ngrams.contains_key(&ngram));
            let before = match length_of(ngram) {
                1 => &mut overlay.root,
                _ => overlay.ngrams.entry(context(ngram)).or_default(),
            };
            before.followers += count;
            before.kinds += is_new;
        }
        overlay
    }
}

/// The probability of a token after a context, from its probability after the context without its first token.
#[inline]
fn interpolated(count: f64, followers: f64, kinds: f64, below: f64) -> f64 {
    (count + kinds * below) / (followers + kinds)
}

#[pyclass(frozen, module = "factory._native")]
struct NgramProxy {
    merges: Merges,
    base: Nodes,
}

impl NgramProxy {
    /// The bits of a text by the base, and by the base with the overlay.
    fn bits(&self, tokens: &[u16], overlay: &Nodes, weight: f64) -> (f64, f64) {
        let uniform = 1.0 / self.merges.vocabulary() as f64;
        let (mut bits_before, mut bits_after) = (0.0, 0.0);
        let mut window = 0u64;
        // The n-grams of 0 to ORDER - 1 tokens that end before the token.
        let mut contexts = [(Node::default(), Node::default()); ORDER];
        contexts[0] = (self.base.root, overlay.root);
        for token in tokens {
            window = pushed(window, *token);
            let (mut before, mut after) = (uniform, uniform);
            let mut ngrams = [(Node::default(), Node::default()); ORDER];
            ngrams[0] = contexts[0];
            for (length, (base, added)) in contexts.iter().enumerate() {
                // A context without followers has no longer one with some.
                let (in_base, in_overlay) = (base.kinds > 0, added.followers > 0);
                if !in_base && !in_overlay {
                    break;
                }
                let ngram = key(window, length + 1);
                let base_ngram = if in_base {
                    self.base.get(ngram)
                } else {
                    Node::default()
                };
                let added_ngram = if in_overlay {
                    overlay.get(ngram)
                } else {
                    Node::default()
                };
                if in_base {
                    let numbers = [base_ngram.count, base.followers, base.kinds].map(f64::from);
                    before = interpolated(numbers[0], numbers[1], numbers[2], before);
                }
                let sum = |of_base: u32, of_overlay: u32| f64::from(of_base) + weight * f64::from(of_overlay);
                after = interpolated(
                    sum(base_ngram.count, added_ngram.count),
                    sum(base.followers, added.followers),
                    f64::from(base.kinds) + f64::from(added.kinds),
                    after,
                );
                if length + 1 < ORDER {
                    ngrams[length + 1] = (base_ngram, added_ngram);
                }
            }
            contexts = ngrams;
            bits_before -= before.log2();
            bits_after -= after.log2();
        }
        (bits_before, bits_after)
    }

    fn continued(&self, a: &ArrayRef, b: &ArrayRef, weight: f64) -> Result<RecordBatch, String> {
        if !(weight.is_finite() && weight > 0.0) {
            return Err(format!("The weight is {weight}. Give a number above 0."));
        }
        let mut encoder = Encoder::new(&self.merges);
        let overlay = Nodes::beside(&self.base, strings(a)?.flatten(), &mut encoder);
        let (mut before, mut after) = (Float64Builder::new(), Float64Builder::new());
        let mut tokens = Vec::new();
        for text in strings(b)? {
            let bits = text.map(|text| {
                encoder.encode(text, &mut tokens);
                self.bits(&tokens, &overlay, weight)
            });
            before.append_option(bits.map(|(bits, _)| bits));
            after.append_option(bits.map(|(_, bits)| bits));
        }
        RecordBatch::try_from_iter_with_nullable([
            ("before", Arc::new(before.finish()) as ArrayRef, true),
            ("after", Arc::new(after.finish()) as ArrayRef, true),
        ])
        .map_err(|error| error.to_string())
    }
}

#[pymethods]
impl NgramProxy {
    #[new]
    fn new(
        merges: Vec<(u16, u16)>,
        ngrams: PyArrowType<ArrayData>,
        counts: PyArrowType<ArrayData>,
    ) -> PyResult<Self> {
        let counts = parsed(&make_array(ngrams.0), &make_array(counts.0));
        Merges::from_pairs(&merges)
            .and_then(|merges| {
                let base = Nodes::from_counts(&counts?, merges.vocabulary())?;
                Ok(Self { merges, base })
            })
            .map_err(PyValueError::new_err)
    }

    fn losses(
        &self,
        py: Python<'_>,
        a: PyArrowType<ArrayData>,
        b: PyArrowType<ArrayData>,
        weight: f64,
    ) -> PyResult<PyArrowType<RecordBatch>> {
        py.detach(|| self.continued(&make_array(a.0), &make_array(b.0), weight))
            .map(PyArrowType)
            .map_err(PyValueError::new_err)
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<NgramProxy>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxy() -> NgramProxy {
        let [a, b, c] = [b'a', b'b', b'c'].map(u16::from);
        let pair = |left, right| key(pushed(pushed(0, left), right), 2);
        let counts = [
            (key(a.into(), 1), 3),
            (key(b.into(), 1), 2),
            (key(c.into(), 1), 1),
            (pair(a, b), 2),
        ];
        let merges = Merges::from_pairs(&[]).unwrap();
        let base = Nodes::from_counts(&Counts::from_iter(counts), merges.vocabulary()).unwrap();
        NgramProxy { merges, base }
    }

    #[test]
    fn new_followers_are_counted_once_and_known_ones_never() {
        let proxy = proxy();
        let overlay = Nodes::beside(
            &proxy.base,
            ["ab", "ac", "ac"].into_iter(),
            &mut Encoder::new(&proxy.merges),
        );
        let after_a = overlay.get(key(u64::from(b'a'), 1));
        assert_eq!((after_a.count, after_a.followers, after_a.kinds), (3, 3, 1));
        assert_eq!((overlay.root.followers, overlay.root.kinds), (6, 0));
    }

    #[test]
    fn an_empty_overlay_changes_no_bits() {
        let tokens = [b'a', b'b', b'x', b'a'].map(u16::from);
        let (before, after) = proxy().bits(&tokens, &Nodes::default(), 3.0);
        assert_eq!(before, after);
    }
}
