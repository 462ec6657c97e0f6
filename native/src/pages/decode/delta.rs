//! The frames of DELTA encodings, checked before they are decoded.
//!
//!     header   values per block, miniblocks per block, number of values, first value: varints
//!     block    least difference (varint), one byte of bit width per miniblock, then the miniblocks
//!
//! A decoder allocates for the number of values, so that number is checked against the page's.

/// The end of a run of at most `most` numbers in `bytes`; `None` if the bytes are too short.
pub fn end_of_numbers(bytes: &[u8], most: usize) -> Option<usize> {
    let mut at = 0;
    let block = usize::try_from(varint(bytes, &mut at)?).ok()?;
    let miniblocks = usize::try_from(varint(bytes, &mut at)?).ok()?;
    let count = usize::try_from(varint(bytes, &mut at)?).ok()?;
    varint(bytes, &mut at)?;
    if count > most || miniblocks == 0 || block == 0 || !block.is_multiple_of(miniblocks) || block > 1 << 20 {
        return None;
    }
    let each = block / miniblocks;
    if !each.is_multiple_of(8) {
        return None;
    }
    let mut left = count.saturating_sub(1);
    while left > 0 {
        varint(bytes, &mut at)?;
        let widths = bytes.get(at..at.checked_add(miniblocks)?)?;
        at += miniblocks;
        for &width in widths {
            if left == 0 {
                break; // writers omit unneeded miniblocks
            }
            if width > 64 {
                return None;
            }
            at = at.checked_add(usize::from(width) * each / 8)?;
            left = left.saturating_sub(each);
        }
        if at > bytes.len() {
            return None;
        }
    }
    Some(at)
}

fn varint(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..70).step_by(7) {
        let byte = *bytes.get(*at)?;
        *at += 1;
        value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_run_ends_after_its_last_needed_miniblock() {
        // 128 values per block in 4 miniblocks; 34 values, the first 7: 33 differences in two miniblocks.
        let mut bytes = vec![0x80, 1, 4, 34, 14, 0, 1, 2, 9, 9];
        bytes.extend([0; 4 + 8]);
        assert_eq!(end_of_numbers(&bytes, 34), Some(bytes.len()));
        assert_eq!(end_of_numbers(&bytes, 33), None);
        assert_eq!(end_of_numbers(&bytes[..bytes.len() - 1], 34), None);
    }

    proptest! {
        #[test]
        fn any_bytes_end_inside_or_not_at_all(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            if let Some(end) = end_of_numbers(&bytes, 10_000) {
                prop_assert!(end <= bytes.len());
            }
        }
    }
}
