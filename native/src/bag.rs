//! Texts as bags of words: (64-bit token hash, count), sorted by hash.
//!
//! Prose: words, lower-cased. ASCII letters and digits make a word and every other ASCII character ends
//! one; a stretch with other characters is cut at the word boundaries of Unicode (UAX #29), which gives
//! one token an ideograph. Code: identifiers, numbers and the words of strings and comments, case kept,
//! all punctuation and the escapes `\n`, `\t` and `\r` dropped; no language's grammar is assumed.
//!
//! A token is the XXH3 of its bytes. A flood of distinct tokens is bounded: above `max_distinct` a bag
//! keeps those of the smallest hashes, the same ones in every text, so that alike texts stay alike. While
//! it is made a bag takes eight bytes a token, so at most four bytes a byte of text.

use std::sync::Arc;

use arrow_array::builder::{Int32Builder, Int64Builder, ListBuilder};
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray, make_array};
use arrow_data::ArrayData;
use arrow_pyarrow::PyArrowType;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rustc_hash::FxHashMap;
use unicode_segmentation::UnicodeSegmentation;
use xxhash_rust::xxh3::xxh3_64;

use crate::strings::Strings;

/// Which lexer cuts a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Prose,
    Code,
}

impl Kind {
    pub fn parse(name: &str) -> Result<Self, String> {
        match name {
            "prose" => Ok(Self::Prose),
            "code" => Ok(Self::Code),
            other => Err(format!("`{other}` is no kind of text. Use `prose` or `code`.")),
        }
    }
}

/// The distinct tokens of a text in ascending order, and how often each stands there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bag {
    pub tokens: Vec<u64>,
    pub counts: Vec<u32>,
    /// Tokens of the text, repetitions included.
    pub n_tokens: usize,
}

impl Bag {
    pub fn of(text: &str, kind: Kind, max_distinct: usize) -> Self {
        let mut hashes = Vec::with_capacity(text.len() / 6);
        each_token(text, kind, |hash, _| hashes.push(hash));
        Self::from_hashes(&mut hashes, max_distinct)
    }

    fn from_hashes(hashes: &mut [u64], max_distinct: usize) -> Self {
        hashes.sort_unstable();
        let mut bag = Self {
            n_tokens: hashes.len(),
            ..Self::default()
        };
        for run in hashes.chunk_by(|a, b| a == b).take(max_distinct) {
            bag.tokens.push(run[0]);
            bag.counts.push(u32::try_from(run.len()).unwrap_or(u32::MAX));
        }
        bag
    }
}

/// What a byte does to a word.
#[derive(Clone, Copy, PartialEq)]
enum Byte {
    Ends,
    Continues,
    NonAscii,
}

const fn classes(underscore: Byte) -> [Byte; 256] {
    let mut table = [Byte::Ends; 256];
    let mut byte = 0;
    while byte < 256 {
        if byte >= 128 {
            table[byte] = Byte::NonAscii;
        } else if (byte as u8).is_ascii_alphanumeric() {
            table[byte] = Byte::Continues;
        }
        byte += 1;
    }
    table[b'_' as usize] = underscore;
    table
}

static PROSE: [Byte; 256] = classes(Byte::Ends);
static CODE: [Byte; 256] = classes(Byte::Continues);

/// Calls `emit` with the hash and the text of every token, in order.
pub fn each_token(text: &str, kind: Kind, mut emit: impl FnMut(u64, &str)) {
    let classes = if kind == Kind::Prose { &PROSE } else { &CODE };
    let bytes = text.as_bytes();
    let mut lower = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        if classes[bytes[at] as usize] == Byte::Ends {
            at += if kind == Kind::Code {
                punctuation(&bytes[at..])
            } else {
                1
            };
            continue;
        }
        let start = at;
        let mut ascii = true;
        while at < bytes.len() && classes[bytes[at] as usize] != Byte::Ends {
            ascii &= classes[bytes[at] as usize] == Byte::Continues;
            at += 1;
        }
        if ascii && kind == Kind::Code && bytes[start].is_ascii_digit() {
            at = end_of_number(bytes, start);
        }
        let word = &text[start..at];
        match kind {
            Kind::Prose if ascii => {
                lower.clear();
                lower.extend(word.bytes().map(|byte| byte.to_ascii_lowercase()));
                emit(xxh3_64(&lower), word);
            }
            Kind::Code if ascii => emit(xxh3_64(word.as_bytes()), word),
            Kind::Prose => {
                for word in word.unicode_words() {
                    emit(xxh3_64(word.to_lowercase().as_bytes()), word);
                }
            }
            Kind::Code => {
                for word in word.unicode_words() {
                    emit(xxh3_64(word.as_bytes()), word);
                }
            }
        }
    }
}

