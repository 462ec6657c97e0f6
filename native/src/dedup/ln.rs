//! Natural logarithms with the same bits on every machine.
//!
//! The logarithms of C libraries differ in the last place between machines, and a weight that differs in the last
//! place changes a signature. This one combines a table of 512 centres, filled by the compiler, with a quartic in
//! plain IEEE multiplications and additions, which Rust never contracts to fused ones.

use std::f64::consts::LN_2;

const CENTRES: usize = 512;

/// (1 / c, ln c) for the centres c = 1 + (i + 1/2) / 512 of the mantissas [1, 2).
static TABLE: [(f64, f64); CENTRES] = centres();

const fn centres() -> [(f64, f64); CENTRES] {
    let mut table = [(0.0, 0.0); CENTRES];
    let mut i = 0;
    while i < CENTRES {
        let centre = 1.0 + (i as f64 + 0.5) / CENTRES as f64;
        table[i] = (1.0 / centre, ln_by_series(centre));
        i += 1;
    }
    table
}

/// ln c = 2 atanh((c - 1) / (c + 1)), for c in [1, 2].
const fn ln_by_series(c: f64) -> f64 {
    let s = (c - 1.0) / (c + 1.0);
    let square = s * s;
    let mut sum = 0.0;
    let mut n = 20;
    loop {
        sum = sum * square + 1.0 / (2 * n + 1) as f64;
        if n == 0 {
            return 2.0 * s * sum;
        }
        n -= 1;
    }
}

/// The natural logarithm of a positive, normal number.
#[inline]
pub fn ln(x: f64) -> f64 {
    let bits = x.to_bits();
    let exponent = (bits >> 52).cast_signed() - 1023;
    plus_ln_of_mantissa(exponent as f64 * LN_2, bits)
}

/// `sum` + ln of the mantissa of the number with these bits.
#[inline]
fn plus_ln_of_mantissa(sum: f64, bits: u64) -> f64 {
    let mantissa = f64::from_bits((bits & ((1 << 52) - 1)) | (1023 << 52));
    let (inverse, ln_centre) = TABLE[((bits >> 43) & 511) as usize];
    let t = mantissa * inverse - 1.0;
    let tail = t - t * t * (0.5 - t * (1.0 / 3.0 - t * 0.25));
    sum + ln_centre + tail
}

/// -ln u for u = (word + 1/2) / 2^32: an exponential variable from 32 uniform bits.
///
/// The bits of `-ln(u)`, without conversions between integers and floats, whose latency `lpmh` would feel.
#[inline]
pub fn exponential(word: u32) -> f64 {
    const TWO_52: u64 = (1023 + 52) << 52; // the bits of 2^52, whose mantissa ends in units
    let above = f64::from_bits(TWO_52 | u64::from(word)) - (f64::from_bits(TWO_52) - 0.5); // word + 1/2, exact
    let bits = above.to_bits();
    -plus_ln_of_mantissa(LN_OF_POWERS[((bits >> 52) & 63) as usize], bits)
}

/// ln of 2^(e - 1023) / 2^32 for the biased exponents e of word + 1/2, at their lowest six bits.
static LN_OF_POWERS: [f64; 64] = ln_of_powers();

const fn ln_of_powers() -> [f64; 64] {
    let mut table = [0.0; 64];
    let mut exponent = -1;
    while exponent < 32 {
        table[((exponent + 1023) & 63) as usize] = (exponent - 32) as f64 * LN_2;
        exponent += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn agrees_with_the_c_library(x in 1e-12f64..1e18) {
            prop_assert!((ln(x) - x.ln()).abs() < 1e-14 * x.ln().abs().max(1.0));
        }

        #[test]
        fn an_exponential_is_positive_and_falls_with_its_word(word in 1u32..) {
            prop_assert!(exponential(word) > 0.0);
            prop_assert!(exponential(word) < exponential(word - 1));
        }

        #[test]
        fn an_exponential_has_the_bits_of_the_logarithm(word: u32, shift in 0..32) {
            let word = word >> shift;
            let expected = -ln((f64::from(word) + 0.5) / 4_294_967_296.0);
            prop_assert_eq!(exponential(word).to_bits(), expected.to_bits());
        }
    }

    #[test]
    fn its_bits_never_change() {
        let bits = [ln(3.0), ln(1e6), exponential(12_345)].map(f64::to_bits);
        assert_eq!(
            bits,
            [
                4_607_626_529_066_517_258,
                4_623_967_059_079_856_033,
                4_623_372_669_675_760_165
            ]
        );
    }
}
