//! A table that counts 64-bit hashes, cleared and filled again for every text without allocating.
//!
//! Open addressing with linear probing at a load of at most one half. Keys are already well mixed, so
//! their low bits choose the slot.

#[derive(Clone, Copy, Default)]
pub struct Slot {
    key: u64,
    /// How often the key was added; 0 marks a free slot.
    pub count: u32,
    /// For the caller's use: whether a walk has visited the slot.
    pub seen: bool,
}

#[derive(Default)]
pub struct Table {
    slots: Vec<Slot>,
    mask: usize,
}

impl Table {
    /// Clears the table and makes room for `keys` distinct keys.
    pub fn reset(&mut self, keys: usize) {
        let capacity = (2 * keys).next_power_of_two().max(16);
        self.slots.clear();
        self.slots.resize(capacity, Slot::default());
        self.mask = capacity - 1;
    }

    /// Counts one occurrence of `key` and returns its slot.
    #[inline]
    pub fn add(&mut self, key: u64) -> usize {
        let mut index = key as usize & self.mask;
        loop {
            let slot = &mut self.slots[index];
            if slot.count == 0 {
                *slot = Slot {
                    key,
                    count: 1,
                    seen: false,
                };
                return index;
            }
            if slot.key == key {
                slot.count += 1;
                return index;
            }
            index = (index + 1) & self.mask;
        }
    }

    #[inline]
    pub fn slot(&mut self, index: usize) -> &mut Slot {
        &mut self.slots[index]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn counts_equal_those_of_a_map(keys in prop::collection::vec(0u64..40, 0..300), stride in 0u32..60) {
            let mut table = Table::default();
            table.reset(3);
            table.add(7);
            table.reset(keys.len());
            let mut expected: HashMap<u64, u32> = HashMap::new();
            for key in &keys {
                let key = key << stride; // high strides crowd all keys into one slot
                let count = expected.entry(key).or_default();
                *count += 1;
                let slot = table.add(key);
                prop_assert_eq!(table.slot(slot).count, *count);
            }
        }
    }
}
