//! Bags as bytes, for storage and for the comparison of documents.
//!
//! A packed bag, little-endian; most tokens occur once or twice in their text:
//!
//! ```text
//! n (4 bytes) | token 0 .. n-1 (8 each) | count 0 .. n-1 (1 each, 0 above 255) | counts above 255 (4 each)
//! ```
//!
//! A bag has hashes, but people read words. Beside its bags a batch has the texts of tokens that `BagMaker` has
//! not spelled before:
//!
//! ```text
//! token (8 bytes) | bytes (4) | text | token | bytes | text ...
//! ```

use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, Int64Builder};
use arrow_array::{ArrayRef, RecordBatch, make_array};
use arrow_data::ArrayData;
use arrow_pyarrow::PyArrowType;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::bag::Bag;
use super::lexer::Lexer;
use crate::dedup::python::{Batch, detached};
use crate::dedup::strings::Strings;

const SLOTS: usize = 1 << 20; // of spelled tokens, 8 MiB
const MOST_PENDING: usize = 1 << 12; // tokens of a text before a search in the slots

impl Bag {
    /// Appends the bytes that `unpacked` reads.
    pub fn pack(&self, packed: &mut Vec<u8>) {
        packed.extend((self.tokens.len() as u32).to_le_bytes());
        packed.extend(self.tokens.iter().flat_map(|token| token.to_le_bytes()));
        packed.extend(self.counts.iter().map(|&count| u8::try_from(count).unwrap_or(0)));
        let large = self.counts.iter().filter(|&&count| count > u32::from(u8::MAX));
        packed.extend(large.flat_map(|count| count.to_le_bytes()));
    }

    /// The bag with these bytes; `n_tokens` is the sum of its counts.
    pub fn unpacked(packed: &[u8]) -> Result<Self, String> {
        Self::parsed(packed).ok_or_else(|| {
            format!(
                "Invalid packed bag of {} bytes. Make it with `BagMaker` of the same version.",
                packed.len()
            )
        })
    }

    fn parsed(packed: &[u8]) -> Option<Self> {
        let (n, rest) = packed.split_first_chunk()?;
        let n = u32::from_le_bytes(*n) as usize;
        let (tokens, rest) = rest.split_at_checked(n.checked_mul(8)?)?;
        let (counts, large) = rest.split_at_checked(n)?;
        let (tokens, []) = tokens.as_chunks() else {
            return None;
        };
        let (large, []) = large.as_chunks() else {
            return None;
        };
        let mut large = large.iter().map(|bytes| u32::from_le_bytes(*bytes));
        let counts: Option<Vec<u32>> = counts
            .iter()
            .map(|&count| match count {
                0 => large.next(),
                count => Some(u32::from(count)),
            })
            .collect();
        let counts = counts.filter(|_| large.next().is_none())?;
        Some(Self {
            tokens: tokens.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect(),
            n_tokens: counts.iter().map(|&count| count as usize).sum(),
            counts,
        })
    }
}

/// Makes bags, and spells each token at its first occurrence, or again after many other tokens.
#[pyclass]
struct BagMaker {
    lexer: Lexer,
    max_distinct: usize,
    max_text_bytes: usize,
    /// The last spelled token of each slot.
    spelled: Vec<u64>,
}

#[pymethods]
impl BagMaker {
    /// Bags have at most `max_distinct` tokens, token texts at most `max_text_bytes` bytes.
    #[new]
    fn new(kind: &str, max_distinct: usize, max_text_bytes: usize) -> PyResult<Self> {
        Ok(Self {
            lexer: Lexer::parse(kind).map_err(PyValueError::new_err)?,
            max_distinct,
            max_text_bytes,
            spelled: vec![0; SLOTS],
        })
    }

    /// (n_tokens, bag, token_texts) of each text; a null text counts as an empty one.
    #[pyo3(name = "make")]
    fn make_py(&mut self, py: Python<'_>, texts: PyArrowType<ArrayData>) -> PyResult<Batch> {
        let texts = make_array(texts.0);
        detached(py, || self.make(&texts)).map(PyArrowType)
    }
}

impl BagMaker {
    fn make(&mut self, texts: &ArrayRef) -> Result<RecordBatch, String> {
        let texts = Strings::new(texts, "texts")?;
        let mut n_tokens = Int64Builder::with_capacity(texts.len());
        let (mut bags, mut token_texts) = (BinaryBuilder::new(), BinaryBuilder::new());
        let (mut packed, mut spelled) = (Vec::new(), Vec::new());
        for row in 0..texts.len() {
            packed.clear();
            spelled.clear();
            let bag = self.bag(texts.get(row).unwrap_or_default(), &mut spelled);
            bag.pack(&mut packed);
            n_tokens.append_value(bag.n_tokens as i64);
            bags.append_value(&packed);
            token_texts.append_value(&spelled);
        }
        RecordBatch::try_from_iter_with_nullable([
            ("n_tokens", Arc::new(n_tokens.finish()) as ArrayRef, false),
            ("bag", Arc::new(bags.finish()) as ArrayRef, false),
            ("token_texts", Arc::new(token_texts.finish()) as ArrayRef, false),
        ])
        .map_err(|error| error.to_string())
    }

    /// The bag of a text; appends the texts of its tokens.
    fn bag(&mut self, text: &str, spelled: &mut Vec<u8>) -> Bag {
        let folded = self.lexer.fold(text);
        let mut pending = PendingTokens::default();
        let bag = Bag::of_text(&folded, self.lexer, self.max_distinct, |token, words| {
            if pending.tokens.len() == MOST_PENDING {
                self.spell(&pending, spelled);
                pending.clear();
            }
            pending.push(token, words);
        });
        self.spell(&pending, spelled);
        bag
    }

