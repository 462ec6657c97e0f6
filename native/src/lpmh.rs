//! Levelled-Poisson MinHash: `k` bytes a bag whose rate of agreement is the weighted Jaccard.
//!
//! Each token is a Poisson process of darts on (weight, rank). Its weight axis is cut in geometric
//! levels, [0, b), [b, 2b), [2b, 4b), ...; in a level darts arrive by exponential steps of the rank, and
//! those at or above the token's weight are rejected. A dart falls in one of k buckets, and the value of a
//! bucket is the dart of the least rank. Two bags agree in a bucket exactly when that dart lies under both
//! weights, which has the probability sum min / sum max: exact for any real weights, without a vocabulary.
//! A composition of TreeMinHash (Ertl) and of the bucket assignment of DartMinHash (Christiani 2020).
//!
//! One 64-bit hash an arrival gives its rank (32 bits), its weight (20) and its bucket (12). Ranks are
//! sought below a limit that is raised until no bucket is empty; the result does not depend on it. Nothing
//! but IEEE additions, multiplications and our own logarithm touches a rank, so the bits are the same on
//! every machine. The cost is O(n levels + k ln k) for n distinct tokens.

use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, Int64Builder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, BinaryArray, RecordBatch, make_array};
use arrow_data::ArrayData;
use arrow_pyarrow::PyArrowType;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::bag::{Bag, Kind};
use crate::idf::Weights;
use crate::ln::{exponential, ln};
use crate::strings::Strings;

/// Width of the first level: about the lower quartile of tf-idf weights; eight times off costs a third.
const FIRST: f64 = 2.0;
const LEVELS: usize = 32;
pub const LIGHTEST: f64 = 1.0 / 64.0;
pub const HEAVIEST: f64 = (1u64 << 30) as f64;
pub const MAX_VALUES: usize = 4096;

const A: u64 = 0xa076_1d64_78bd_642f;
const B: u64 = 0xe703_7ed1_a0b4_28db;
const C: u64 = 0x8ebc_6af0_9c88_c6e3;

/// The two halves of a 128-bit product, folded (wyhash).
#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ ((product >> 64) as u64)
}

#[inline]
fn mix(a: u64, b: u64) -> u64 {
    fold(fold(a ^ A, b ^ B), C)
}

/// The lower bound of a level and its width.
#[inline]
fn level(index: usize) -> (f64, f64) {
    match index {
        0 => (0.0, FIRST),
        _ => {
            let lower = FIRST * (1u64 << (index - 1)) as f64;
            (lower, lower)
        }
    }
}

/// Signs bags with `values` buckets; keeps its buffers from one bag to the next.
pub struct Sketcher {
    values: usize,
    seed: u64,
    ranks: Vec<f64>,
    darts: Vec<u64>,
}

impl Sketcher {
    /// `values` is a power of two up to 4096.
    pub fn new(values: usize, seed: u64) -> Result<Self, String> {
        if !values.is_power_of_two() || values > MAX_VALUES {
            return Err(format!(
                "{values} values cannot be signed. Use a power of two up to {MAX_VALUES}."
            ));
        }
        Ok(Self {
            values,
            seed: mix(seed, A),
            ranks: vec![0.0; values],
            darts: vec![0; values],
        })
    }

    /// Appends the signature of a bag to `signature`, nothing for an empty bag.
    ///
    /// Weights lie in [LIGHTEST, HEAVIEST]; tokens are distinct.
    pub fn sign(&mut self, tokens: &[u64], weights: &[f64], signature: &mut Vec<u8>) {
        let total: f64 = weights.iter().sum();
        let k = self.values as f64;
        if !tokens.is_empty() {
            self.sign_below(tokens, weights, k * (ln(k) + 3.0) / total, signature);
        }
    }

    fn sign_below(&mut self, tokens: &[u64], weights: &[f64], limit: f64, signature: &mut Vec<u8>) {
        let mut limit = limit;
        while !self.throw(tokens, weights, limit) {
            limit *= 1.5;
        }
        signature.extend(self.darts.iter().map(|&dart| mix(dart, C) as u8));
    }

