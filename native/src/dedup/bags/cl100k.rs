//! The tokens of cl100k_base, a published byte-pair encoding of 100,256 tokens, with its vocabulary compiled in.
//!
//! The encoding's own pattern cuts the text into pieces, and its merges cut a piece into tokens, which keep their
//! case and the space before them (`The plan` is `The` and ` plan`). Tokens of white space and punctuation alone
//! are dropped, as in the other lexers. The time is linear in any text: the pattern's automaton and the encoder
//! read a byte a bounded number of times.
//!
//! Words with a letter beyond ASCII stay words. The vocabulary was learned from English above all, and has hardly
//! more than the letters of other scripts or parts of them: by such tokens, all texts of a script would be alike.

use bpe_openai::cl100k_base;
use xxhash_rust::xxh3::xxh3_64;

use super::stretches::Stretches;
use super::words;

/// Calls `emit` with the hash and the bytes of every token, in order.
pub fn each_token<'a>(text: &'a str, mut emit: impl FnMut(u64, &'a [u8])) {
    let mut stretches = Stretches::new(text);
    let (mut at, mut encoded) = (0, 0);
    while let Some(begin) = stretches.begin(at) {
        at = stretches.end(begin);
        if text.as_bytes()[begin..at].is_ascii() {
            continue;
        }
        words::each_word(&text[begin..at], |word| {
            if !word.is_ascii() {
                let begin = word.as_ptr() as usize - text.as_ptr() as usize;
                if encoded < begin {
                    encode(&text[encoded..begin], &mut emit);
                }
                emit(xxh3_64(word.as_bytes()), word.as_bytes());
                encoded = begin + word.len();
            }
        });
    }
    encode(&text[encoded..], &mut emit);
}

/// Calls `emit` with every token of the encoding.
fn encode<'a>(text: &'a str, emit: &mut impl FnMut(u64, &'a [u8])) {
    let tokenizer = cl100k_base();
    for piece in tokenizer.split(text) {
        if !piece.bytes().any(|byte| byte.is_ascii_alphanumeric()) {
            continue;
        }
        let mut rest = piece.as_bytes();
        for token in tokenizer.bpe.encode_via_backtracking(rest) {
            let (bytes, after) = rest.split_at(tokenizer.bpe.token_len(token));
            if bytes.iter().any(u8::is_ascii_alphanumeric) {
                emit(xxh3_64(bytes), bytes);
            }
            rest = after;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use proptest::prelude::*;

    fn tokens(text: &str) -> Vec<String> {
        let mut found = Vec::new();
        each_token(text, |hash, bytes| {
            assert_eq!(hash, xxh3_64(bytes));
            found.push(String::from_utf8_lossy(bytes).into_owned());
        });
        found
    }

    #[test]
    fn tokens_equal_the_published_encoding_without_punctuation() {
        assert_eq!(
            tokens("Tokenization isn't  hard,\n\n(really) 12345"),
            [
                "Token", "ization", " isn", "'t", " hard", "(re", "ally", "123", "45"
            ]
        );
    }

    #[test]
    fn words_beyond_ascii_stay_words() {
        assert_eq!(
            tokens("Tokenization, größer: ภาษาไทย is — 日本語 — small𓀀"),
            [
                "Token",
                "ization",
                "größer",
                "ภาษา",
                "ไทย",
                " is",
                "日本語",
                "small𓀀"
            ]
        );
    }

    #[test]
    fn white_space_and_punctuation_have_no_token() {
        assert_eq!(tokens(" \n\t {}();— …\u{200d}"), Vec::<String>::new());
    }

    /// The tokens of a piece, by repeatedly merging the two neighbours that make the lowest token.
    fn merged(piece: &[u8], ranks: &HashMap<&[u8], u32>) -> Vec<Vec<u8>> {
        let mut parts: Vec<Vec<u8>> = piece.iter().map(|&byte| vec![byte]).collect();
        loop {
            let pairs = parts.windows(2).map(|pair| pair.concat());
            let lowest = pairs
                .enumerate()
                .filter_map(|(at, pair)| Some((*ranks.get(pair.as_slice())?, at)))
                .min();
            let Some((_, at)) = lowest else { return parts };
            let right = parts.remove(at + 1);
            parts[at].extend(right);
        }
    }

    #[test]
    fn words_are_merged_as_byte_pair_encoding_merges_them() {
        let bpe = &cl100k_base().bpe;
        let ranks: HashMap<&[u8], u32> = (0..bpe.num_tokens() as u32)
            .map(|token| (bpe.token_bytes(token), token))
            .collect();
        let letters = ["a", "e", "n", "t", "i", "on", "S", "th", "er", "W", "q"];
        let mut state = 1u64;
        for _ in 0..300 {
            let mut word = String::new();
            for _ in 0..1 + state % 23 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                word.push_str(letters[(state >> 33) as usize % letters.len()]);
            }
            let mut found = Vec::new();
            each_token(&word, |_, token| found.push(token.to_vec()));
            assert_eq!(found, merged(word.as_bytes(), &ranks), "{word}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_cut_and_its_letters_all_stand_in_tokens(text in "\\PC*|[ a-z\\n'0-9\u{3000}é東—]*") {
            let mut end = 0;
            each_token(&text, |_, token| {
                let begin = token.as_ptr() as usize - text.as_ptr() as usize;
                assert!(!text[end.min(begin)..begin].chars().any(char::is_alphanumeric));
                end = begin + token.len();
            });
            prop_assert!(!text[end..].chars().any(char::is_alphanumeric));
        }
    }
}
