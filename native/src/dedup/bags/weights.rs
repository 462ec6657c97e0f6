//! Token weights: (1 + ln tf) * ln(1 + N / df), for N documents of which df hold the token.

use arrow_array::cast::AsArray;
use arrow_array::types::UInt8Type;
use arrow_array::{Array, UInt8Array, make_array};
use arrow_data::ArrayData;

use super::bag::Bag;
use super::idf::{Entry, Line, MAGIC, place};
use crate::dedup::ln::ln;

const DAMAGED: &str = "The idf table is damaged or from another version. Build it again with `IdfBuilder`.";

/// Document frequencies and counts with precomputed logarithms.
const KEPT_FREQUENCIES: u32 = 4096;
const KEPT_COUNTS: u32 = 256;
/// Tokens whose lines are fetched together.
const TOGETHER: usize = 64;

/// Turns counts into weights with one table.
pub struct Weights<'a> {
    n_documents: f64,
    hot: &'a [Entry],
    /// Number of lines that tokens hash to; the lines after them hold the overflow of the last ones.
    n_lines: usize,
    lines: &'a [Line],
    /// The idf of each document frequency; index zero has the idf of one.
    idf: Vec<f64>,
    /// 1 + ln tf of each count.
    damped: Vec<f64>,
}

impl<'a> Weights<'a> {
    pub fn new(table: &'a [u8]) -> Result<Self, String> {
        Self::parsed(table).ok_or_else(|| DAMAGED.to_owned())
    }

    fn parsed(table: &'a [u8]) -> Option<Self> {
        let (entries, []) = table.as_chunks::<8>() else {
            return None;
        };
        let (lines, []) = entries.as_chunks::<8>() else {
            return None;
        };
        let (header, rest) = lines.split_first()?;
        let [magic, sizes @ ..] = header;
        let [n_documents, n_hot, n_lines] = [0, 1, 2].map(|at| u64::from_le_bytes(sizes[at]));
        let (n_hot, n_lines) = (usize::try_from(n_hot).ok()?, usize::try_from(n_lines).ok()?);
        let (hot, lines) = rest.split_at_checked(n_hot / 8)?;
        let whole = *magic == MAGIC
            && !hot.is_empty()
            && (1..lines.len()).contains(&n_lines)
            && *lines.last()? == Line::default();
        let n_documents = n_documents as f64;
        whole.then(|| Self {
            n_documents,
            hot: hot.as_flattened(),
            n_lines,
            lines,
            idf: (0..KEPT_FREQUENCIES)
                .map(|df| idf(n_documents, df.max(1)))
                .collect(),
            damped: (0..KEPT_COUNTS).map(damped).collect(),
        })
    }

    /// Fills `weights` with the weight of each token of `bag`.
    pub fn of(&self, bag: &Bag, weights: &mut Vec<f64>) -> Result<(), String> {
        weights.clear();
        let mut frequencies = [0; TOGETHER];
        for (tokens, counts) in bag.tokens.chunks(TOGETHER).zip(bag.counts.chunks(TOGETHER)) {
            self.look_up(tokens, &mut frequencies).ok_or(DAMAGED)?;
            weights.extend(counts.iter().zip(frequencies).map(|(&count, frequency)| {
                let tf = self.damped.get(count as usize).copied();
                let idf = self.idf.get(frequency as usize).copied();
                tf.unwrap_or_else(|| damped(count))
                    * idf.unwrap_or_else(|| self::idf(self.n_documents, frequency))
            }));
        }
        Ok(())
    }

    /// The document frequencies of `tokens`; `None` for a damaged table.
    ///
    /// No branch depends on whether a token is hot, because no processor predicts that.
    #[inline]
    fn look_up(&self, tokens: &[u64], frequencies: &mut [u32; TOGETHER]) -> Option<()> {
        let (mut others, mut n_others) = ([0; TOGETHER], 0);
        for (at, &token) in tokens.iter().enumerate() {
            frequencies[at] = frequency_of(self.hot[place(token, self.hot.len())], token);
            others[n_others] = at;
            n_others += usize::from(frequencies[at] == 0);
        }
        let others = &others[..n_others];
        self.fetch(others.iter().map(|&at| tokens[at]));
        for &at in others {
            frequencies[at] = self.document_frequency(tokens[at])?;
        }
        Some(())
    }

    /// Reads the lines of tokens ahead of their search. A large table fits no near cache: these reads
    /// overlap, while a search waits for each line before the next one begins.
    #[inline]
    fn fetch(&self, tokens: impl Iterator<Item = u64>) {
        let bytes = tokens.map(|token| self.lines[place(token, self.n_lines)][7][0]);
        std::hint::black_box(bytes.fold(0, |seen, byte| seen ^ byte));
    }

