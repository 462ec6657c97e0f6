//! A weighted bag's signature: `values` values of `value_bits` bits, by one of two schemes.
//!
//! `lpmh` takes any weights; `cell_oph` is faster for damped weights. The rate of agreement of two signatures of one
//! scheme estimates the weighted Jaccard of the bags. `agreement.rs` has the layout of signatures and their
//! comparison.

use super::agreement::{checked_value_bits, pack};
use super::{cell_oph, lpmh};
use crate::dedup::hash::scrambled;

/// Lightest weight of a token.
pub const LIGHTEST: f64 = 1.0 / 64.0;
const LEAST_VALUES: usize = 16;
const MOST_VALUES: usize = 4096;

enum Sketcher {
    Lpmh(lpmh::Sketcher),
    CellOph(cell_oph::Sketcher),
}

/// Signs bags; reuses its buffers.
pub struct Signer {
    sketcher: Sketcher,
    value_bits: usize,
    /// Heaviest weight of a token.
    pub heaviest: f64,
}

impl Signer {
    /// `scheme` is `lpmh` or `cell_oph`; `values` is a power of two from 16 to 4096.
    pub fn new(scheme: &str, values: usize, value_bits: usize, seed: u64) -> Result<Self, String> {
        if !values.is_power_of_two() || !(LEAST_VALUES..=MOST_VALUES).contains(&values) {
            return Err(format!(
                "A signature has {values} values. Use a power of two from {LEAST_VALUES} to {MOST_VALUES}."
            ));
        }
        let (sketcher, heaviest) = match scheme {
            "lpmh" => (Sketcher::Lpmh(lpmh::Sketcher::new(values, seed)), lpmh::HEAVIEST),
            "cell_oph" => (
                Sketcher::CellOph(cell_oph::Sketcher::new(values, seed)),
                cell_oph::HEAVIEST,
            ),
            other => {
                return Err(format!(
                    "Unknown signature scheme `{other}`. Use `lpmh` or `cell_oph`."
                ));
            }
        };
        Ok(Self {
            sketcher,
            value_bits: checked_value_bits(value_bits)?,
            heaviest,
        })
    }

