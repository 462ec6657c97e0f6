//! Texts as bags of tokens: (64-bit token hash, count), sorted by hash.
//!
//! A bag keeps at most `max_distinct` distinct tokens: those of the smallest hashes, the same ones in every text,
//! so that similar texts stay similar. Making the bag of a vast text takes eight bytes per token, so at most
//! four bytes per byte of text.
//!
//! `packed_bag.rs` has the byte layout of stored bags.

use super::folding::FoldedText;
use super::lexer::Lexer;
use super::tally::Tally;

/// Longest text, in bytes, whose tokens are counted in a table (up to 64 bytes a token); others are sorted.
const MOST_TALLIED: usize = 1 << 20;

/// The distinct tokens of a text in ascending order, and the number of occurrences of each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bag {
    pub tokens: Vec<u64>,
    pub counts: Vec<u32>,
    /// Tokens of the text, including repetitions.
    pub n_tokens: usize,
}

impl Bag {
    /// The bag of a text; calls `notice` with the hash and the words of each token at least once.
    pub fn of_text<'a>(
        text: &'a FoldedText<'_>,
        lexer: Lexer,
        max_distinct: usize,
        mut notice: impl FnMut(u64, &[&'a [u8]]),
    ) -> Self {
        if text.as_str().len() <= MOST_TALLIED {
            return Self::tallied(text, lexer, max_distinct, notice);
        }
        let mut hashes = Vec::with_capacity(text.as_str().len() / 6);
        lexer.each_token(text, |hash, words| {
            notice(hash, words);
            hashes.push(hash);
        });
        Self::from_hashes(&mut hashes, max_distinct)
    }

    fn tallied<'a>(
        text: &'a FoldedText<'_>,
        lexer: Lexer,
        max_distinct: usize,
        mut notice: impl FnMut(u64, &[&'a [u8]]),
    ) -> Self {
        let (mut tally, mut n_tokens) = (Tally::new(text.as_str().len()), 0);
        lexer.each_token(text, |token, words| {
            n_tokens += 1;
            tally.count(token, || notice(token, words));
        });
        let mut counted = tally.ascending();
        counted.truncate(max_distinct);
        Self {
            tokens: counted.iter().map(|it| it.token).collect(),
            counts: counted.iter().map(|it| it.count).collect(),
            n_tokens,
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use xxhash_rust::xxh3::xxh3_64;

    fn bag_of(text: &str, lexer: &str, max_distinct: usize) -> Bag {
        let lexer = Lexer::parse(lexer).unwrap();
        Bag::of_text(&lexer.fold(text), lexer, max_distinct, |_, _| ())
    }

    #[test]
    fn a_bag_counts_its_tokens_in_order_of_their_hash() {
        let bag = bag_of("b a b", "code", usize::MAX);
        let mut expected = [(xxh3_64(b"a"), 1), (xxh3_64(b"b"), 2)];
        expected.sort_unstable();
        assert_eq!(bag.tokens, expected.map(|pair| pair.0));
        assert_eq!(bag.counts, expected.map(|pair| pair.1));
        assert_eq!(bag.n_tokens, 3);
    }

    #[test]
    fn a_flood_keeps_the_same_tokens_in_similar_texts() {
        let flood: String = (0..1000).map(|i| format!("token{i} ")).collect();
        let full = bag_of(&flood, "code", usize::MAX);
        let bounded = bag_of(&format!("{flood} more"), "code", 100);
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
    fn a_flood_of_a_million_tokens_is_bounded() {
        let flood: String = (0..1_200_000).map(|i| format!("{i:x} ")).collect();
        let bag = bag_of(&flood, "code", 1 << 20);
        assert_eq!((bag.tokens.len(), bag.n_tokens), (1 << 20, 1_200_000));
        assert!(bag.tokens.is_sorted());
    }

    proptest! {
        #[test]
        fn any_text_is_lexed_and_its_counts_add_up(text in "\\PC*|[a-z0-9.eE+ \\\\_-]*") {
            for lexer in ["prose", "code", "code-4grams", "cl100k_base"] {
                let bag = bag_of(&text, lexer, usize::MAX);
                prop_assert_eq!(bag.counts.iter().map(|&c| c as usize).sum::<usize>(), bag.n_tokens);
                prop_assert!(bag.tokens.windows(2).all(|pair| pair[0] < pair[1]));
                let mut hashes = Vec::new();
                let lexer = Lexer::parse(lexer).unwrap();
                lexer.each_token(&lexer.fold(&text), |hash, _| hashes.push(hash));
                prop_assert_eq!(&Bag::from_hashes(&mut hashes, usize::MAX), &bag);
            }
        }
    }
}
