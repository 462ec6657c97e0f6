//! The words and phrases of a list in texts: whole words, also in simple disguises, never inside longer words.
//!
//! Text and entries are compared folded (`folding.rs`), and tokens without the `_` around them, which is emphasis.
//! A phrase is a run of tokens. A word between spaces that holds no listed token is looked up again as what it
//! may stand for: letters spelled apart (`w.o.r.d`), signs for letters (`w0rd`), letters drawn out (`wooord`) and
//! stars for letters (`w**d`). `factory/models/word_list.py` is the readable definition.

use arrow_array::builder::{Int64Builder, ListBuilder};
use arrow_array::{Array, ArrayRef, make_array};
use arrow_data::ArrayData;
use arrow_pyarrow::PyArrowType;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rustc_hash::FxHashMap;

use super::folding::FoldedText;
use super::texts::strings;
use super::tokens::{Class, Token, class, tokens};

const LONGEST: usize = 100; // bytes of a word that may be disguised
const LEAST_STARRED: usize = 4; // characters; `a*b` is more often a product
const SEPARATORS: [char; 5] = ['.', '-', '_', '*', '\u{b7}']; // between letters that are spelled apart

/// An entry of a list in a text: its number in the list, and its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hit {
    entry: usize,
    begin: usize,
    end: usize,
}

#[pyclass(frozen, module = "factory._native")]
struct WordList {
    phrases: FxHashMap<u64, Vec<(Vec<u64>, usize)>>, // by the hash of the first token; the longest first
    words: FxHashMap<u64, usize>,                    // entries of one token
    spellings: FxHashMap<usize, Vec<(Vec<char>, usize)>>, // the same by their number of characters
}

impl WordList {
    fn from_entries(entries: &[String]) -> Result<Self, String> {
        let mut list = Self {
            phrases: FxHashMap::default(),
            words: FxHashMap::default(),
            spellings: FxHashMap::default(),
        };
        for (number, entry) in entries.iter().enumerate() {
            let folded = FoldedText::new(entry).text;
            let words = words(&folded);
            let hashes: Vec<u64> = words.iter().map(|token| token.hash).collect();
            let Some((first, rest)) = hashes.split_first() else {
                return Err(format!(
                    "The entry `{entry}` has no letter or number. Leave it out."
                ));
            };
            if rest.is_empty() {
                list.words.entry(*first).or_insert(number);
                let spelling: Vec<char> = letters_of(folded.trim_matches('_'));
                list.spellings
                    .entry(spelling.len())
                    .or_default()
                    .push((spelling, number));
            }
            list.phrases
                .entry(*first)
                .or_default()
                .push((rest.to_vec(), number));
        }
        for phrases in list.phrases.values_mut() {
            phrases.sort_by_key(|(rest, number)| (std::cmp::Reverse(rest.len()), *number));
        }
        Ok(list)
    }

    /// The entries in `text`, in order, and its number of tokens.
    fn hits(&self, text: &str) -> (Vec<Hit>, usize) {
        let folded = FoldedText::new(text);
        let (mut hits, n_tokens) = self.hits_of_folded(&folded.text);
        for hit in &mut hits {
            (hit.begin, hit.end) = folded.place(hit.begin, hit.end);
        }
        (hits, n_tokens)
    }

    fn hits_of_folded(&self, text: &str) -> (Vec<Hit>, usize) {
        let tokens = words(text);
        let mut hits = Vec::new();
        let mut at = 0;
        while at < tokens.len() {
            match self.phrase_at(&tokens[at..]) {
                Some((entry, length)) => {
                    let end = tokens[at + length - 1].end;
                    hits.push(Hit {
                        entry,
                        begin: tokens[at].begin,
                        end,
                    });
                    at += length;
                }
                None => at += 1,
            }
        }
        let plain = hits.len();
        let mut next = 0;
        for (begin, end) in chunks(text) {
            while next < plain && hits[next].end <= begin {
                next += 1;
            }
            let overlaps = next < plain && hits[next].begin < end;
            if !overlaps && let Some(entry) = self.disguised(&text[begin..end]) {
                hits.push(Hit { entry, begin, end });
            }
        }
        if hits.len() > plain {
            hits.sort_by_key(|hit| hit.begin);
        }
        (hits, tokens.len())
    }

    /// The longest phrase that `tokens` begin with, and its length in tokens.
    fn phrase_at(&self, tokens: &[Token]) -> Option<(usize, usize)> {
        let phrases = self.phrases.get(&tokens[0].hash)?;
        phrases.iter().find_map(|(rest, number)| {
            let follows = tokens.len() > rest.len()
                && rest
                    .iter()
                    .zip(&tokens[1..])
                    .all(|(hash, token)| *hash == token.hash);
            follows.then_some((*number, rest.len() + 1))
        })
    }

