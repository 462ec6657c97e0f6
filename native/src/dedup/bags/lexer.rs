//! Texts as tokens: words, tokens of a pre-trained tokenizer, or shingles of several of either in a row.
//!
//! A text is folded first (`folding.rs`), so that what reads alike has the same tokens.
//!
//! Prose: words in one case. ASCII letters, digits and `_` form a word, as in the `\w` of regular expressions,
//! and every other ASCII character ends it; a stretch with other characters is cut by `words.rs`, which finds the
//! words of scripts without blanks in dictionaries. So an identifier is one word in prose too, and the reference pages
//! of two functions differ by more than a part of a name. Code: identifiers, numbers and the words of strings and
//! comments, with their case, without punctuation and the escapes `\n`, `\t` and `\r`; the lexer assumes no
//! language's grammar. The words of `cl100k_base` are its tokens (`cl100k.rs`).
//!
//! A word is the XXH3 of its bytes, a shingle the XXH3 of its words' hashes. A text of fewer words than a shingle
//! is one shingle.

use std::borrow::Cow;

use xxhash_rust::xxh3::xxh3_64;

use super::cl100k;
use super::folding::FoldedText;
use super::stretches::Stretches;
use super::words;

const MOST_WORDS: usize = 16; // in a shingle

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Prose,
    Code,
    Cl100k,
}

/// Cuts texts into tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lexer {
    kind: Kind,
    /// Number of words of a token.
    shingle: usize,
}

impl Lexer {
    /// `prose`, `code` or `cl100k_base` for words, `prose-5grams` and the like for shingles of five.
    pub fn parse(name: &str) -> Result<Self, String> {
        let (kind, shingle) = match name.split_once('-') {
            None => (name, Some(1)),
            Some((kind, grams)) => (kind, grams.strip_suffix("grams").and_then(|n| n.parse().ok())),
        };
        let kind = match kind {
            "prose" => Some(Kind::Prose),
            "code" => Some(Kind::Code),
            "cl100k_base" => Some(Kind::Cl100k),
            _ => None,
        };
        match (kind, shingle) {
            (Some(kind), Some(shingle @ 1..=MOST_WORDS)) => Ok(Self { kind, shingle }),
            _ => Err(format!(
                "Unknown kind of text `{name}`. Use `prose`, `code` or `cl100k_base`, or `code-5grams` for shingles of 2 to {MOST_WORDS} words."
            )),
        }
    }

    /// The form of `text` that `each_token` reads.
    pub fn fold(self, text: &str) -> FoldedText<'_> {
        match self.kind {
            Kind::Prose => FoldedText::without_case(text),
            Kind::Code | Kind::Cl100k => FoldedText::with_case(text),
        }
    }

    /// Calls `emit` with the hash and the words of every token, in order.
    pub fn each_token<'a>(self, text: &'a FoldedText<'_>, mut emit: impl FnMut(u64, &[&'a [u8]])) {
        let text = text.as_str();
        if self.shingle == 1 {
            return each_word(text, self.kind, |hash, word| emit(hash, &[word]));
        }
        let (mut hashes, mut words) = (Vec::new(), Vec::new());
        each_word(text, self.kind, |hash, word| {
            if words.len() == self.shingle {
                hashes.drain(..8);
                words.remove(0);
            }
            hashes.extend(hash.to_le_bytes());
            words.push(word);
            if words.len() == self.shingle {
                emit(xxh3_64(&hashes), &words);
            }
        });
        if (1..self.shingle).contains(&words.len()) {
            emit(xxh3_64(&hashes), &words);
        }
    }

    /// The text of a token in the vocabulary.
    pub fn canonical(self, words: &[&[u8]]) -> String {
        let words: Vec<Cow<str>> = words
            .iter()
            .map(|word| match (self.kind, String::from_utf8_lossy(word)) {
                (Kind::Prose, word) => word.to_ascii_lowercase().into(), // the rest is folded
                (Kind::Code | Kind::Cl100k, word) => word,
            })
            .collect();
        // A token of cl100k_base includes its space.
        words.join(if self.kind == Kind::Cl100k { "" } else { " " })
    }
}

/// Calls `emit` with the hash and the text of every word, in order.
fn each_word<'a>(text: &'a str, kind: Kind, emit: impl FnMut(u64, &'a [u8])) {
    match kind {
        Kind::Prose => each_prose_word(text, emit),
        Kind::Code => each_code_word(text, emit),
        Kind::Cl100k => cl100k::each_token(text, emit),
    }
}

fn each_prose_word<'a>(text: &'a str, mut emit: impl FnMut(u64, &'a [u8])) {
    let mut stretches = Stretches::new(text);
    let (mut lower, mut at) = (Vec::new(), 0);
    while let Some(begin) = stretches.begin(at) {
        at = stretches.end(begin);
        let stretch = &text[begin..at];
        let mut emit_lower = |word: &'a str| {
            lower.clear();
            lower.extend(word.bytes().map(|byte| byte.to_ascii_lowercase()));
            emit(xxh3_64(&lower), word.as_bytes());
        };
        if stretch.is_ascii() {
            emit_lower(stretch);
        } else {
            words::each_word(stretch, emit_lower);
        }
    }
}