/// How many bytes of punctuation to skip: two for an escape whose letter would stick to the next word.
fn punctuation(rest: &[u8]) -> usize {
    match rest {
        [b'\\', b'\\' | b'n' | b't' | b'r', ..] => 2,
        _ => 1,
    }
}

/// The end of the number that begins at `start`: digits, letters, inner points, a signed exponent.
fn end_of_number(bytes: &[u8], start: usize) -> usize {
    let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let hexadecimal = bytes[start..].starts_with(b"0x") || bytes[start..].starts_with(b"0X");
    let mut at = start;
    while at < bytes.len() {
        let continues = match bytes[at] {
            b'.' => digit(at - 1) && digit(at + 1),
            b'+' | b'-' => {
                !hexadecimal && matches!(bytes[at - 1], b'e' | b'E') && digit(at - 2) && digit(at + 1)
            }
            byte => CODE[byte as usize] == Byte::Continues,
        };
        if !continues {
            break;
        }
        at += 1;
    }
    at
}

/// The text under which a token stands in the vocabulary.
pub fn canonical(token: &str, kind: Kind) -> String {
    match kind {
        Kind::Prose if token.is_ascii() => token.to_ascii_lowercase(),
        Kind::Prose => token.to_lowercase(),
        Kind::Code => token.to_owned(),
    }
}

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
    kind: Kind,
    max_text_bytes: usize,
    usages: FxHashMap<u64, (Usage, u64)>,
    texts: u64,
}

impl Counter {
    pub fn new(kind: Kind, max_text_bytes: usize) -> Self {
        Self {
            kind,
            max_text_bytes,
            usages: FxHashMap::default(),
            texts: 0,
        }
    }

    pub fn len(&self) -> usize {
        self.usages.len()
    }

    pub fn add(&mut self, text: &str) {
        self.texts += 1;
        let (kind, max_text_bytes, number) = (self.kind, self.max_text_bytes, self.texts);
        each_token(text, kind, |hash, token| {
            let (usage, last) = self.usages.entry(hash).or_insert_with(|| {
                let text = (token.len() <= max_text_bytes).then(|| canonical(token, kind).into());
                let usage = Usage {
                    texts: 0,
                    occurrences: 0,
                    text,
                };
                (usage, 0)
            });
            usage.occurrences += 1;
            usage.texts += u64::from(*last != number);
            *last = number;
        });
    }

    /// What was counted since the last call, sorted by token.
    pub fn drain(&mut self) -> Vec<(u64, Usage)> {
        let mut rows: Vec<_> = self
            .usages
            .drain()
            .map(|(token, (usage, _))| (token, usage))
            .collect();
        rows.sort_unstable_by_key(|row| row.0);
        rows
    }
}

/// The bags of `texts` as (tokens, counts, n_tokens); nulls for a null text.
fn bags(texts: &ArrayRef, kind: Kind, max_distinct: usize) -> Result<RecordBatch, String> {
    let texts = Strings::new(texts, "texts")?;
    let mut tokens = ListBuilder::new(Int64Builder::new());
    let mut counts = ListBuilder::new(Int32Builder::new());
    let mut n_tokens = Int64Builder::new();
    for row in 0..texts.len() {
        let bag = texts.get(row).map(|text| Bag::of(text, kind, max_distinct));
        if let Some(bag) = &bag {
            tokens
                .values()
                .extend(bag.tokens.iter().map(|token| Some(token.cast_signed())));
            counts.values().extend(
                bag.counts
                    .iter()
                    .map(|count| Some(i32::try_from(*count).unwrap_or(i32::MAX))),
            );
        }
        tokens.append(bag.is_some());
        counts.append(bag.is_some());
        n_tokens.append_option(bag.map(|bag| bag.n_tokens as i64));
    }
    RecordBatch::try_from_iter_with_nullable([
        ("tokens", Arc::new(tokens.finish()) as ArrayRef, true),
        ("counts", Arc::new(counts.finish()) as ArrayRef, true),
        ("n_tokens", Arc::new(n_tokens.finish()) as ArrayRef, true),
    ])
    .map_err(|error| error.to_string())
}

#[pyfunction]
#[pyo3(name = "bags")]
fn bags_py(
    py: Python<'_>,
    texts: PyArrowType<ArrayData>,
    kind: &str,
    max_distinct: usize,
) -> PyResult<PyArrowType<RecordBatch>> {
    let kind = Kind::parse(kind).map_err(PyValueError::new_err)?;
    let texts = make_array(texts.0);
    py.detach(|| bags(&texts, kind, max_distinct))
        .map(PyArrowType)
        .map_err(PyValueError::new_err)
}

/// `TokenCounter` of the Python module.
#[pyclass]
struct TokenCounter(Counter);

