//! Characters in the most frequent n-grams and in repeated n-grams, for n = 2 .. 10, from token hashes.
//!
//! The hash of the n-gram at a token is that of the (n-1)-gram there, times an odd constant, plus the next
//! token's hash. An n-gram can only be repeated where its (n-1)-gram is, so each n visits the remaining
//! positions, usually few after n = 4. Two different n-grams of one text share a hash with a
//! probability of about 2^-63.

use super::table::Table;
use super::words::Words;

pub const LONGEST: usize = 10;
const BASE: u64 = 0x9e37_79b9_7f4a_7c15;

/// Characters by n; `None` where the text has fewer than n tokens. Entries below 2 are unused.
#[derive(Default)]
pub struct Ngrams {
    /// For the most frequent n-gram (the first one among equals), with its tokens joined by one space: length
    /// times occurrences. 0 where no n-gram occurs twice.
    pub top: [Option<u64>; LONGEST + 1],
    /// For the n-grams that repeat an earlier one, from left to right without overlaps: characters but spaces.
    pub repeated: [Option<u64>; LONGEST + 1],
    positions: Vec<Position>,
    once: Vec<u64>,
    again: Vec<u64>,
}

#[derive(Clone, Copy)]
struct Position {
    hash: u64,
    token: u32,
    slot: u32,
}

impl Ngrams {
    pub fn scan(&mut self, words: &Words, table: &mut Table) {
        self.top = Default::default();
        self.repeated = Default::default();
        for n in 2..=LONGEST.min(words.hashes.len()) {
            if n == 2 {
                self.begin(words);
            } else {
                self.lengthen(words, n);
            }
            self.repeated[n] = Some(self.count(words, n, table));
            self.top[n] = Some(self.keep_repeated(words, n, table));
        }
    }

    /// Makes 2-grams of the tokens and leaves out most that occur once: one bit per hash finds them, and the
    /// table counts the others.
    fn begin(&mut self, words: &Words) {
        let bits = (8 * words.hashes.len()).next_power_of_two().max(64);
        let place = |hash: u64| ((hash >> 6) as usize & (bits / 64 - 1), 1 << (hash & 63));
        let hashes = || {
            words
                .hashes
                .windows(2)
                .map(|pair| pair[0].wrapping_mul(BASE).wrapping_add(pair[1]))
        };
        for seen in [&mut self.once, &mut self.again] {
            seen.clear();
            seen.resize(bits / 64, 0u64);
        }
        for hash in hashes() {
            let (word, bit) = place(hash);
            self.again[word] |= self.once[word] & bit;
            self.once[word] |= bit;
        }
        self.positions.clear();
        for (token, hash) in hashes().enumerate() {
            let (word, bit) = place(hash);
            if self.again[word] & bit != 0 {
                self.positions.push(Position {
                    hash,
                    token: token as u32,
                    slot: 0,
                });
            }
        }
    }

    /// Makes n-grams of the (n-1)-grams, except of the last one, which has no next token.
    fn lengthen(&mut self, words: &Words, n: usize) {
        let last = words.hashes.len() - n;
        while self
            .positions
            .last()
            .is_some_and(|position| position.token as usize > last)
        {
            self.positions.pop();
        }
        for position in &mut self.positions {
            let added = words.hashes[position.token as usize + n - 1];
            position.hash = position.hash.wrapping_mul(BASE).wrapping_add(added);
        }
    }

    /// Counts the n-grams; returns the characters in repeated ones.
    fn count(&mut self, words: &Words, n: usize, table: &mut Table) -> u64 {
        table.reset(self.positions.len());
        let (mut characters, mut next) = (0, 0);
        for position in &mut self.positions {
            position.slot = table.add(position.hash) as u32;
            if position.token >= next {
                let slot = table.slot(position.slot as usize);
                if slot.seen {
                    characters += length(words, position.token, n);
                    next = position.token + n as u32;
                }
                slot.seen = true;
            }
        }
        characters
    }

    /// Drops n-grams that occur once; returns the characters in the most frequent one.
    fn keep_repeated(&mut self, words: &Words, n: usize, table: &mut Table) -> u64 {
        let (mut most, mut characters) = (1, 0);
        self.positions.retain(|position| {
            let count = table.slot(position.slot as usize).count;
            if count > most {
                most = count;
                characters = u64::from(count) * (length(words, position.token, n) + n as u64 - 1);
            }
            count > 1
        });
        characters
    }
}

fn length(words: &Words, first: u32, n: usize) -> u64 {
    let first = first as usize;
    words.ends[first + n] - words.ends[first]
}