    /// Appends the texts of tokens whose slot holds another token.
    fn spell(&mut self, pending: &PendingTokens<'_>, spelled: &mut Vec<u8>) {
        for (token, words) in pending.iter() {
            let slot = &mut self.spelled[token as usize % SLOTS];
            if std::mem::replace(slot, token) == token {
                continue;
            }
            let bytes = words.iter().map(|word| word.len() + 1).sum::<usize>() - 1;
            if bytes <= self.max_text_bytes {
                let text = self.lexer.canonical(words);
                spelled.extend(token.to_le_bytes());
                spelled.extend((text.len() as u32).to_le_bytes());
                spelled.extend(text.as_bytes());
            }
        }
    }
}

/// Tokens of a text and their words, before a search in the slots. The slots are too many for a near cache:
/// searches in a row wait for memory together, while a search after every word would wait each time.
#[derive(Default)]
struct PendingTokens<'a> {
    /// A token and the end of its words.
    tokens: Vec<(u64, usize)>,
    words: Vec<&'a [u8]>,
}

impl<'a> PendingTokens<'a> {
    fn push(&mut self, token: u64, words: &[&'a [u8]]) {
        self.words.extend_from_slice(words);
        self.tokens.push((token, self.words.len()));
    }

    fn clear(&mut self) {
        self.tokens.clear();
        self.words.clear();
    }

    fn iter(&self) -> impl Iterator<Item = (u64, &[&'a [u8]])> {
        let mut begin = 0;
        self.tokens
            .iter()
            .map(move |&(token, end)| (token, &self.words[std::mem::replace(&mut begin, end)..end]))
    }
}

/// The tokens of `token_texts` and their texts.
pub fn spelled(token_texts: &[u8]) -> impl Iterator<Item = Result<(u64, &str), String>> {
    let mut rest = token_texts;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let found = first_spelled(rest);
        rest = found.map_or(&[], |(_, _, after)| after);
        Some(found.map(|(token, text, _)| (token, text)).ok_or_else(|| {
            format!(
                "Invalid token texts of {} bytes. Make them with `BagMaker`.",
                token_texts.len()
            )
        }))
    })
}

fn first_spelled(token_texts: &[u8]) -> Option<(u64, &str, &[u8])> {
    let (token, rest) = token_texts.split_first_chunk()?;
    let (bytes, rest) = rest.split_first_chunk()?;
    let (text, rest) = rest.split_at_checked(u32::from_le_bytes(*bytes) as usize)?;
    Some((u64::from_le_bytes(*token), std::str::from_utf8(text).ok()?, rest))
}

/// The tokens of a text, in order, as the vocabulary spells them.
#[pyfunction]
fn lexer_tokens(py: Python<'_>, text: &str, kind: &str) -> PyResult<Vec<String>> {
    detached(py, || {
        let lexer = Lexer::parse(kind)?;
        let mut tokens = Vec::new();
        lexer.each_token(&lexer.fold(text), |_, words| tokens.push(lexer.canonical(words)));
        Ok(tokens)
    })
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(lexer_tokens, module)?)?;
    module.add_class::<BagMaker>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use xxhash_rust::xxh3::xxh3_64;

    fn maker(kind: &str, max_text_bytes: usize) -> BagMaker {
        BagMaker::new(kind, usize::MAX, max_text_bytes).unwrap()
    }

    fn token_texts(maker: &mut BagMaker, text: &str) -> Vec<(u64, String)> {
        let mut packed = Vec::new();
        maker.bag(text, &mut packed);
        let mut found: Vec<_> = spelled(&packed)
            .map(|it| it.map(|(token, text)| (token, text.to_owned())).unwrap())
            .collect();
        found.sort_by(|a, b| a.1.cmp(&b.1));
        found
    }

    #[test]
    fn a_token_is_spelled_once_and_not_if_it_is_long() {
        let mut maker = maker("prose", 3);
        let expected = |text: &str| (xxh3_64(text.as_bytes()), text.to_owned());
        assert_eq!(
            token_texts(&mut maker, "one One two three"),
            [expected("one"), expected("two")]
        );
        assert_eq!(token_texts(&mut maker, "two six"), [expected("six")]);
    }

    #[test]
    fn a_shingle_is_spelled_by_its_words() {
        let texts: Vec<_> = token_texts(&mut maker("prose-2grams", 7), "One (two) three")
            .into_iter()
            .map(|it| it.1)
            .collect();
        assert_eq!(texts, ["one two"]);
    }

    #[test]
    fn a_vast_text_is_spelled_too() {
        let text = "word ".repeat(300_000);
        assert_eq!(token_texts(&mut maker("code", 9), &text).len(), 1);
    }

    #[test]
    fn what_is_cut_short_is_refused() {
        let mut packed = Vec::new();
        maker("code", 9).bag("a b", &mut packed);
        assert!(spelled(&packed[..packed.len() - 1]).any(|it| it.is_err()));
        assert_eq!(spelled(&packed[..3]).count(), 1);
    }

    proptest! {
        #[test]
        fn a_bag_is_as_it_was_packed(counts in proptest::collection::btree_map(any::<u64>(), 1u32..600, 0..40)) {
            let bag = Bag {
                tokens: counts.keys().copied().collect(),
                counts: counts.values().copied().collect(),
                n_tokens: counts.values().map(|&count| count as usize).sum(),
            };
            let mut packed = Vec::new();
            bag.pack(&mut packed);
            prop_assert_eq!(Bag::unpacked(&packed), Ok(bag));
            packed.push(0);
            prop_assert!(Bag::unpacked(&packed).is_err());
            packed.truncate(packed.len() / 2);
            prop_assert!(Bag::unpacked(&packed).is_err());
        }
    }
}