    /// Appends the signature of a bag, nothing for an empty bag. Tokens are distinct, weights within bounds.
    pub fn sign(&mut self, tokens: &[u64], weights: &[f64], signature: &mut Vec<u8>) {
        let sketch = match &mut self.sketcher {
            Sketcher::Lpmh(sketcher) => sketcher.sketch(tokens, weights),
            Sketcher::CellOph(sketcher) => sketcher.sketch(tokens, weights),
        };
        let values = sketch.unwrap_or_default().iter().map(|&value| scrambled(value));
        pack(values, self.value_bits, signature);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dedup::bags::jaccard::weighted_jaccard;
    use crate::dedup::hash::mix;
    use crate::dedup::sign::agreement::{VALUE_BITS, estimate, matches};
    use proptest::prelude::*;

    const SCHEMES: [&str; 2] = ["lpmh", "cell_oph"];

    fn sign(scheme: &str, bag: &[(u64, f64)], values: usize, value_bits: usize, seed: u64) -> Vec<u8> {
        let (tokens, weights): (Vec<u64>, Vec<f64>) = bag.iter().copied().unzip();
        let mut signature = Vec::new();
        Signer::new(scheme, values, value_bits, seed)
            .unwrap()
            .sign(&tokens, &weights, &mut signature);
        signature
    }

    /// A generator of our own, so that cases never change.
    fn uniform(state: &mut u64) -> f64 {
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        (mix(*state, 1) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Two bags with about the share `common` of their tokens in common, some with different weights.
    fn pair(n: usize, common: f64, scale: f64, state: &mut u64) -> [Vec<(u64, f64)>; 2] {
        let mut bags = [Vec::new(), Vec::new()];
        for _ in 0..n {
            let token = mix(*state, 2);
            let weight = scale * (0.5 + 12.0 * uniform(state) * uniform(state));
            if uniform(state) < common {
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

    /// Mean and root mean square of (estimate - J) in standard errors of `values` values of `value_bits` bits.
    fn errors(scheme: &str, values: usize, value_bits: usize, sizes: [usize; 2], scale: f64) -> (f64, f64) {
        let mut state = 77;
        let (mut sum, mut squares) = (0.0, 0.0);
        let cases = 3000u32;
        for case in 0..cases {
            let common = 0.05 + 0.9 * f64::from(case % 19) / 19.0;
            let n = sizes[0] + (case as usize * 7) % (sizes[1] - sizes[0]);
            let bags = pair(n, common, scale, &mut state);
            let truth = exact(&bags);
            let [left, right] = bags
                .each_ref()
                .map(|bag| sign(scheme, bag, values, value_bits, u64::from(case)));
            let estimate = estimate(matches(&left, &right, value_bits), values, value_bits);
            let chance = 1.0 / (1u64 << value_bits) as f64;
            let agree = truth + (1.0 - truth) * chance;
            let error = (agree * (1.0 - agree) / values as f64).sqrt() / (1.0 - chance);
            let z = (estimate - truth) / error;
            sum += z;
            squares += z * z;
        }
        let n = f64::from(cases);
        (sum / n, (squares / n).sqrt())
    }

    // 3,000 cases determine the mean to .018 and the root mean square to .013. cell_oph samples without
    // replacement, so its error is below theory.
    const MEAN: f64 = 0.055;
    const RMS: f64 = 1.05;

    fn assert_unbiased(scheme: &str, values: usize, value_bits: usize, sizes: [usize; 2], scale: f64) {
        let (mean, rms) = errors(scheme, values, value_bits, sizes, scale);
        let case = format!("{scheme}, {values} values of {value_bits} bits, {sizes:?} tokens, scale {scale}");
        assert!(mean.abs() < MEAN, "{case}: mean z {mean}");
        let least = if scheme == "lpmh" { 2.0 - RMS } else { 0.7 };
        assert!((least..RMS).contains(&rms), "{case}: rms z {rms}");
    }

    #[test]
    fn the_estimate_is_unbiased_with_the_error_of_theory() {
        for scheme in SCHEMES {
            for values in [128, 256] {
                assert_unbiased(scheme, values, 8, [40, 440], 1.0);
            }
        }
    }

    #[test]
    fn a_bag_smaller_than_its_signature_is_estimated_no_worse() {
        for scheme in SCHEMES {
            assert_unbiased(scheme, 256, 8, [10, 40], 1.0);
        }
    }

    #[test]
    fn fewer_bits_a_value_have_the_error_of_theory() {
        for (scheme, value_bits) in [("lpmh", 1), ("lpmh", 16), ("cell_oph", 2)] {
            assert_unbiased(scheme, 128, value_bits, [40, 440], 1.0);
        }
    }

    #[test]
    fn the_estimate_holds_at_any_scale_of_the_weights() {
        for (scheme, scale) in [
            ("lpmh", 0.1),
            ("lpmh", 1000.0),
            ("cell_oph", 0.1),
            ("cell_oph", 10.0),
        ] {
            assert_unbiased(scheme, 128, 8, [40, 440], scale);
        }
    }

    #[test]
    fn its_bits_never_change() {
        let bag: Vec<(u64, f64)> = (1..=50u32)
            .map(|i| (mix(u64::from(i), 9), f64::from(i) * 0.37))
            .collect();
        assert_eq!(
            sign("lpmh", &bag, 16, 8, 0),
            [
                135, 202, 118, 206, 181, 85, 38, 58, 109, 123, 151, 125, 241, 158, 190, 179
            ]
        );
        assert_eq!(
            sign("cell_oph", &bag, 16, 8, 0),
            [
                188, 130, 159, 2, 191, 11, 118, 236, 162, 192, 161, 47, 123, 213, 84, 228
            ]
        );
    }

    proptest! {
        #[test]
        fn the_order_of_the_tokens_does_not_matter(
            bag in proptest::collection::btree_map(any::<u64>(), 0.05f64..200.0, 1..80),
            rotation in 0usize..80,
            scheme in 0usize..2,
            width in 0usize..5,
        ) {
            let bag: Vec<_> = bag.into_iter().collect();
            let mut turned = bag.clone();
            turned.rotate_left(rotation % bag.len());
            turned.reverse();
            let [one, other] = [&bag, &turned].map(|bag| sign(SCHEMES[scheme], bag, 64, VALUE_BITS[width], 1));
            prop_assert_eq!(one.len(), 8 * VALUE_BITS[width]);
            prop_assert_eq!(one, other);
        }

        #[test]
        fn earlier_bags_do_not_change_a_signature(
            bags in proptest::collection::vec(
                proptest::collection::btree_map(any::<u64>(), 0.05f64..200.0, 0..40), 1..5),
            scheme in 0usize..2,
        ) {
            let mut signer = Signer::new(SCHEMES[scheme], 32, 8, 4).unwrap();
            for bag in bags {
                let (tokens, weights): (Vec<u64>, Vec<f64>) = bag.iter().map(|(&t, &w)| (t, w)).unzip();
                let mut signature = Vec::new();
                signer.sign(&tokens, &weights, &mut signature);
                let bag: Vec<(u64, f64)> = bag.into_iter().collect();
                prop_assert_eq!(signature, sign(SCHEMES[scheme], &bag, 32, 8, 4));
            }
        }
    }
}
