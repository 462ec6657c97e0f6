//! Items by amount, and the item of the least sufficient amount.
//!
//! Items of equal amounts form a linked list; a hierarchy of bit sets over the amounts finds the least
//! sufficient one with one word operation per level (three levels reach 262,144):
//!
//! ```text
//! level 1   . . 1 . . . . 1      a bit: some bit of that word below is set
//! level 0   [ 64 amounts ] ...   a bit: some item has exactly this amount
//! heads     amount -> item -> next item of the same amount
//! ```

const NONE: u32 = u32::MAX;

/// Items, numbered from 0 without large gaps, each with one amount.
pub struct ByAmount {
    levels: Vec<Vec<u64>>,
    heads: Vec<u32>,
    next: Vec<u32>,
}

impl ByAmount {
    /// For amounts from 0 to `largest`.
    pub fn new(largest: u32) -> Self {
        let amounts = largest as usize + 1;
        let mut levels = Vec::new();
        let mut words = amounts;
        loop {
            words = words.div_ceil(64);
            levels.push(vec![0u64; words]);
            if words == 1 {
                break;
            }
        }
        ByAmount {
            levels,
            heads: vec![NONE; amounts],
            next: Vec::new(),
        }
    }

    /// Add an item that the index does not hold.
    pub fn insert(&mut self, item: u32, amount: u32) {
        if self.next.len() <= item as usize {
            self.next.resize(item as usize + 1, NONE);
        }
        let head = &mut self.heads[amount as usize];
        self.next[item as usize] = *head;
        let was_empty = *head == NONE;
        *head = item;
        if was_empty {
            let mut position = amount as usize;
            for level in &mut self.levels {
                let word = &mut level[position >> 6];
                let held_some = *word != 0;
                *word |= 1 << (position & 63);
                if held_some {
                    break;
                }
                position >>= 6;
            }
        }
    }

    /// Remove the last inserted item of the least amount of at least `wanted`: (item, amount).
    pub fn take_least(&mut self, wanted: u32) -> Option<(u32, u32)> {
        let amount = self.least(wanted)?;
        Some((self.take(amount), amount))
    }

    /// Remove the last inserted item of `amount`, which some item has.
    pub fn take(&mut self, amount: u32) -> u32 {
        let amount = amount as usize;
        let item = self.heads[amount];
        self.heads[amount] = self.next[item as usize];
        if self.heads[amount] == NONE {
            let mut position = amount;
            for level in &mut self.levels {
                let word = &mut level[position >> 6];
                *word &= !(1 << (position & 63));
                if *word != 0 {
                    break;
                }
                position >>= 6;
            }
        }
        item
    }

    /// One bit for each of the 64 amounts from `first` on: whether some item has it.
    pub fn bits(&self, first: usize) -> u64 {
        let words = &self.levels[0];
        let word = |i: usize| words.get(i).copied().unwrap_or(0);
        let low = word(first / 64) >> (first % 64);
        match first % 64 {
            0 => low,
            offset => low | word(first / 64 + 1) << (64 - offset),
        }
    }

    /// The least amount of at least `wanted` that an item has.
    pub fn least(&self, wanted: u32) -> Option<u32> {
        let mut position = wanted as usize;
        for (height, level) in self.levels.iter().enumerate() {
            let word = position >> 6;
            if word >= level.len() {
                return None;
            }
            let at_or_above = level[word] & (!0u64 << (position & 63));
            if at_or_above != 0 {
                let mut found = (word << 6) | at_or_above.trailing_zeros() as usize;
                for below in self.levels[..height].iter().rev() {
                    found = (found << 6) | below[found].trailing_zeros() as usize;
                }
                return Some(found as u32);
            }
            position = word + 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_finds_amounts_across_words_and_levels() {
        let mut items = ByAmount::new(300_000);
        items.insert(0, 5);
        items.insert(1, 4_200);
        items.insert(2, 300_000);
        assert_eq!(items.take_least(5), Some((0, 5)));
        assert_eq!(items.take_least(5), Some((1, 4_200)));
        assert_eq!(items.take_least(4_201), Some((2, 300_000)));
        assert_eq!(items.take_least(1), None);
    }
}
