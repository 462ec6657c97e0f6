//! Stretches of a text that hold words, found 64 bytes at a time.
//!
//! A stretch consists of ASCII letters, digits and underscores, and of all bytes of other characters. A mask has one
//! bit for each byte of a block, computed eight bytes at once within a register, equal on every machine; stretches
//! begin and end where its bits change. Reading byte by byte takes three times as long, because no processor
//! predicts where a word ends.

const BLOCK: usize = 64;
const LANES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = LANES * 0x80;

/// Finds the ends of stretches, from front to back.
pub struct Stretches<'a> {
    bytes: &'a [u8],
    /// The begin of the block of `mask`.
    block: usize,
    /// The lowest bit is the block's first byte; bits past the end of the text are zero.
    mask: u64,
}

impl<'a> Stretches<'a> {
    pub fn new(text: &'a str) -> Self {
        let bytes = text.as_bytes();
        Self {
            bytes,
            block: 0,
            mask: mask(bytes, 0),
        }
    }

    /// The begin of the next stretch, at or after `from`.
    #[inline]
    pub fn begin(&mut self, from: usize) -> Option<usize> {
        self.first(from, 0)
    }

    /// The end of the stretch that contains the byte `from`.
    #[inline]
    pub fn end(&mut self, from: usize) -> usize {
        self.first(from, u64::MAX)
            .map_or(self.bytes.len(), |end| end.min(self.bytes.len()))
    }

    /// The first byte at or after `from` whose bit differs from the bits of `flipped`.
    #[inline]
    fn first(&mut self, from: usize, flipped: u64) -> Option<usize> {
        let mut from = from;
        while from < self.bytes.len() {
            let block = from / BLOCK * BLOCK;
            if block != self.block {
                (self.block, self.mask) = (block, mask(self.bytes, block));
            }
            let rest = (self.mask ^ flipped) >> (from - block);
            if rest != 0 {
                return Some(from + rest.trailing_zeros() as usize);
            }
            from = block + BLOCK;
        }
        None
    }
}

/// The mask of the block that begins at `block`.
#[inline]
fn mask(bytes: &[u8], block: usize) -> u64 {
    let rest = &bytes[block..];
    match rest.first_chunk::<BLOCK>() {
        Some(whole) => whole_mask(whole),
        None => {
            let mut padded = [0; BLOCK];
            padded[..rest.len()].copy_from_slice(rest);
            whole_mask(&padded)
        }
    }
}

#[inline]
fn whole_mask(block: &[u8; BLOCK]) -> u64 {
    let (eights, _) = block.as_chunks::<8>();
    eights.iter().rev().fold(0, |mask, eight| {
        let inside = inside(u64::from_le_bytes(*eight));
        // The product puts the lowest bit of byte i at bit 56 + i.
        (mask << 8) | ((inside >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56)
    })
}

/// The highest bit of each byte inside a stretch.
#[inline]
fn inside(eight: u64) -> u64 {
    let ascii = eight & !HIGH;
    let lower = ascii | (LANES * 0x20);
    let letters = from(lower, b'a') & !from(lower, b'z' + 1);
    let digits = from(ascii, b'0') & !from(ascii, b'9' + 1);
    let underscores = from(ascii, b'_') & !from(ascii, b'_' + 1);
    (eight & HIGH) | letters | digits | underscores
}

/// The highest bit of each byte that is at least `least`; bytes and `least` are ASCII.
#[inline]
fn from(bytes: u64, least: u8) -> u64 {
    (bytes + LANES * u64::from(0x80 - least)) & HIGH
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn found(text: &str) -> Vec<(usize, usize)> {
        let (mut stretches, mut found) = (Stretches::new(text), Vec::new());
        let mut at = 0;
        while let Some(begin) = stretches.begin(at) {
            at = stretches.end(begin);
            found.push((begin, at));
        }
        found
    }

    fn byte_by_byte(text: &str, inside: impl Fn(u8) -> bool) -> Vec<(usize, usize)> {
        let (bytes, mut found, mut at) = (text.as_bytes(), Vec::new(), 0);
        for stretch in bytes.chunk_by(|a, b| inside(*a) == inside(*b)) {
            if inside(stretch[0]) {
                found.push((at, at + stretch.len()));
            }
            at += stretch.len();
        }
        found
    }

    #[test]
    fn every_byte_has_its_class() {
        for byte in 0..=255u8 {
            let word = byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80;
            for eight in [[byte; 8], [0, 0xff, byte, b'_', byte, b'z', 0, byte]] {
                let class_of = |inside: u64| ((inside >> 16) & 0x80 != 0, inside & !HIGH);
                assert_eq!(class_of(inside(u64::from_le_bytes(eight))), (word, 0));
            }
        }
    }

    proptest! {
        #[test]
        fn stretches_are_those_found_byte_by_byte(text in "([a-z_]{0,80}|[ -~]{0,9}|\\PC{0,5}){0,12}") {
            let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80;
            prop_assert_eq!(found(&text), byte_by_byte(&text, word));
        }
    }
}
