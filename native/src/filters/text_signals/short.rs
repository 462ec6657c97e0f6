//! ASCII words of at most 16 bytes, each as one number: no branch depends on their letters.
//!
//! Nineteen of twenty English words are short. Walking along their bytes costs a few mispredicted branches a
//! word, as lengths and punctuation vary; this module compares all bytes at once.

use xxhash_rust::xxh3::xxh3_64;

const WIDTH: usize = 16;
const EACH: u128 = u128::MAX / 255; // 1 in each byte
const HIGH: u128 = EACH << 7;
const CASE: u128 = EACH * 0x20;
// Two numbers that are not ASCII text.
const LOW_KEY: u64 = 0x9e37_79b9_7f4a_7c15;
const HIGH_KEY: u64 = 0xc2b2_ae3d_27d4_eb4f;

pub struct Word {
    pub length: usize,
    /// Whether it holds a letter or number, in which case its token is its core.
    pub has_core: bool,
    pub lettered: bool,
    pub token_length: u64,
    token: u128,
}

/// The word at the start of `bytes`; `None` if it is longer, not ASCII, or within 16 bytes of the text's end.
#[inline]
pub fn word(bytes: &[u8]) -> Option<Word> {
    let bytes = u128::from_le_bytes(*bytes.first_chunk::<WIDTH>()?);
    // The first byte below `!` or beyond ASCII; the bits above that byte may be wrong.
    let stops = (bytes.wrapping_sub(EACH * 0x21) | bytes) & HIGH;
    let length = stops.trailing_zeros() as usize / 8;
    if length == 0 || length == WIDTH {
        return None;
    }
    let stop = (bytes >> (8 * length)) as u8;
    if !matches!(stop, b' ' | b'\t'..=b'\r') {
        return None;
    }
    let bytes = bytes & (u128::MAX >> (8 * (WIDTH - length)));
    let letters = within(bytes | CASE, b'a', b'z');
    let alphanumeric = letters | within(bytes, b'0', b'9');
    let has_core = alphanumeric != 0;
    let (first, end) = if has_core {
        (
            alphanumeric.trailing_zeros() as usize / 8,
            WIDTH - alphanumeric.leading_zeros() as usize / 8,
        )
    } else {
        (0, length)
    };
    let token_length = end - first;
    Some(Word {
        length,
        has_core,
        lettered: letters != 0,
        token_length: token_length as u64,
        token: (bytes >> (8 * first)) & (u128::MAX >> (8 * (WIDTH - token_length))),
    })
}

/// The high bit of every byte from `first` to `last`; all are ASCII.
#[inline]
fn within(bytes: u128, first: u8, last: u8) -> u128 {
    let from_first = bytes + EACH * u128::from(0x80 - first);
    let behind_last = bytes + EACH * u128::from(0x7f - last);
    from_first & !behind_last & HIGH
}

impl Word {
    /// The hash of its token.
    #[inline]
    pub fn hash(&self) -> u64 {
        mixed(self.token)
    }

    /// The bit of a stop word, as `stop_word` returns it for words of any length.
    #[inline]
    pub fn stop_word(&self) -> u8 {
        if self.token_length > 4 {
            return 0;
        }
        let lower = (self.token as u32 | CASE as u32).to_le_bytes();
        let words = [
            b"the ", b"be  ", b"to  ", b"of  ", b"and ", b"that", b"have", b"with",
        ];
        words
            .iter()
            .enumerate()
            .fold(0, |found, (bit, word)| found | (u8::from(lower == **word) << bit))
    }
}

/// A hash of any token; equal tokens have equal hashes.
#[inline]
pub fn hash(token: &[u8]) -> u64 {
    // Tokens are padded with zeros, so a zero at their end would be lost.
    if token.len() > WIDTH || token.last() == Some(&0) {
        return xxh3_64(token);
    }
    let mut bytes = [0; WIDTH];
    bytes[..token.len()].copy_from_slice(token);
    mixed(u128::from_le_bytes(bytes))
}

/// The keyed product of the number's two halves, folded.
#[inline]
fn mixed(token: u128) -> u64 {
    let product = u128::from(token as u64 ^ LOW_KEY) * u128::from((token >> 64) as u64 ^ HIGH_KEY);
    (product >> 64) as u64 ^ product as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::words::Words;
    use super::*;

    proptest! {
        #[test]
        fn a_word_counts_the_same_wherever_it_stands(word in "[!-~]{1,18}", other in "[!-~é]{1,4}") {
            // Near the end of a text 16 bytes are missing, and a scan for code walks along every word.
            let counted = |text: &str, code| {
                let mut words = Words::default();
                words.scan(text, true, code);
                (words.hashes[0], words.ends[1], words.words_with_letter, words.cores, words.stop_words)
            };
            let last = counted(&word, false);
            prop_assert_eq!(last, counted(&format!("{word}{}", " ".repeat(20)), false));
            prop_assert_eq!(last, counted(&format!("{word}\u{a0}"), false));
            prop_assert_eq!(last, counted(&format!("{word}\n{}", " ".repeat(20)), true));
            prop_assert_eq!(last.0 == counted(&other, false).0, token(&word) == token(&other));
        }
    }

    fn token(word: &str) -> &str {
        let core = word.trim_matches(|it: char| !it.is_alphanumeric());
        if core.is_empty() { word } else { core }
    }

    #[test]
    fn a_zero_at_the_end_is_part_of_a_token() {
        assert_ne!(hash(b"-\0"), hash(b"-"));
        assert_ne!(hash(b"\0"), hash(b""));
    }
}
