//! The tokens of an n-gram model: a small byte-level BPE of its own.
//!
//! A text is cut into pieces, and pairs of tokens are merged inside a piece, those of the lowest rank first. Words
//! repeat, so the tokens of pieces are remembered.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rustc_hash::FxHashMap;

/// Tokens fit into 12 bits, so that five of them and their number fit into 64.
pub const BITS: u32 = 12;
pub const N_BYTE_VALUES: usize = 256;
const MOST_MERGES: usize = (1 << BITS) - N_BYTE_VALUES;
const LONGEST: usize = 64; // characters of a piece beside a space before it
const MOST_REMEMBERED: usize = 1 << 16; // pieces

/// The merges of a model: pairs of tokens in the order of their ranks. Merge number n makes token 256 + n.
#[derive(Debug)]
pub struct Merges {
    ranks: FxHashMap<(u16, u16), u16>,
    lengths: Vec<u32>, // bytes of each token
}

impl Merges {
    pub fn from_pairs(pairs: &[(u16, u16)]) -> Result<Self, String> {
        if pairs.len() > MOST_MERGES {
            return Err(format!(
                "There are {} merges. An n-gram model has at most {MOST_MERGES}.",
                pairs.len()
            ));
        }
        let mut ranks = FxHashMap::default();
        let mut lengths = vec![1; N_BYTE_VALUES];
        for (rank, (left, right)) in pairs.iter().enumerate() {
            let known = |token: &u16| lengths.get(usize::from(*token)).copied();
            let (Some(a), Some(b)) = (known(left), known(right)) else {
                return Err(format!(
                    "Merge {rank} joins tokens {left} and {right}, and one is not made before it."
                ));
            };
            lengths.push(a + b);
            if ranks.insert((*left, *right), rank as u16).is_some() {
                return Err(format!(
                    "Merge {rank} joins tokens {left} and {right} a second time."
                ));
            }
        }
        Ok(Self { ranks, lengths })
    }

    /// The number of tokens.
    pub fn vocabulary(&self) -> usize {
        self.lengths.len()
    }

    /// The bytes of a token.
    pub fn length(&self, token: u16) -> usize {
        self.lengths[usize::from(token)] as usize
    }

    fn encode_piece(&self, piece: &[u8]) -> Vec<u16> {
        let mut tokens: Vec<u16> = piece.iter().map(|byte| u16::from(*byte)).collect();
        loop {
            let lowest = tokens
                .windows(2)
                .filter_map(|pair| {
                    self.ranks
                        .get(&(pair[0], pair[1]))
                        .map(|rank| (*rank, pair[0], pair[1]))
                })
                .min();
            let Some((rank, left, right)) = lowest else {
                return tokens;
            };
            let (mut at, mut end) = (0, 0);
            while at < tokens.len() {
                let merged = at + 1 < tokens.len() && tokens[at] == left && tokens[at + 1] == right;
                tokens[end] = if merged {
                    N_BYTE_VALUES as u16 + rank
                } else {
                    tokens[at]
                };
                at += if merged { 2 } else { 1 };
                end += 1;
            }
            tokens.truncate(end);
        }
    }
}

/// Encodes one text after the other, and remembers pieces.
pub struct Encoder<'a> {
    merges: &'a Merges,
    remembered: FxHashMap<Box<[u8]>, Box<[u16]>>,
}

impl<'a> Encoder<'a> {
    pub fn new(merges: &'a Merges) -> Self {
        Self {
            merges,
            remembered: FxHashMap::default(),
        }
    }

    /// Replaces `tokens` by those of `text`.
    pub fn encode(&mut self, text: &str, tokens: &mut Vec<u16>) {
        tokens.clear();
        for piece in pieces(text.as_bytes()) {
            if let Some(known) = self.remembered.get(piece) {
                tokens.extend_from_slice(known);
                continue;
            }
            let encoded = self.merges.encode_piece(piece);
            tokens.extend_from_slice(&encoded);
            if self.remembered.len() == MOST_REMEMBERED {
                self.remembered.clear();
            }
            self.remembered.insert(piece.into(), encoded.into());
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Word, // a letter or digit of ASCII, or a byte of any longer character
    Space,
    Sign,
}

fn kind(byte: u8) -> Kind {
    match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | 128.. => Kind::Word,
        b' ' | b'\t' | b'\n' | b'\r' | 11 | 12 => Kind::Space,
        _ => Kind::Sign,
    }
}

/// The pieces of a text: a run of one kind, with a single space before it if that is no longer run of spaces.
fn pieces(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut begin = 0;
    std::iter::from_fn(move || {
        let first = *bytes.get(begin)?;
        let next = bytes.get(begin + 1).map(|byte| kind(*byte));
        let led = first == b' ' && next.is_some_and(|next| next != Kind::Space);
        let start = begin + usize::from(led);
        let of_piece = kind(bytes[start]);
        let mut end = start;
        let mut characters = 0;
        while end < bytes.len() && kind(bytes[end]) == of_piece {
            let begins_a_character = bytes[end] & 0xc0 != 0x80;
            if begins_a_character && characters == LONGEST {
                break;
            }
            characters += usize::from(begins_a_character);
            end += 1;
        }
        let piece = &bytes[begin..end];
        begin = end;
        Some(piece)
    })
}

#[pyfunction]
fn ngram_tokens(py: Python<'_>, text: &str, merges: Vec<(u16, u16)>) -> PyResult<Vec<u16>> {
    py.detach(|| {
        let merges = Merges::from_pairs(&merges)?;
        let mut tokens = Vec::new();
        Encoder::new(&merges).encode(text, &mut tokens);
        Ok(tokens)
    })
    .map_err(|error: String| PyValueError::new_err(error))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(ngram_tokens, module)?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cut(text: &str) -> Vec<&str> {
        pieces(text.as_bytes())
            .map(|piece| std::str::from_utf8(piece).unwrap())
            .collect()
    }

    #[test]
    fn a_piece_is_a_run_of_one_kind_with_a_space_before_it() {
        assert_eq!(
            cut("It's  so, été\n\n x"),
            ["It", "'", "s", "  ", "so", ",", " été", "\n\n ", "x"]
        );
    }

    #[test]
    fn pairs_of_low_rank_are_merged_first() {
        let [a, b, c] = [b'a', b'b', b'c'].map(u16::from);
        let merges = Merges::from_pairs(&[(b, c), (a, b), (a, 256)]).unwrap();
        let mut tokens = Vec::new();
        Encoder::new(&merges).encode("abcab aab", &mut tokens);
        assert_eq!(tokens, [258, 257, u16::from(b' '), a, 257]);
        assert_eq!(merges.length(258), 3);
    }

    #[test]
    fn impossible_merges_are_refused() {
        assert!(Merges::from_pairs(&[(256, 1)]).is_err());
        assert!(Merges::from_pairs(&[(1, 2), (1, 2)]).is_err());
    }

    proptest! {
        #[test]
        fn pieces_make_up_the_text(text in "(\\PC|[a \n,é]){0,80}") {
            prop_assert_eq!(cut(&text).concat(), text);
        }
    }
}