    /// Throws the darts of ranks below `limit`; false if a bucket stayed empty.
    fn throw(&mut self, tokens: &[u64], weights: &[f64], limit: f64) -> bool {
        self.ranks.fill(limit);
        self.darts.fill(u64::MAX);
        let mut filled = 0;
        let mut certainly_empty = [0u64; LEVELS];
        for (index, threshold) in certainly_empty.iter_mut().enumerate() {
            // A first hash below this is beyond the limit. The margin keeps the C library's `exp` from deciding.
            let share = (-(level(index).1 * limit)).exp() * (1.0 - 1e-9);
            *threshold = ((share * 4_294_967_296.0) as u64).saturating_sub(1);
        }
        for (&token, &weight) in tokens.iter().zip(weights) {
            let token = token ^ self.seed;
            for (index, threshold) in certainly_empty.iter().enumerate() {
                let (lower, width) = level(index);
                if lower >= weight {
                    break;
                }
                let mut hash = mix(token, index as u64);
                if hash >> 32 < *threshold {
                    continue;
                }
                let accepted = ((weight - lower) / width * f64::from(1 << 20)).min(f64::from(1 << 20)) as u64;
                let per_width = 1.0 / width; // exact: widths are powers of two
                let mut rank = 0.0;
                let mut arrival = 0u64;
                loop {
                    rank += exponential((hash >> 32) as u32) * per_width;
                    if rank >= limit {
                        break;
                    }
                    if (hash >> 12) & 0xf_ffff < accepted {
                        let bucket = ((hash & 0xfff) as usize * self.values) >> 12;
                        let best = self.ranks[bucket];
                        // Equal ranks are rare but real: the dart decides, not the order of the tokens.
                        if rank < best || (rank == best && hash < self.darts[bucket]) {
                            filled += usize::from(best == limit);
                            self.ranks[bucket] = rank;
                            self.darts[bucket] = hash;
                        }
                    }
                    arrival += 1;
                    hash = mix(hash ^ token, arrival.wrapping_mul(C));
                }
            }
        }
        filled == self.values
    }
}

/// (signature, n_tokens, n_distinct) of each text; no signature where there are no tokens.
fn sign_texts(
    texts: &ArrayRef,
    weights: &Weights,
    kind: Kind,
    max_distinct: usize,
    sketcher: &mut Sketcher,
) -> Result<RecordBatch, String> {
    let texts = Strings::new(texts, "texts")?;
    let mut signatures = BinaryBuilder::with_capacity(texts.len(), texts.len() * sketcher.values);
    let mut n_tokens = Int64Builder::with_capacity(texts.len());
    let mut n_distinct = Int64Builder::with_capacity(texts.len());
    let (mut signature, mut bag_weights) = (Vec::new(), Vec::new());
    for row in 0..texts.len() {
        let bag = Bag::of(texts.get(row).unwrap_or_default(), kind, max_distinct);
        weights.of(&bag, &mut bag_weights);
        signature.clear();
        sketcher.sign(&bag.tokens, &bag_weights, &mut signature);
        signatures.append_option((!signature.is_empty()).then_some(&signature));
        n_tokens.append_value(bag.n_tokens as i64);
        n_distinct.append_value(bag.tokens.len() as i64);
    }
    RecordBatch::try_from_iter_with_nullable([
        ("signature", Arc::new(signatures.finish()) as ArrayRef, true),
        ("n_tokens", Arc::new(n_tokens.finish()) as ArrayRef, false),
        ("n_distinct", Arc::new(n_distinct.finish()) as ArrayRef, false),
    ])
    .map_err(|error| error.to_string())
}