fn each_code_word<'a>(text: &'a str, mut emit: impl FnMut(u64, &'a [u8])) {
    let bytes = text.as_bytes();
    let mut stretches = Stretches::new(text);
    let mut at = 0;
    while let Some(begin) = stretches.begin(at) {
        if is_escaped(&bytes[at..=begin]) {
            at = begin + 1;
            continue;
        }
        at = stretches.end(begin);
        let stretch = &text[begin..at];
        if !stretch.is_ascii() {
            words::each_word(stretch, |word| emit(xxh3_64(word.as_bytes()), word.as_bytes()));
            continue;
        }
        if bytes[begin].is_ascii_digit() {
            at = end_of_number(bytes, begin);
        }
        emit(xxh3_64(&bytes[begin..at]), &bytes[begin..at]);
    }
}

/// Whether the last byte of `gap` is the letter of an escape, which would join the next word. The bytes before it
/// are punctuation; a backslash after an unescaped backslash is escaped itself.
#[inline]
fn is_escaped(gap: &[u8]) -> bool {
    let [before @ .., b'\\', b'n' | b't' | b'r'] = gap else {
        return false;
    };
    before.iter().rev().take_while(|&&byte| byte == b'\\').count() % 2 == 0
}

/// The end of the number at `start`: digits, letters, inner points, a signed exponent.
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
            byte => byte.is_ascii_alphanumeric() || byte == b'_',
        };
        if !continues {
            break;
        }
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tokens(text: &str, lexer: &str) -> Vec<String> {
        let (mut tokens, lexer) = (Vec::new(), Lexer::parse(lexer).unwrap());
        lexer.each_token(&lexer.fold(text), |hash, words| {
            let token = lexer.canonical(words);
            if lexer.shingle == 1 {
                assert_eq!(hash, xxh3_64(token.as_bytes()));
            }
            tokens.push(token);
        });
        tokens
    }

    #[test]
    fn prose_is_lower_cased_words() {
        assert_eq!(
            tokens("The 2nd “naïve” Plan_B, don't!", "prose"),
            ["the", "2nd", "naïve", "plan_b", "don", "t"]
        );
        assert_eq!(
            tokens("__init__ _é_1 ___ -_-", "prose"),
            ["__init__", "_é_1", "___", "_"]
        );
        assert_eq!(tokens("東京 ΣΟΦΟΣ STRAßE", "prose"), ["東京", "σοφοσ", "strasse"]);
        assert_eq!(tokens("SÄULE säule", "prose"), ["säule", "säule"]);
    }

    #[test]
    fn a_text_has_the_same_tokens_in_every_form() {
        for (text, other) in [
            ("Cafe\u{301} d'hôtel", "café d’hôtel"),
            ("co\u{ad}operation", "cooperation"),
            ("ｄｏｎ＇ｔ", "don’t"),
            ("라라라", "라라라"),
            ("ภาษา\u{200b}ไทย", "ภาษาไทย"),
        ] {
            for lexer in ["prose", "prose-2grams"] {
                assert_eq!(tokens(text, lexer), tokens(other, lexer));
            }
            for lexer in ["code", "cl100k_base"] {
                let capital = |text: &str| tokens(&text.replace('C', "c"), lexer);
                assert_eq!(capital(text), capital(other));
            }
        }
    }

    #[test]
    fn code_is_identifiers_numbers_and_words() {
        assert_eq!(
            tokens("x_1 = 3.14e-5*0xFF_e+1 # Größe\\nnext \"a.b\" 1.2.3 1..2", "code"),
            [
                "x_1", "3.14e-5", "0xFF_e", "1", "Größe", "next", "a", "b", "1.2.3", "1", "2"
            ]
        );
    }

    #[test]
    fn shingles_are_words_in_a_row() {
        assert_eq!(tokens("Is (a) b; c", "code-3grams"), ["Is a b", "a b c"]);
        assert_eq!(tokens("Is a", "prose-3grams"), ["is a"]);
        assert_eq!(tokens("Is a Bee", "prose-3grams"), ["is a bee"]);
        assert_eq!(tokens("()", "prose-3grams"), Vec::<String>::new());
        assert_eq!(
            tokens("A plan, tokenized", "cl100k_base-2grams"),
            ["A plan", " plan token", " tokenized"]
        );
    }

    #[test]
    fn an_unknown_kind_of_text_is_refused() {
        for name in [
            "",
            "verse",
            "code-",
            "code-0grams",
            "code-17grams",
            "code-3",
            "code-xgrams",
        ] {
            assert!(Lexer::parse(name).is_err(), "{name}");
        }
    }

    #[test]
    fn what_has_no_word_has_no_token() {
        for text in ["", "{}();\n", "—…“”", "\u{200d}", "\\n\\n"] {
            assert_eq!(tokens(text, "code"), Vec::<String>::new(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn a_shingle_is_named_by_its_words(text in "[ab ]{0,30}", shingle in 2usize..5) {
            let lexer = Lexer::parse(&format!("code-{shingle}grams")).unwrap();
            let mut seen = std::collections::BTreeMap::new();
            let folded = lexer.fold(&text);
            lexer.each_token(&folded, |hash, words| {
                assert_eq!(*seen.entry(hash).or_insert_with(|| words.to_vec()), words);
            });
            let words: Vec<&[u8]> = text.split_whitespace().map(str::as_bytes).collect();
            let expected: std::collections::BTreeSet<&[&[u8]]> = match words.len() {
                0 => [].into(),
                n => words.windows(shingle.min(n)).collect(),
            };
            prop_assert_eq!(seen.len(), expected.len());
        }
    }
}
