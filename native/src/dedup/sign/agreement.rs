//! Two signatures compared: the number of values that agree, and the similarity it estimates.
//!
//! A signature is a sequence of values without gaps, the first in the highest bits of the first byte. Values
//! have 1, 2, 4, 8 or 16 bits, so that none crosses a word of eight bytes.

pub const VALUE_BITS: [usize; 5] = [1, 2, 4, 8, 16];

/// The bits of a value, or an error for a width without packing.
pub fn checked_value_bits(value_bits: usize) -> Result<usize, String> {
    if VALUE_BITS.contains(&value_bits) {
        Ok(value_bits)
    } else {
        Err(format!("A value has {value_bits} bits. Use 1, 2, 4, 8 or 16."))
    }
}

/// Appends the lowest `value_bits` bits of each of `values`.
pub fn pack(values: impl Iterator<Item = u64>, value_bits: usize, signature: &mut Vec<u8>) {
    match value_bits {
        8 => signature.extend(values.map(|value| value as u8)),
        16 => values.for_each(|value| signature.extend((value as u16).to_be_bytes())),
        _ => {
            let (mut byte, mut filled) = (0u8, 0);
            for value in values {
                byte = byte << value_bits | (value as u8 & ((1 << value_bits) - 1));
                filled += value_bits;
                if filled == 8 {
                    signature.push(byte);
                    (byte, filled) = (0, 0);
                }
            }
            if filled > 0 {
                signature.push(byte << (8 - filled));
            }
        }
    }
}

/// A signature of `bytes` bytes, empty if it is missing; an error for another length.
pub fn of_length(bytes: usize, signature: Option<&[u8]>) -> Result<&[u8], String> {
    let signature = signature.unwrap_or_default();
    if signature.len() == bytes {
        Ok(signature)
    } else {
        Err(format!(
            "A group has signatures of {bytes} and {} bytes. Sign all its documents with one configuration.",
            signature.len()
        ))
    }
}

/// The number of values that agree in two signatures of equal length.
#[inline]
pub fn matches(signature: &[u8], other: &[u8], value_bits: usize) -> usize {
    if value_bits == 8 {
        return equal_bytes(signature, other);
    }
    let lowest = u64::MAX / ((1 << value_bits) - 1); // the lowest bit of each value
    let (mut differing, mut bits) = (0, 0);
    for (left, right) in signature.chunks(8).zip(other.chunks(8)) {
        let mut difference = word(left) ^ word(right);
        let mut step = value_bits / 2;
        while step > 0 {
            difference |= difference >> step;
            step /= 2;
        }
        differing += (difference & lowest).count_ones() as usize;
        bits += 8 * left.len();
    }
    bits / value_bits - differing
}

fn equal_bytes(signature: &[u8], other: &[u8]) -> usize {
    let mut total = 0;
    // 128 matches fit in a byte, which lets the compiler count in byte lanes.
    for (left, right) in signature.chunks(128).zip(other.chunks(128)) {
        let mut count = 0u8;
        for (a, b) in left.iter().zip(right) {
            count += u8::from(a == b);
        }
        total += usize::from(count);
    }
    total
}

/// Up to eight bytes as a big-endian number.
fn word(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |word, &byte| word << 8 | u64::from(byte))
}

/// The similarity estimated from `matches` of `values` values; one in 2^`value_bits` agrees by chance.
pub fn estimate(matches: usize, values: usize, value_bits: usize) -> f64 {
    let chance = 1.0 / (1u64 << value_bits) as f64;
    let rate = matches as f64 / values.max(1) as f64;
    ((rate - chance) / (1.0 - chance)).max(0.0)
}

/// The least number of agreeing values whose estimate reaches `min_estimate`.
pub fn matches_for(min_estimate: f64, values: usize, value_bits: usize) -> usize {
    (0..=values)
        .find(|&count| estimate(count, values, value_bits) >= min_estimate)
        .unwrap_or(values + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn packed(values: &[u64], value_bits: usize) -> Vec<u8> {
        let mut signature = Vec::new();
        pack(values.iter().copied(), value_bits, &mut signature);
        signature
    }

    proptest! {
        #[test]
        fn matches_are_counted_at_any_width_and_length(
            pairs in proptest::collection::vec((0u64..3, 0u64..3), 0..90),
            width in 0usize..5,
        ) {
            let value_bits = VALUE_BITS[width];
            // Values fill whole bytes, as any power of two from 16 on does.
            let whole = pairs.len() - pairs.len() % 8;
            let kept = (1u64 << value_bits) - 1;
            let (left, right): (Vec<u64>, Vec<u64>) = pairs[..whole].iter().copied().unzip();
            let expected = left.iter().zip(&right).filter(|(a, b)| *a & kept == *b & kept).count();
            let (left, right) = (packed(&left, value_bits), packed(&right, value_bits));
            prop_assert_eq!(left.len() * 8, whole * value_bits);
            prop_assert_eq!(matches(&left, &right, value_bits), expected);
        }
    }

    #[test]
    fn values_lie_in_order_from_the_highest_bit() {
        assert_eq!(packed(&[1, 0, 1, 1, 0, 0, 0, 1], 1), [0b1011_0001]);
        assert_eq!(packed(&[0xa, 0xb, 0xc, 0xd], 4), [0xab, 0xcd]);
        assert_eq!(packed(&[0x1234, 0xffff_5678], 16), [0x12, 0x34, 0x56, 0x78]);
    }

    #[test]
    fn chance_agreement_is_no_similarity() {
        assert_eq!(estimate(1, 256, 8), 0.0);
        assert_eq!(estimate(0, 256, 8), 0.0);
        assert_eq!(estimate(256, 256, 8), 1.0);
        assert!((estimate(205, 256, 8) - 0.8).abs() < 0.001);
        assert_eq!(estimate(64, 128, 1), 0.0);
        assert_eq!(estimate(96, 128, 1), 0.5);
    }

    #[test]
    fn the_least_matches_reach_the_least_estimate() {
        for value_bits in VALUE_BITS {
            let least = matches_for(0.7, 256, value_bits);
            assert!(estimate(least, 256, value_bits) >= 0.7);
            assert!(estimate(least - 1, 256, value_bits) < 0.7);
        }
        assert_eq!(matches_for(0.0, 256, 8), 0);
        assert_eq!(matches_for(1.1, 256, 8), 257);
    }
}