    /// The entry that a word between spaces may stand for.
    fn disguised(&self, chunk: &str) -> Option<usize> {
        if chunk.len() > LONGEST || !is_suspicious(chunk) {
            return None;
        }
        let characters = trimmed(letters_of(chunk));
        self.spelled_apart(&characters)
            .or_else(|| self.decoded(&characters))
            .or_else(|| self.starred(&characters))
    }

    fn word(&self, characters: &[char]) -> Option<usize> {
        let spelling: String = characters.iter().collect();
        match tokens(&spelling).as_slice() {
            [token] if token.end == spelling.len() => self.words.get(&token.hash).copied(),
            _ => None,
        }
    }

    fn spelled_apart(&self, characters: &[char]) -> Option<usize> {
        let separator = *characters.get(1)?;
        let apart = characters.len() >= 5
            && characters.len() % 2 == 1
            && SEPARATORS.contains(&separator)
            && characters.iter().skip(1).step_by(2).all(|it| *it == separator)
            && characters.iter().step_by(2).all(|it| is_letter(*it));
        let letters: Vec<char> = characters.iter().step_by(2).copied().collect();
        apart.then(|| self.word(&letters)).flatten()
    }

    fn decoded(&self, characters: &[char]) -> Option<usize> {
        let signs = characters.iter().filter(|it| letter_for(**it).is_some()).count();
        let letters = characters.iter().filter(|it| is_letter(**it)).count();
        let digits = characters.iter().filter(|it| it.is_ascii_digit()).count();
        if letters + signs < characters.len() || digits > letters || letters == 0 {
            return None;
        }
        let plain: Vec<char> = characters
            .iter()
            .map(|it| letter_for(*it).unwrap_or(*it))
            .collect();
        let known = (signs > 0).then(|| self.word(&plain)).flatten();
        known.or_else(|| {
            let (once, twice) = (squeezed(&plain, 1), squeezed(&plain, 2));
            let drawn_out = once.len() < plain.len();
            drawn_out
                .then(|| self.word(&once).or_else(|| self.word(&twice)))
                .flatten()
        })
    }

    fn starred(&self, characters: &[char]) -> Option<usize> {
        let stars = characters.iter().filter(|it| **it == '*').count();
        let letters = characters.iter().filter(|it| is_letter(**it)).count();
        let fits = stars > 0
            && letters >= 2
            && stars + letters == characters.len()
            && characters.len() >= LEAST_STARRED
            && characters[0] != '*';
        let spellings = fits.then(|| self.spellings.get(&characters.len())).flatten()?;
        let equal = |spelling: &[char]| {
            spelling
                .iter()
                .zip(characters)
                .all(|(letter, given)| *given == '*' || letter == given)
        };
        spellings
            .iter()
            .filter(|(spelling, _)| equal(spelling))
            .map(|(_, number)| *number)
            .min()
    }
}

/// The tokens of a folded text, without the `_` around them.
fn words(text: &str) -> Vec<Token> {
    let mut words = Vec::new();
    for token in tokens(text) {
        let spelling = &text[token.begin..token.end];
        let word = spelling.trim_start_matches('_');
        let begin = token.begin + spelling.len() - word.len();
        match word.trim_end_matches('_') {
            word if word.len() == spelling.len() => words.push(token),
            word => words.extend(tokens(word).into_iter().map(|inner| Token {
                hash: inner.hash,
                begin: begin + inner.begin,
                end: begin + inner.end,
            })),
        }
    }
    words
}

/// The words between ASCII spaces, as ranges of bytes.
fn chunks(text: &str) -> impl Iterator<Item = (usize, usize)> + '_ {
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < bytes.len() && bytes[at].is_ascii_whitespace() {
            at += 1;
        }
        let begin = at;
        while at < bytes.len() && !bytes[at].is_ascii_whitespace() {
            at += 1;
        }
        (begin < at).then_some((begin, at))
    })
}

/// Whether a word has a sign for a letter, a separator between letters or a letter three times in a row.
fn is_suspicious(chunk: &str) -> bool {
    let bytes = chunk.as_bytes();
    let mut run = 1;
    for (at, byte) in bytes.iter().enumerate() {
        if !byte.is_ascii_alphabetic() && *byte < 128 && at > 0 && at + 1 < bytes.len() {
            return true;
        }
        run = if at > 0 && bytes[at - 1].eq_ignore_ascii_case(byte) {
            run + 1
        } else {
            1
        };
        if run == 3 || matches!(byte, b'@' | b'$' | b'0'..=b'9') || *byte >= 128 {
            return true;
        }
    }
    false
}

/// The seen characters of a word in lower case.
fn letters_of(word: &str) -> Vec<char> {
    word.chars()
        .filter(|it| class(*it) != Class::Unseen)
        .flat_map(char::to_lowercase)
        .collect()
}