/// The signature of each bag; bag i is `tokens[offsets[i]..offsets[i + 1]]`.
fn sign_bags(
    tokens: &[i64],
    weights: &[f64],
    offsets: &[i64],
    sketcher: &mut Sketcher,
) -> Result<BinaryArray, String> {
    if let Some(weight) = weights
        .iter()
        .find(|weight| !(LIGHTEST..=HEAVIEST).contains(*weight))
    {
        return Err(format!(
            "Weight {weight} cannot be signed. Scale all weights of the corpus by one factor into {LIGHTEST} to {HEAVIEST}."
        ));
    }
    let tokens: Vec<u64> = tokens.iter().map(|token| token.cast_unsigned()).collect();
    let mut signatures = BinaryBuilder::new();
    let mut signature = Vec::new();
    for pair in offsets.windows(2) {
        let range =
            usize::try_from(pair[0]).unwrap_or(usize::MAX)..usize::try_from(pair[1]).unwrap_or(usize::MAX);
        let (Some(tokens), Some(weights)) = (tokens.get(range.clone()), weights.get(range)) else {
            return Err(format!(
                "Offsets {} to {} name no range of {} tokens with {} weights.",
                pair[0],
                pair[1],
                tokens.len(),
                weights.len()
            ));
        };
        signature.clear();
        sketcher.sign(tokens, weights, &mut signature);
        signatures.append_option((!signature.is_empty()).then_some(&signature));
    }
    Ok(signatures.finish())
}

#[pyfunction]
#[pyo3(name = "sign_texts")]
fn sign_texts_py(
    py: Python<'_>,
    texts: PyArrowType<ArrayData>,
    idf: &[u8],
    kind: &str,
    values: usize,
    seed: u64,
    max_distinct: usize,
) -> PyResult<PyArrowType<RecordBatch>> {
    let texts = make_array(texts.0);
    py.detach(|| {
        let mut sketcher = Sketcher::new(values, seed)?;
        sign_texts(
            &texts,
            &Weights::new(idf)?,
            Kind::parse(kind)?,
            max_distinct,
            &mut sketcher,
        )
    })
    .map(PyArrowType)
    .map_err(PyValueError::new_err)
}

