//! The words of a text as hashes: the tokenizer that classifiers and word lists share.
//!
//! A token is a maximal run of letters, numbers and `_`, in lower case, with the marks on them; in scripts that
//! are written without spaces each character is a token. Its hash is FNV-1a of its UTF-8 bytes, mixed so that all bits depend on all
//! bytes. `factory/models/hashing.py` is the readable definition.

use pyo3::prelude::*;
use unicode_normalization::char::is_combining_mark;

/// The classes of characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Separates tokens.
    Outside = 0,
    /// Belongs to a run.
    Word = 1,
    /// Is a token by itself.
    Alone = 2,
    /// Belongs to the run before it, if there is one.
    Mark = 3,
    /// Hyphenates, joins or styles the run before it, which is the same word without it.
    Unseen = 4,
}

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;
const PAIR: u64 = 0x9e37_79b9_7f4a_7c15; // 2^64 over the golden ratio

/// ASCII bytes in lower case where they belong to a token, else 0.
static LOWER: [u8; 128] = lower();

const fn lower() -> [u8; 128] {
    let mut table = [0; 128];
    let mut byte = 0u8;
    while byte < 128 {
        if byte.is_ascii_alphanumeric() || byte == b'_' {
            table[byte as usize] = byte.to_ascii_lowercase();
        }
        byte += 1;
    }
    table
}

/// The class of any character.
pub fn class(character: char) -> Class {
    if character.is_ascii() {
        return if LOWER[character as usize] == 0 {
            Class::Outside
        } else {
            Class::Word
        };
    }
    let of_letter = character.is_alphanumeric();
    match character {
        '\u{ad}' | '\u{200c}' | '\u{200d}' | '\u{2060}' | '\u{fe00}'..='\u{fe0f}' => Class::Unseen,
        '\u{e00}'..='\u{eff}' // Thai, Lao
        | '\u{1000}'..='\u{109f}' // Burmese
        | '\u{1780}'..='\u{17ff}' // Khmer
        | '\u{3005}'..='\u{30ff}' // Japanese
        | '\u{31f0}'..='\u{31ff}'
        | '\u{3400}'..='\u{9fff}' // Chinese
        | '\u{f900}'..='\u{faff}'
        | '\u{1b000}'..='\u{1b16f}'
        | '\u{20000}'..='\u{3ffff}' => {
            if of_letter {
                Class::Alone
            } else {
                Class::Outside
            }
        }
        _ if of_letter => Class::Word,
        _ if is_combining_mark(character) => Class::Mark,
        _ => Class::Outside,
    }
}

/// A token: its hash and its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    pub hash: u64,
    pub begin: usize,
    pub end: usize,
}

#[inline]
fn add_byte(state: u64, byte: u8) -> u64 {
    (state ^ u64::from(byte)).wrapping_mul(FNV_PRIME)
}

fn add_character(state: u64, character: char) -> u64 {
    let mut state = state;
    let mut buffer = [0; 4];
    for lower in character.to_lowercase() {
        for byte in lower.encode_utf8(&mut buffer).bytes() {
            state = add_byte(state, byte);
        }
    }
    state
}

