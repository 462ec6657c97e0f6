//! The tokens of cl100k_base, a published byte-pair encoding of 100,256 tokens, with its vocabulary compiled in.
//!
//! The encoding's own pattern cuts the text into pieces, and its merges cut a piece into tokens, which keep their
//! case and the space before them (`The plan` is `The` and ` plan`). Tokens of white space and punctuation alone
//! are dropped, as in the other lexers. The time is linear in any text: the pattern's automaton and the encoder
//! read a byte a bounded number of times.

use bpe_openai::cl100k_base;
use xxhash_rust::xxh3::xxh3_64;

/// Calls `emit` with the hash and the bytes of every token, in order; a token may be part of a character.
pub fn each_token<'a>(text: &'a str, mut emit: impl FnMut(u64, &'a [u8])) {
    let tokenizer = cl100k_base();
    for piece in tokenizer.split(text) {
        if !piece.chars().any(char::is_alphanumeric) {
            continue;
        }
        let mut rest = piece.as_bytes();
        for token in tokenizer.bpe.encode_via_backtracking(rest) {
            let (bytes, after) = rest.split_at(tokenizer.bpe.token_len(token));
            if bytes
                .iter()
                .any(|it| it.is_ascii_alphanumeric() || !it.is_ascii())
            {
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
    fn a_rare_character_is_tokens_of_its_bytes() {
        let mut bytes: Vec<u8> = Vec::new();
        each_token("𓀀", |_, token| bytes.extend(token));
        assert_eq!(bytes, "𓀀".as_bytes());
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
        let letters = ["a", "e", "n", "t", "i", "on", "S", "é", "東", "ß", "q"];
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
        fn any_text_is_cut_and_its_letters_all_stand_in_tokens(text in "\\PC*|[ a-z\\n'0-9\u{3000}é東]*") {
            let mut bytes: Vec<u8> = Vec::new();
            each_token(&text, |_, token| bytes.extend(token));
            let kept = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).collect::<String>();
            prop_assert_eq!(kept(&String::from_utf8(bytes).unwrap()), kept(&text));
        }
    }
}