    /// The document frequency of a token, one if the table lacks it; `None` for a damaged table.
    #[inline]
    fn document_frequency(&self, token: u64) -> Option<u32> {
        for line in &self.lines[place(token, self.n_lines)..] {
            let found = line
                .iter()
                .fold(0, |found, &entry| found.max(frequency_of(entry, token)));
            if found > 0 {
                return Some(found);
            }
            if line[7] == Entry::default() {
                return Some(1);
            }
        }
        None
    }
}

fn idf(n_documents: f64, document_frequency: u32) -> f64 {
    ln(1.0 + n_documents / f64::from(document_frequency))
}

fn damped(count: u32) -> f64 {
    if count > 1 {
        1.0 + ln(f64::from(count))
    } else {
        1.0
    }
}

/// The document frequency of an entry if it may be the entry of `token`, else 0.
#[inline]
fn frequency_of(entry: Entry, token: u64) -> u32 {
    let entry = u64::from_le_bytes(entry);
    if (entry >> 32) as u32 == token as u32 {
        entry as u32
    } else {
        0
    }
}

/// The bytes of a table from Python.
pub fn table_bytes(table: ArrayData) -> Result<UInt8Array, String> {
    make_array(table)
        .as_primitive_opt::<UInt8Type>()
        .filter(|bytes| bytes.null_count() == 0)
        .cloned()
        .ok_or_else(|| DAMAGED.to_owned())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::dedup::bags::idf::{MOST_HOT, table};
    use crate::dedup::hash::mix;
    use proptest::prelude::*;

    fn table_of(frequencies: &BTreeMap<u64, u32>, n_documents: u64) -> Vec<u8> {
        let mut tokens: Vec<_> = frequencies
            .iter()
            .map(|(&token, &df)| (token, df))
            .rev()
            .collect();
        table(&mut tokens, n_documents)
            .unwrap()
            .as_flattened()
            .as_flattened()
            .to_vec()
    }

    #[test]
    fn a_weight_is_damped_count_times_idf() {
        let table = table_of(&[(3, 10), (u64::MAX, 5000)].into(), 6000);
        let bag = Bag {
            tokens: vec![3, 4, u64::MAX],
            counts: vec![1, 2, 1000],
            n_tokens: 1003,
        };
        let mut weights = Vec::new();
        Weights::new(&table).unwrap().of(&bag, &mut weights).unwrap();
        let expected = [
            601f64.ln(),
            (1.0 + 2f64.ln()) * 6001f64.ln(),
            (1.0 + 1000f64.ln()) * 2.2f64.ln(),
        ];
        for (weight, expected) in weights.iter().zip(expected) {
            assert!((weight - expected).abs() < 1e-12);
        }
    }

    fn found(weights: &Weights, tokens: &[u64]) -> Option<Vec<u32>> {
        let (mut all, mut frequencies) = (Vec::new(), [0; TOGETHER]);
        for tokens in tokens.chunks(TOGETHER) {
            weights.look_up(tokens, &mut frequencies)?;
            all.extend(&frequencies[..tokens.len()]);
        }
        Some(all)
    }

    #[test]
    fn every_token_of_many_is_found() {
        let tokens: BTreeMap<u64, u32> = (0..200_000)
            .map(|i| (mix(i, 5), 2 + (i % 70_000) as u32))
            .collect();
        let table = table_of(&tokens, 70_001);
        assert!(table.len() <= 11 * tokens.len() + 8 * MOST_HOT + 512);
        let weights = Weights::new(&table).unwrap();
        let there: Vec<u64> = tokens.keys().copied().collect();
        assert_eq!(found(&weights, &there), Some(tokens.values().copied().collect()));
        let others: Vec<u64> = there.iter().map(|&token| mix(token, 6)).collect();
        assert_eq!(found(&weights, &others), Some(vec![1; others.len()]));
    }

    proptest! {
        #[test]
        fn only_tokens_of_the_table_are_found(
            tokens in proptest::collection::btree_map(0u64..400, 2u32..u32::MAX, 0..200), shift in 9u32..55,
        ) {
            let spread = |token: u64| token << shift | token;
            let table = table_of(&tokens.iter().map(|(&token, &df)| (spread(token), df)).collect(), u64::MAX);
            let expected = (0..400).map(|token| tokens.get(&token).copied().unwrap_or(1)).collect();
            let all: Vec<u64> = (0..400).map(spread).collect();
            prop_assert_eq!(found(&Weights::new(&table).unwrap(), &all), Some(expected));
        }

        #[test]
        fn a_damaged_table_is_an_error_or_gives_other_weights(at: usize, byte: u8, cut: usize) {
            let mut table = table_of(&(0..90).map(|i| (mix(i, 1), 3)).collect(), 9);
            prop_assert!(Weights::new(&table[..cut % table.len()]).is_err());
            let at = at % table.len();
            table[at] = byte;
            if let Ok(weights) = Weights::new(&table) {
                let tokens: Vec<u64> = (0..200).map(|token| mix(token, 1)).collect();
                let found = found(&weights, &tokens);
                prop_assert!(found.is_none_or(|it| it.len() == tokens.len() && !it.contains(&0)));
            }
        }
    }
}
