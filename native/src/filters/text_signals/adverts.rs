//! What adverts are full of: calls to act, prices, contact lines and links.
//!
//! `factory/filters/rules/advertising.py` is the readable definition.

use std::sync::LazyLock;

use rustc_hash::FxHashMap;

use super::characters::{ALPHANUMERIC, SPACE, class};
use super::phrases::PHRASES;

pub const CURRENCIES: [&str; 9] = [
    "$", "\u{20ac}", "\u{a3}", "\u{a5}", "\u{20b9}", "usd", "eur", "gbp", "chf",
];
pub const SIGNS: [char; 5] = ['$', '\u{20ac}', '\u{a3}', '\u{a5}', '\u{20b9}'];
pub const OFF: [&str; 8] = [
    "off",
    "discount",
    "rabatt",
    "remise",
    "descuento",
    "desconto",
    "sconto",
    "korting",
];
pub const LABELS: [&str; 10] = [
    "tel",
    "telephone",
    "telefon",
    "phone",
    "fax",
    "email",
    "e-mail",
    "whatsapp",
    "hotline",
    "mobile",
];
const LEADING: [char; 5] = ['(', '[', '"', '\'', '\u{201c}'];
const TRAILING: [char; 10] = [')', ']', '"', '\'', '.', ',', ';', ':', '!', '?'];
const LEAST_DIGITS: usize = 8; // of a telephone number
const MOST_WORDS: usize = 12; // of a contact line

/// The hashes of phrases, by that of their first word.
static BY_FIRST_WORD: LazyLock<FxHashMap<u64, Vec<Vec<u64>>>> = LazyLock::new(|| {
    let mut phrases: FxHashMap<u64, Vec<Vec<u64>>> = FxHashMap::default();
    for line in PHRASES {
        let mut words = line.split(' ').map(hash);
        let first = words.next().expect("a phrase has a word");
        phrases.entry(first).or_default().push(words.collect());
    }
    phrases
});

/// The counts of one text; buffers are reused from text to text.
#[derive(Default)]
pub struct Adverts {
    pub words: u64, // with a letter or number
    pub calls: u64,
    pub prices: u64,
    pub links: u64,
    pub lines: u64, // that are not blank
    pub contacts: u64,
    cores: Vec<u64>, // hashes
}

impl Adverts {
    pub fn scan(&mut self, text: &str) {
        let mut cores = std::mem::take(&mut self.cores);
        cores.clear();
        *self = Self::default();
        let mut previous = "";
        for line in text.split('\n') {
            let (mut n_words, mut first, mut addresses) = (0, "", 0);
            for word in words(line) {
                let core = core(word);
                if !core.is_empty() {
                    cores.push(hash(core));
                }
                let bare = stripped(word);
                self.links += u64::from(is_link(word));
                self.prices += u64::from(is_price(previous, bare));
                addresses += usize::from(is_address(bare));
                if n_words == 0 {
                    first = word;
                }
                n_words += 1;
                previous = bare;
            }
            self.lines += u64::from(n_words > 0);
            if 0 < n_words && n_words <= MOST_WORDS {
                let contact = addresses > 0 || is_label(first) || has_telephone_number(line);
                self.contacts += u64::from(contact);
            }
        }
        self.prices += u64::from(is_price(previous, ""));
        self.words = cores.len() as u64;
        self.calls = calls(&cores);
        self.cores = cores;
    }
}