/// The finalizer of MurmurHash3: every bit of the result depends on every bit of `state`.
#[inline]
fn mixed(state: u64) -> u64 {
    let state = (state ^ (state >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let state = (state ^ (state >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    state ^ (state >> 33)
}

/// The hash of two neighboring tokens, from theirs.
#[inline]
pub fn pair(left: u64, right: u64) -> u64 {
    mixed(left.wrapping_mul(PAIR) ^ right)
}

/// Calls `visit` with each token of `text`, in order.
#[inline]
pub fn for_each_token(text: &str, mut visit: impl FnMut(Token)) {
    let bytes = text.as_bytes();
    let mut begin = 0;
    let mut state = FNV_OFFSET;
    let mut at = 0;
    while at < bytes.len() {
        let byte = bytes[at];
        if byte < 128 {
            let lower = LOWER[byte as usize];
            if lower != 0 {
                state = add_byte(state, lower);
            } else {
                if begin < at {
                    visit(Token {
                        hash: mixed(state),
                        begin,
                        end: at,
                    });
                }
                begin = at + 1;
                state = FNV_OFFSET;
            }
            at += 1;
            continue;
        }
        let character = text[at..].chars().next().expect("a character begins here");
        let end = at + character.len_utf8();
        let class = class(character);
        let inside = begin < at;
        if class == Class::Unseen && inside {
            at = end;
            continue;
        }
        if class == Class::Word || class == Class::Mark && inside {
            state = add_character(state, character);
        } else {
            if begin < at {
                visit(Token {
                    hash: mixed(state),
                    begin,
                    end: at,
                });
            }
            if class == Class::Alone {
                visit(Token {
                    hash: mixed(add_character(FNV_OFFSET, character)),
                    begin: at,
                    end,
                });
            }
            begin = end;
            state = FNV_OFFSET;
        }
        at = end;
    }
    if begin < bytes.len() {
        visit(Token {
            hash: mixed(state),
            begin,
            end: bytes.len(),
        });
    }
}

/// The tokens of `text`, in order.
pub fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    for_each_token(text, |token| tokens.push(token));
    tokens
}

#[pyfunction]
fn token_hashes(py: Python<'_>, text: &str) -> Vec<(u64, usize, usize)> {
    py.detach(|| {
        tokens(text)
            .into_iter()
            .map(|token| (token.hash, token.begin, token.end))
            .collect()
    })
}

/// Where the class of characters changes: (first code point, class), ascending.
#[pyfunction]
fn token_classes(py: Python<'_>) -> Vec<(u32, u8)> {
    py.detach(|| {
        let mut changes: Vec<(u32, u8)> = Vec::new();
        for point in 0..=char::MAX as u32 {
            let class = char::from_u32(point).map_or(Class::Outside, class) as u8;
            if changes.last().is_none_or(|(_, last)| *last != class) {
                changes.push((point, class));
            }
        }
        changes
    })
}

/// Every character with another lower case than itself, and that lower case.
#[pyfunction]
fn lower_cases(py: Python<'_>) -> Vec<(char, String)> {
    py.detach(|| {
        (0..=char::MAX as u32)
            .filter_map(char::from_u32)
            .map(|character| (character, character.to_lowercase().collect::<String>()))
            .filter(|(character, lower)| !lower.chars().eq([*character]))
            .collect()
    })
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(token_hashes, module)?)?;
    module.add_function(wrap_pyfunction!(token_classes, module)?)?;
    module.add_function(wrap_pyfunction!(lower_cases, module)?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words(text: &str) -> Vec<&str> {
        tokens(text)
            .iter()
            .map(|token| &text[token.begin..token.end])
            .collect()
    }

    #[test]
    fn a_run_is_a_token_and_so_is_an_ideograph() {
        assert_eq!(words("Don't_go,  now!"), ["Don", "t_go", "now"]);
        assert_eq!(words("日本go 語"), ["日", "本", "go", "語"]);
        assert_eq!(words("é١x"), ["é١x"]);
    }

    #[test]
    fn marks_and_soft_hyphens_end_no_word() {
        assert_eq!(words("क्षमा e\u{301}t \u{301}a"), ["क्षमा", "e\u{301}t", "a"]);
        assert_eq!(words("cock\u{ad}tail \u{2764}\u{fe0f}"), ["cock\u{ad}tail"]);
        assert_eq!(tokens("cock\u{ad}tail")[0].hash, tokens("cocktail")[0].hash);
    }

    #[test]
    fn the_case_of_a_word_changes_no_hash() {
        let hashes = |text| tokens(text).iter().map(|token| token.hash).collect::<Vec<_>>();
        assert_eq!(hashes("Straße ÉTÉ Go"), hashes("straße été go"));
        assert_ne!(hashes("a b"), hashes("b a"));
    }

    proptest! {
        #[test]
        fn tokens_are_separate_runs_in_order(text in "(\\PC|[ \n_a-zA-Z0-9日本é])*") {
            let mut end = 0;
            for token in tokens(&text) {
                prop_assert!(end <= token.begin && token.begin < token.end);
                prop_assert!(text[token.begin..token.end].chars().all(|it| class(it) != Class::Outside));
                end = token.end;
            }
        }

        #[test]
        fn a_token_alone_has_the_same_hash(text in "(\\PC|[ \na-z日])*") {
            for token in tokens(&text) {
                let alone = tokens(&text[token.begin..token.end]);
                prop_assert_eq!(alone.len(), 1);
                prop_assert_eq!(alone[0].hash, token.hash);
            }
        }
    }
}