#[pyfunction]
#[pyo3(name = "sign_bags")]
fn sign_bags_py(
    py: Python<'_>,
    tokens: PyArrowType<ArrayData>,
    weights: PyArrowType<ArrayData>,
    offsets: PyArrowType<ArrayData>,
    values: usize,
    seed: u64,
) -> PyResult<PyArrowType<ArrayData>> {
    let (tokens, weights, offsets) = (make_array(tokens.0), make_array(weights.0), make_array(offsets.0));
    let columns = (
        tokens.as_primitive_opt::<Int64Type>(),
        weights.as_primitive_opt::<Float64Type>(),
        offsets.as_primitive_opt::<Int64Type>(),
    );
    let (Some(tokens), Some(weights), Some(offsets)) = columns else {
        return Err(PyValueError::new_err(
            "Tokens and offsets are int64 arrays, weights float64. Cast them first.",
        ));
    };
    py.detach(|| {
        let mut sketcher = Sketcher::new(values, seed)?;
        sign_bags(tokens.values(), weights.values(), offsets.values(), &mut sketcher)
    })
    .map(|signatures| PyArrowType(signatures.into_data()))
    .map_err(PyValueError::new_err)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(sign_texts_py, module)?)?;
    module.add_function(wrap_pyfunction!(sign_bags_py, module)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jaccard::{estimate, matches, weighted_jaccard};
    use proptest::prelude::*;

    fn sign(bag: &[(u64, f64)], values: usize, seed: u64) -> Vec<u8> {
        let (tokens, weights): (Vec<u64>, Vec<f64>) = bag.iter().copied().unzip();
        let mut signature = Vec::new();
        Sketcher::new(values, seed)
            .unwrap()
            .sign(&tokens, &weights, &mut signature);
        signature
    }

    /// A small generator of its own, so that cases are the same for ever.
    fn uniform(state: &mut u64) -> f64 {
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        (mix(*state, 1) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Two bags with about the share `alike` of their tokens in common, at different weights.
    fn pair(n: usize, alike: f64, scale: f64, state: &mut u64) -> [Vec<(u64, f64)>; 2] {
        let mut bags = [Vec::new(), Vec::new()];
        for _ in 0..n {
            let token = mix(*state, 2);
            let weight = scale * (0.5 + 12.0 * uniform(state) * uniform(state));
            if uniform(state) < alike {
                bags[0].push((token, weight));
                bags[1].push((token, weight * if uniform(state) < 0.3 { 1.4 } else { 1.0 }));
            } else {
                bags[usize::from(uniform(state) < 0.5)].push((token, weight));
            }
        }
        bags
    }

    fn exact(bags: &[Vec<(u64, f64)>; 2]) -> f64 {
        let sorted = bags.each_ref().map(|bag| {
            let mut bag = bag.clone();
            bag.sort_unstable_by_key(|entry| entry.0);
            let (tokens, weights): (Vec<u64>, Vec<f64>) = bag.into_iter().unzip();
            (tokens, weights)
        });
        weighted_jaccard(&sorted[0].0, &sorted[0].1, &sorted[1].0, &sorted[1].1)
    }

    /// Mean and root mean square of (estimate - J) in units of the standard error sqrt(J (1 - J) / k).
    fn errors(values: usize, scale: f64) -> (f64, f64) {
        let mut state = 77;
        let (mut sum, mut squares, mut n) = (0.0, 0.0, 0.0);
        for case in 0..600u32 {
            let alike = 0.05 + 0.9 * f64::from(case % 19) / 19.0;
            let bags = pair(40 + (case as usize * 7) % 400, alike, scale, &mut state);
            let truth = exact(&bags);
            let signatures = bags.each_ref().map(|bag| sign(bag, values, u64::from(case)));
            let agreeing = matches(&signatures[0], &signatures[1]);
            let z = (estimate(agreeing, values) - truth) / (truth * (1.0 - truth) / values as f64).sqrt();
            sum += z;
            squares += z * z;
            n += 1.0;
        }
        (sum / n, (squares / n).sqrt())
    }

    #[test]
    fn the_estimate_is_unbiased_with_the_error_of_theory() {
        for values in [128, 256] {
            let (mean, rms) = errors(values, 1.0);
            assert!(mean.abs() < 0.15, "mean z {mean} at {values} values");
            assert!((0.9..1.1).contains(&rms), "rms z {rms} at {values} values");
        }
    }

    #[test]
    fn the_estimate_holds_at_any_scale_of_the_weights() {
        for scale in [0.1, 30.0, 1000.0] {
            let (mean, rms) = errors(128, scale);
            assert!(
                mean.abs() < 0.15 && (0.9..1.1).contains(&rms),
                "z {mean} {rms} at scale {scale}"
            );
        }
    }

    #[test]
    fn the_limit_does_not_change_the_signature() {
        let mut state = 5;
        for n in [1, 2, 30, 500] {
            let [bag, _] = pair(n, 1.0, 1.0, &mut state);
            let (tokens, weights): (Vec<u64>, Vec<f64>) = bag.into_iter().unzip();
            let mut sketcher = Sketcher::new(128, 3).unwrap();
            let mut expected = Vec::new();
            sketcher.sign(&tokens, &weights, &mut expected);
            let total: f64 = weights.iter().sum();
            for factor in [0.01, 0.7, 1.3, 4.0] {
                let mut signature = Vec::new();
                sketcher.sign_below(&tokens, &weights, factor * 128.0 * 8.0 / total, &mut signature);
                assert_eq!(signature, expected);
            }
        }
    }

    #[test]
    fn an_empty_bag_has_no_signature() {
        assert_eq!(sign(&[], 64, 0), Vec::<u8>::new());
    }

    #[test]
    fn values_are_a_power_of_two() {
        assert!(Sketcher::new(100, 0).is_err());
        assert!(Sketcher::new(0, 0).is_err());
        assert!(Sketcher::new(8192, 0).is_err());
    }

    #[test]
    fn its_bits_never_change() {
        let bag: Vec<(u64, f64)> = (1..=50u32)
            .map(|i| (mix(u64::from(i), 9), f64::from(i) * 0.37))
            .collect();
        assert_eq!(
            sign(&bag, 16, 0),
            [
                135, 202, 118, 206, 181, 85, 38, 58, 109, 123, 151, 125, 241, 158, 190, 179
            ]
        );
    }

    proptest! {
        #[test]
        fn the_order_of_the_tokens_does_not_matter(
            bag in proptest::collection::btree_map(any::<u64>(), 0.5f64..200.0, 1..80),
            rotation in 0usize..80,
        ) {
            let bag: Vec<_> = bag.into_iter().collect();
            let mut turned = bag.clone();
            turned.rotate_left(rotation % bag.len());
            turned.reverse();
            prop_assert_eq!(sign(&bag, 64, 1), sign(&turned, 64, 1));
        }
    }
}
