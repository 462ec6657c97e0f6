//! Words and characters of a text, counted in one walk over its bytes.
//!
//! A word is a maximal run of characters other than spaces, punctuation included. Its core runs from its first
//! to its last letter or number. Cores give the number of words, their lengths and the stop words. n-grams
//! consist of tokens: the core of a word, or the whole word if it has no core.

use std::sync::LazyLock;

use super::characters::{self, ALPHANUMERIC, ASCII, DIGIT, ENCODED, LETTER, SPACE, UNDERSCORE};
use super::short;
use memchr::{memchr_iter, memmem};

const IDENTIFIER: u8 = ALPHANUMERIC | UNDERSCORE;
const EACH_HIGH_BIT: u64 = 0x8080_8080_8080_8080;
const EACH_FIRST_VISIBLE: u64 = 0x2121_2121_2121_2121;
const ENCODED_RUN: usize = 64; // OpenCoder: characters from which a run counts as encoded data

static ELLIPSES: LazyLock<[memmem::Finder; 2]> = LazyLock::new(|| ["...", "…"].map(memmem::Finder::new));

/// The counts of one text; buffers are reused from text to text.
#[derive(Default)]
pub struct Words {
    /// A hash of every token, in order; empty unless requested.
    pub hashes: Vec<u64>,
    /// Characters in all tokens up to and including each, with a leading 0: `n + 1` values; empty unless requested.
    pub ends: Vec<u64>,
    pub words: u64,
    pub cores: u64,
    pub core_characters: u64,
    pub words_with_letter: u64,
    /// One bit for each stop word that occurs.
    pub stop_words: u8,
    pub characters: u64,
    pub spaces: u64,
    pub hash_signs: u64,
    pub ellipses: u64,
    /// All fields below are 0 unless requested. Maximal runs of letters, numbers and `_`, and their characters.
    pub identifiers: u64,
    pub identifier_characters: u64,
    pub letters: u64,
    pub digits: u64,
    pub replacements: u64,
    pub longest_encoded: u64,
    /// Characters in encoded runs of at least 64.
    pub encoded: u64,
}

/// A word: its bytes, its characters, and the range of its core.
struct Word<'a> {
    bytes: &'a [u8],
    lettered: bool,
    length: u64,
    /// First and last byte (exclusive) of the core, and its characters.
    core: Option<(usize, usize, u64)>,
}

impl Words {
    /// Counts words; `keep` adds hashes of tokens, `code` adds the counts that rules for code need.
    pub fn scan(&mut self, text: &str, keep: bool, code: bool) {
        let (mut hashes, mut ends) = (std::mem::take(&mut self.hashes), std::mem::take(&mut self.ends));
        hashes.clear();
        ends.clear();
        *self = Words {
            hashes,
            ends,
            ..Words::default()
        };
        if keep {
            self.ends.push(0);
        }
        let mut at = 0;
        while at < text.len() {
            let (class, width) = class_at(text, at);
            if class & SPACE != 0 {
                self.spaces += 1;
                at += width;
                continue;
            }
            let rest = &text.as_bytes()[at..];
            if let Some(word) = short::word(rest).filter(|_| !code) {
                self.count_short(&word, keep);
                at += word.length;
                continue;
            }
            let word = ascii_word(rest).unwrap_or_else(|| self.any_word(text, at));
            if code {
                self.count_characters(&text[at..at + word.bytes.len()]);
            }
            at += word.bytes.len();
            self.count(&word, keep);
        }
        self.characters += self.spaces;
        self.hash_signs = memchr_iter(b'#', text.as_bytes()).count() as u64;
        self.ellipses = ELLIPSES
            .iter()
            .map(|it| it.find_iter(text.as_bytes()).count() as u64)
            .sum();
    }