/// Without the punctuation around a word; `@` and `$` may stand for its first or last letter.
fn trimmed(characters: Vec<char>) -> Vec<char> {
    let belongs = |it: &char| class(*it) != Class::Outside && *it != '_' || matches!(it, '@' | '$');
    let begin = characters.iter().position(belongs).unwrap_or(characters.len());
    let end = characters
        .iter()
        .rposition(belongs)
        .map_or(begin, |last| last + 1);
    characters[begin..end].to_vec()
}

fn is_letter(character: char) -> bool {
    class(character) == Class::Word && character != '_' && !character.is_ascii_digit()
}

fn letter_for(sign: char) -> Option<char> {
    Some(match sign {
        '0' => 'o',
        '1' | '!' => 'i',
        '3' | '\u{20ac}' => 'e',
        '4' | '@' => 'a',
        '5' | '$' => 's',
        '7' | '+' => 't',
        _ => return None,
    })
}

/// With every run of three or more equal characters cut to `length`.
fn squeezed(characters: &[char], length: usize) -> Vec<char> {
    characters
        .chunk_by(|left, right| left == right)
        .flat_map(|run| &run[..if run.len() >= 3 { length } else { run.len() }])
        .copied()
        .collect()
}

#[pymethods]
impl WordList {
    #[new]
    fn new(entries: Vec<String>) -> PyResult<Self> {
        Self::from_entries(&entries).map_err(PyValueError::new_err)
    }

    /// A list (tokens, entry, entry, ...) for each text.
    fn counts(&self, py: Python<'_>, texts: PyArrowType<ArrayData>) -> PyResult<PyArrowType<ArrayData>> {
        py.detach(|| {
            let texts: ArrayRef = make_array(texts.0);
            let mut lists = ListBuilder::new(Int64Builder::new());
            for text in strings(&texts)? {
                if let Some(text) = text {
                    let (hits, n_tokens) = self.hits(text);
                    lists.values().append_value(n_tokens as i64);
                    hits.iter()
                        .for_each(|hit| lists.values().append_value(hit.entry as i64));
                }
                lists.append(text.is_some());
            }
            Ok(lists.finish())
        })
        .map(|lists| PyArrowType(lists.into_data()))
        .map_err(|error: String| PyValueError::new_err(error))
    }

    /// (entry, begin, end) of each hit in `text`; the places are in bytes of UTF-8.
    fn places(&self, py: Python<'_>, text: &str) -> Vec<(usize, usize, usize)> {
        py.detach(|| {
            let (hits, _) = self.hits(text);
            hits.iter().map(|hit| (hit.entry, hit.begin, hit.end)).collect()
        })
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<WordList>()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn list() -> WordList {
        let entries = ["darn", "holy cow", "ass", "heck"].map(String::from);
        WordList::from_entries(&entries).unwrap()
    }

    fn found(text: &str) -> Vec<&str> {
        list()
            .hits(text)
            .0
            .iter()
            .map(|hit| &text[hit.begin..hit.end])
            .collect()
    }

    #[test]
    fn whole_words_and_phrases_are_found_in_any_case() {
        assert_eq!(
            found("Darn, HOLY  cow! darned cow heckler"),
            ["Darn", "HOLY  cow"]
        );
    }

    #[test]
    fn simple_disguises_are_found() {
        assert_eq!(
            found("d4rn D@rn! d.a.r.n daaaarn d**n (a$$)"),
            ["d4rn", "D@rn!", "d.a.r.n", "daaaarn", "d**n", "(a$$)"]
        );
    }

    #[test]
    fn a_word_is_found_in_every_form() {
        let list = WordList::from_entries(&["straße", "café", "σοφος"].map(String::from)).unwrap();
        let text = "STRASSE cafe\u{301} ΣΟΦΟΣ σοφοσ ca\u{200b}fé ca\u{ad}fé _café_ __Straße";
        let found: Vec<&str> = list
            .hits(text)
            .0
            .iter()
            .map(|hit| &text[hit.begin..hit.end])
            .collect();
        let expected = "STRASSE cafe\u{301} ΣΟΦΟΣ σοφοσ ca\u{200b}fé ca\u{ad}fé café Straße";
        assert_eq!(found, expected.split(' ').collect::<Vec<_>>());
    }

    #[test]
    fn numbers_formulas_and_longer_words_are_not() {
        assert_eq!(
            found("455 a55 class a*s assess Massachusetts h3ckler *darned*"),
            Vec::<&str>::new()
        );
    }

    proptest! {
        #[test]
        fn hits_are_in_order_and_apart(text in "[darnheck4@.*! ]{0,40}") {
            let (hits, _) = list().hits(&text);
            for pair in hits.windows(2) {
                prop_assert!(pair[0].end <= pair[1].begin);
            }
        }

        #[test]
        fn any_text_is_searched(text in "\\PC{0,40}") {
            list().hits(&text);
        }
    }
}
