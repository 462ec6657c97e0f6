//! Exact similarity of two documents, from their weighted bags.

/// sum min(x, y) / sum max(x, y) of two bags sorted by token, 0.0 for two empty ones.
///
/// The sums run in the order of tokens, so swapping the bags changes no bit.
pub fn weighted_jaccard(tokens: &[u64], weights: &[f64], other_tokens: &[u64], other_weights: &[f64]) -> f64 {
    let (mut least, mut most) = (0.0, 0.0);
    let (mut i, mut j) = (0, 0);
    while i < tokens.len() && j < other_tokens.len() {
        let (token, other) = (tokens[i], other_tokens[j]);
        let (weight, other_weight) = (weights[i], other_weights[j]);
        if token == other {
            least += weight.min(other_weight);
            most += weight.max(other_weight);
        } else {
            most += if token < other { weight } else { other_weight };
        }
        i += usize::from(token <= other);
        j += usize::from(other <= token);
    }
    for weight in weights[i..].iter().chain(&other_weights[j..]) {
        most += weight;
    }
    if most > 0.0 { least / most } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use proptest::prelude::*;

    fn columns(bag: &BTreeMap<u64, f64>) -> (Vec<u64>, Vec<f64>) {
        bag.iter().map(|(&token, &weight)| (token, weight)).unzip()
    }

    proptest! {
        #[test]
        fn it_is_the_sum_of_minima_over_the_sum_of_maxima(
            x in proptest::collection::btree_map(0u64..40, 0.1f64..9.0, 0..30),
            y in proptest::collection::btree_map(0u64..40, 0.1f64..9.0, 0..30),
        ) {
            let weight = |bag: &BTreeMap<u64, f64>, token| bag.get(&token).copied().unwrap_or(0.0);
            let least: f64 = (0..40).map(|t| weight(&x, t).min(weight(&y, t))).sum();
            let most: f64 = (0..40).map(|t| weight(&x, t).max(weight(&y, t))).sum();
            let (a, b) = (columns(&x), columns(&y));
            let there = weighted_jaccard(&a.0, &a.1, &b.0, &b.1);
            let back = weighted_jaccard(&b.0, &b.1, &a.0, &a.1);
            let expected = if most > 0.0 { least / most } else { 0.0 };
            prop_assert!((there - expected).abs() < 1e-12);
            prop_assert_eq!(there.to_bits(), back.to_bits());
            if !x.is_empty() {
                prop_assert_eq!(weighted_jaccard(&a.0, &a.1, &a.0, &a.1), 1.0);
            }
        }
    }
}
