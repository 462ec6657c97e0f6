//! The 64-bit hash behind all random choices of signatures: folded 128-bit products, as in wyhash.

const A: u64 = 0xa076_1d64_78bd_642f;
const B: u64 = 0xe703_7ed1_a0b4_28db;
const C: u64 = 0x8ebc_6af0_9c88_c6e3;

/// The exclusive or of the halves of a 128-bit product.
#[inline]
pub fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ ((product >> 64) as u64)
}

#[inline]
pub fn mix(a: u64, b: u64) -> u64 {
    fold(fold(a ^ A, b ^ B), C)
}

/// The hash state of a seed.
pub fn seeded(seed: u64) -> u64 {
    mix(seed, A)
}

/// Word `number` of a sequence of hash words.
#[inline]
pub fn word(state: u64, number: u64) -> u64 {
    mix(state, number.wrapping_mul(C))
}

/// The bits of a value; a signature keeps the lowest of them.
#[inline]
pub fn scrambled(word: u64) -> u64 {
    mix(word, C)
}