    /// The word of any characters that begins at byte `start`.
    fn any_word<'a>(&mut self, text: &'a str, start: usize) -> Word<'a> {
        let bytes = text.as_bytes();
        let (mut lettered, mut length, mut at) = (false, 0, start);
        let mut first: Option<(usize, u64)> = None; // byte and character
        let mut last = (0, 0);
        while at < bytes.len() {
            let (class, width) = class_at(text, at);
            if class & SPACE != 0 {
                break;
            }
            lettered |= class & LETTER != 0;
            if class & ALPHANUMERIC != 0 {
                first.get_or_insert((at - start, length));
                last = (at - start + width, length + 1);
            }
            length += 1;
            at += width;
        }
        Word {
            bytes: &bytes[start..at],
            lettered,
            length,
            core: first.map(|first| (first.0, last.0, last.1 - first.1)),
        }
    }

    fn count_short(&mut self, word: &short::Word, keep: bool) {
        let has_core = u64::from(word.has_core);
        self.words += 1;
        self.characters += word.length as u64;
        self.words_with_letter += u64::from(word.lettered);
        self.cores += has_core;
        self.core_characters += has_core * word.token_length;
        self.stop_words |= word.stop_word();
        if keep {
            self.hashes.push(word.hash());
            self.ends.push(self.ends[self.ends.len() - 1] + word.token_length);
        }
    }

    fn count(&mut self, word: &Word, keep: bool) {
        self.words += 1;
        self.characters += word.length;
        self.words_with_letter += u64::from(word.lettered);
        let (token, token_length) = match word.core {
            Some((first, end, length)) => {
                let core = &word.bytes[first..end];
                self.cores += 1;
                self.core_characters += length;
                self.stop_words |= stop_word(core);
                (core, length)
            }
            None => (word.bytes, word.length),
        };
        if keep {
            self.hashes.push(short::hash(token));
            self.ends.push(self.ends[self.ends.len() - 1] + token_length);
        }
    }

    /// Counts identifiers, letters, digits, replacements and encoded runs of a word.
    fn count_characters(&mut self, word: &str) {
        let (mut previous, mut at, mut any) = (0, 0, 0);
        while at < word.len() {
            let (class, width) = class_at(word, at);
            any |= class;
            if class & IDENTIFIER != 0 {
                self.identifiers += u64::from(previous & IDENTIFIER == 0);
                self.identifier_characters += 1;
            }
            self.letters += u64::from(class & LETTER != 0);
            self.digits += u64::from(class & DIGIT != 0);
            if width == 3 {
                self.replacements += u64::from(&word.as_bytes()[at..at + 3] == "\u{fffd}".as_bytes());
            }
            previous = class;
            at += width;
        }
        if any & ENCODED != 0 && word.len() > self.longest_encoded.min(ENCODED_RUN as u64 - 1) as usize {
            self.encoded_runs(word.as_bytes());
        }
    }

    fn encoded_runs(&mut self, word: &[u8]) {
        for run in word.split(|byte| ASCII[*byte as usize] & ENCODED == 0) {
            self.longest_encoded = self.longest_encoded.max(run.len() as u64);
            if run.len() >= ENCODED_RUN {
                self.encoded += run.len() as u64;
            }
        }
    }
}

/// The word at the start of `bytes`, if it is all ASCII.
#[inline]
fn ascii_word(bytes: &[u8]) -> Option<Word<'_>> {
    let length = ascii_end(bytes)?;
    let bytes = &bytes[..length];
    let class = |at: usize| ASCII[bytes[at] as usize];
    let core = (0..length)
        .find(|at| class(*at) & ALPHANUMERIC != 0)
        .map(|first| {
            let last = (first..length).rfind(|at| class(*at) & ALPHANUMERIC != 0);
            let end = last.map_or(first, |last| last + 1);
            (first, end, (end - first) as u64)
        });
    // Most words begin with a letter, which ends the search at once.
    let lettered = core.is_some_and(|(first, end, _)| (first..end).any(|at| class(at) & LETTER != 0));
    Some(Word {
        bytes,
        lettered,
        length: length as u64,
        core,
    })
}

/// The end of the word at the start of `bytes`; `None` if it holds a byte beyond ASCII.
#[inline]
fn ascii_end(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    // Eight bytes at a time, while all are ASCII and none is a space (below `!`).
    while let Some(eight) = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        let eight = u64::from_le_bytes(*eight);
        let high = eight & EACH_HIGH_BIT;
        let low = eight.wrapping_sub(EACH_FIRST_VISIBLE) & !eight & EACH_HIGH_BIT;
        if high | low != 0 {
            at += ((high | low).trailing_zeros() / 8) as usize;
            break;
        }
        at += 8;
    }
    while let Some(&byte) = bytes.get(at) {
        if ASCII[byte as usize] & SPACE != 0 {
            return Some(at);
        }
        if byte >= 128 {
            return None;
        }
        at += 1;
    }
    Some(at)
}

/// The classes and the width in bytes of the character that begins at byte `at`.
#[inline]
fn class_at(text: &str, at: usize) -> (u8, usize) {
    let byte = text.as_bytes()[at];
    if byte < 128 {
        return (ASCII[byte as usize], 1);
    }
    let character = text[at..].chars().next().unwrap_or_default();
    (characters::class(character), character.len_utf8())
}

/// The bit of a stop word of the Gopher paper, 0 for any other word; ignores the case of ASCII letters.
fn stop_word(core: &[u8]) -> u8 {
    if !(2..=4).contains(&core.len()) {
        return 0;
    }
    let mut lower = [0; 4];
    for (to, from) in lower.iter_mut().zip(core) {
        *to = from.to_ascii_lowercase();
    }
    match &lower {
        b"the\0" => 1,
        b"be\0\0" => 2,
        b"to\0\0" => 4,
        b"of\0\0" => 8,
        b"and\0" => 16,
        b"that" => 32,
        b"have" => 64,
        b"with" => 128,
        _ => 0,
    }
}
