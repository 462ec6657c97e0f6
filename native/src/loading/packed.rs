//! A number with an index below it, in one integer, so that one comparison decides by number and then by index.
//!
//! 64 bits suffice for most costs; 128 bits hold the sum of any 2^32 costs above an index.

pub trait Packed: Copy + Ord {
    /// Greater than any number with an index, if the numbers leave room for it.
    const NONE: Self;

    fn new(number: u64, index: u32, index_bits: u32) -> Self;

    /// The same index below the sum of both numbers.
    fn plus(self, number: u64, index_bits: u32) -> Self;

    fn index(self, index_bits: u32) -> u32;

    /// The lowest bits from bit `shift` on.
    fn bits_from(self, shift: u32) -> usize;
}

macro_rules! packed {
    ($integer:ty) => {
        impl Packed for $integer {
            const NONE: Self = Self::MAX;

            fn new(number: u64, index: u32, index_bits: u32) -> Self {
                Self::from(number) << index_bits | Self::from(index)
            }

            fn plus(self, number: u64, index_bits: u32) -> Self {
                self + (Self::from(number) << index_bits)
            }

            fn index(self, index_bits: u32) -> u32 {
                (self as u64 & ((1 << index_bits) - 1)) as u32
            }

            fn bits_from(self, shift: u32) -> usize {
                (self >> shift) as usize
            }
        }
    };
}

packed!(u64);
packed!(u128);

/// The bits of the indexes below `n`.
pub fn index_bits(n: usize) -> u32 {
    usize::BITS - n.saturating_sub(1).leading_zeros()
}