#[pymethods]
impl TokenCounter {
    #[new]
    fn new(kind: &str, max_text_bytes: usize) -> PyResult<Self> {
        let kind = Kind::parse(kind).map_err(PyValueError::new_err)?;
        Ok(Self(Counter::new(kind, max_text_bytes)))
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn add(&mut self, py: Python<'_>, texts: PyArrowType<ArrayData>) -> PyResult<()> {
        let texts = make_array(texts.0);
        let strings = Strings::new(&texts, "texts").map_err(PyValueError::new_err)?;
        py.detach(|| {
            for row in 0..strings.len() {
                if let Some(text) = strings.get(row) {
                    self.0.add(text);
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
    module.add_class::<TokenCounter>()?;
    module.add_function(wrap_pyfunction!(bags_py, module)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tokens(text: &str, kind: Kind) -> Vec<String> {
        let mut tokens = Vec::new();
        each_token(text, kind, |hash, token| {
            let token = canonical(token, kind);
            assert_eq!(hash, xxh3_64(token.as_bytes()));
            tokens.push(token);
        });
        tokens
    }

    #[test]
    fn prose_is_lower_cased_words() {
        assert_eq!(
            tokens("The 2nd “naïve” Plan_B, don't!", Kind::Prose),
            ["the", "2nd", "naïve", "plan", "b", "don", "t"]
        );
        assert_eq!(
            tokens("東京 ΣΟΦΟΣ", Kind::Prose),
            ["東", "京", "σοφος"].map(|w| w.to_lowercase())
        );
    }

    #[test]
    fn code_is_identifiers_numbers_and_words() {
        assert_eq!(
            tokens(
                "x_1 = 3.14e-5*0xFF_e+1 # Größe\\nnext \"a.b\" 1.2.3 1..2",
                Kind::Code
            ),
            [
                "x_1", "3.14e-5", "0xFF_e", "1", "Größe", "next", "a", "b", "1.2.3", "1", "2"
            ]
        );
    }

    #[test]
    fn what_has_no_word_has_no_token() {
        for text in ["", "{}();\n", "—…“”", "\u{200d}", "\\n\\n"] {
            assert_eq!(tokens(text, Kind::Code), Vec::<String>::new(), "{text:?}");
        }
    }

    #[test]
    fn a_bag_counts_its_tokens_in_order_of_their_hash() {
        let bag = Bag::of("b a b", Kind::Code, usize::MAX);
        let mut expected = [(xxh3_64(b"a"), 1), (xxh3_64(b"b"), 2)];
        expected.sort_unstable();
        assert_eq!(bag.tokens, expected.map(|pair| pair.0));
        assert_eq!(bag.counts, expected.map(|pair| pair.1));
        assert_eq!(bag.n_tokens, 3);
    }

    #[test]
    fn a_flood_keeps_the_same_tokens_in_alike_texts() {
        let flood: String = (0..1000).map(|i| format!("token{i} ")).collect();
        let full = Bag::of(&flood, Kind::Code, usize::MAX);
        let bounded = Bag::of(&format!("{flood} more"), Kind::Code, 100);
        assert_eq!(bounded.tokens.len(), 100);
        let shared = bounded
            .tokens
            .iter()
            .filter(|token| full.tokens.contains(token))
            .count();
        assert!(shared >= 99);
        assert_eq!(bounded.n_tokens, 1001);
    }

    #[test]
    fn a_counter_counts_texts_and_occurrences() {
        let mut counter = Counter::new(Kind::Prose, 3);
        counter.add("one One two");
        counter.add("one three");
        let usage = |texts, occurrences, text: Option<&str>| Usage {
            texts,
            occurrences,
            text: text.map(Into::into),
        };
        let mut expected = [
            (xxh3_64(b"one"), usage(2, 3, Some("one"))),
            (xxh3_64(b"two"), usage(1, 1, Some("two"))),
            (xxh3_64(b"three"), usage(1, 1, None)),
        ];
        expected.sort_unstable_by_key(|row| row.0);
        assert_eq!(counter.drain(), expected);
        counter.add("one");
        assert_eq!(counter.drain(), [(xxh3_64(b"one"), usage(1, 1, Some("one")))]);
    }

    proptest! {
        #[test]
        fn any_text_is_lexed_and_its_counts_add_up(text in "\\PC*|[a-z0-9.eE+ \\\\_-]*") {
            for kind in [Kind::Prose, Kind::Code] {
                let bag = Bag::of(&text, kind, usize::MAX);
                prop_assert_eq!(bag.counts.iter().map(|&c| c as usize).sum::<usize>(), bag.n_tokens);
                prop_assert!(bag.tokens.windows(2).all(|pair| pair[0] < pair[1]));
            }
        }
    }
}
