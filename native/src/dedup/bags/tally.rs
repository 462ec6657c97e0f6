//! The number of occurrences of each token in one text: an open-addressed table that lives as long as the text.
//!
//! A token is a hash already, so its high bits choose its slot; a token whose slot is taken goes to the next free one.
//! At least half of the slots are free. Most tokens of a text are repetitions, which the table finds in the nearest
//! cache, while sorting all of them would take twice as long as lexing. As slots ascend with tokens, the table is
//! almost sorted.

/// A token and its number of occurrences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    pub token: u64,
    /// Zero in a free slot.
    pub count: u32,
}

/// The tokens counted so far.
pub struct Tally {
    /// Their number is a power of two.
    slots: Vec<Counted>,
    taken: usize,
}

const LEAST_SLOTS: usize = 64;

impl Tally {
    /// A table for a text of `bytes` bytes.
    pub fn new(bytes: usize) -> Self {
        Self {
            slots: vec![Counted::default(); (bytes / 16).next_power_of_two().clamp(LEAST_SLOTS, 1 << 16)],
            taken: 0,
        }
    }

    /// Counts a token; calls `first` at its first occurrence.
    #[inline]
    pub fn count(&mut self, token: u64, first: impl FnOnce()) {
        let at = place(&self.slots, token);
        let slot = &mut self.slots[at];
        if slot.count > 0 {
            slot.count = slot.count.saturating_add(1);
            return;
        }
        *slot = Counted { token, count: 1 };
        first();
        self.taken += 1;
        if self.taken * 2 > self.slots.len() {
            self.grow();
        }
    }

    /// All counted tokens in the order of slots, almost ascending.
    pub fn counted(&self) -> impl Iterator<Item = Counted> {
        self.slots.iter().filter(|slot| slot.count > 0).copied()
    }

    /// All counted tokens in ascending order.
    pub fn ascending(&self) -> Vec<Counted> {
        let mut ascending: Vec<Counted> = Vec::with_capacity(self.taken);
        for counted in self.counted() {
            let after = ascending
                .iter()
                .rev()
                .take_while(|it| it.token > counted.token)
                .count();
            ascending.insert(ascending.len() - after, counted);
        }
        ascending
    }

    #[cold]
    fn grow(&mut self) {
        let mut slots = vec![Counted::default(); self.slots.len() * 4];
        for counted in self.counted() {
            let at = place(&slots, counted.token);
            slots[at] = counted;
        }
        self.slots = slots;
    }
}

/// The slot of `token`, or the free slot for it.
#[inline]
fn place(slots: &[Counted], token: u64) -> usize {
    let last = slots.len() - 1;
    let mut at = (token >> last.leading_zeros()) as usize;
    while slots[at].count > 0 && slots[at].token != token {
        at = (at + 1) & last;
    }
    at
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_counts_as_a_map_does(tokens in proptest::collection::vec(0u64..400, 0..2000), shift in 0u32..60) {
            let (mut tally, mut expected) = (Tally::new(tokens.len()), BTreeMap::new());
            let mut firsts = 0;
            for token in tokens {
                tally.count(token << shift, || firsts += 1);
                *expected.entry(token << shift).or_insert(0) += 1;
            }
            let found: Vec<(u64, u32)> = tally.ascending().iter().map(|it| (it.token, it.count)).collect();
            prop_assert_eq!(firsts, found.len());
            prop_assert_eq!(found, expected.into_iter().collect::<Vec<_>>());
        }
    }
}