/// FNV-1a of a word with its ASCII letters in lower case.
fn hash(word: &str) -> u64 {
    word.bytes().fold(0xcbf2_9ce4_8422_2325, |state, byte| {
        (state ^ u64::from(byte.to_ascii_lowercase())).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

fn is_space(character: char) -> bool {
    class(character) & SPACE != 0
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(is_space).filter(|word| !word.is_empty())
}

/// The part of a word from its first to its last letter or number.
fn core(word: &str) -> &str {
    word.trim_matches(|character| class(character) & ALPHANUMERIC == 0)
}

fn stripped(word: &str) -> &str {
    word.trim_start_matches(LEADING).trim_end_matches(TRAILING)
}

/// Phrases in words; the longest that begins at a word counts, and the search goes on behind it.
fn calls(words: &[u64]) -> u64 {
    let (mut calls, mut at) = (0, 0);
    while at < words.len() {
        let longest = BY_FIRST_WORD.get(&words[at]).and_then(|phrases| {
            let fitting = phrases.iter().filter(|rest| words[at + 1..].starts_with(rest));
            fitting.map(Vec::len).max()
        });
        calls += u64::from(longest.is_some());
        at += 1 + longest.unwrap_or(0);
    }
    calls
}

fn is_link(word: &str) -> bool {
    let begins = word
        .as_bytes()
        .get(..4)
        .is_some_and(|head| head.eq_ignore_ascii_case(b"www."));
    begins || word.contains("://")
}

fn among(word: &str, list: &[&str]) -> bool {
    list.iter().any(|entry| entry.eq_ignore_ascii_case(word))
}

/// Digits, perhaps with separators between them.
fn is_number(word: &str) -> bool {
    let bytes = word.as_bytes();
    bytes.first().is_some_and(u8::is_ascii_digit)
        && bytes.last().is_some_and(u8::is_ascii_digit)
        && bytes
            .iter()
            .all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b',' | b'\''))
}

fn is_price(word: &str, next: &str) -> bool {
    if let Some(number) = word.strip_suffix('%') {
        let less = number.strip_prefix('-').is_some_and(is_number);
        return less || is_number(number) && among(next, &OFF);
    }
    if among(word, &CURRENCIES) {
        return is_number(next);
    }
    let signed = word.strip_prefix(SIGNS).or_else(|| word.strip_suffix(SIGNS));
    signed.is_some_and(is_number) || is_number(word) && among(next, &CURRENCIES)
}

/// Whether a word is the label of an address or telephone number.
fn is_label(word: &str) -> bool {
    word.strip_suffix(':').is_some_and(|label| among(label, &LABELS))
}

fn is_address(word: &str) -> bool {
    let Some((name, host)) = word.split_once('@') else {
        return false;
    };
    let last = host.rsplit_once('.').map_or("", |(_, last)| last);
    !name.is_empty()
        && !host.starts_with('.')
        && last.len() >= 2
        && last.bytes().all(|it| it.is_ascii_alphabetic())
}

/// Whether a run of digits and their separators begins like a telephone number and has enough digits.
fn has_telephone_number(line: &str) -> bool {
    if line.bytes().filter(u8::is_ascii_digit).count() < LEAST_DIGITS {
        return false;
    }
    let belongs = |it: char| it.is_ascii_digit() || matches!(it, '+' | '(' | ')' | '-' | '.' | '/' | ' ');
    line.split(|it| !belongs(it)).any(|run| {
        let run = run.trim_matches(' ');
        run.starts_with(['+', '(', '0']) && run.bytes().filter(u8::is_ascii_digit).count() >= LEAST_DIGITS
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scanned(text: &str) -> Adverts {
        let mut adverts = Adverts::default();
        adverts.scan(text);
        adverts
    }

    #[test]
    fn phrases_are_whole_words_in_any_case_and_the_longest_counts_once() {
        assert_eq!(
            scanned("BUY NOW! Limited time offer, buying nowhere; (free\nshipping)").calls,
            3
        );
    }

    #[test]
    fn prices_have_a_currency_or_a_discount() {
        assert_eq!(
            scanned("$19.99, 20 EUR, 5% off, -50%! (\u{a3}5) USD 7 19\u{20ac}").prices,
            7
        );
        assert_eq!(scanned("20 of 30, 5% of all, x$1, $x, -5, 3.14 $PATH").prices, 0);
    }

    #[test]
    fn contact_lines_are_short() {
        assert_eq!(
            scanned("Tel: 5\nme@shop.com\n+49 (30) 123-4567\nsince 2001-10-12\na@b\n@x.com").contacts,
            3
        );
    }
}
