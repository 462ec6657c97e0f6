//! How often each token stands in one text: an open-addressed table that lives as long as the text.
//!
//! A token is a hash already, so its high bits are its place; the next free slot takes what finds its own taken.
//! Half of the slots or more are free. Most tokens of a text are repetitions, which this finds in the nearest
//! cache, where sorting all of them would take twice as long as lexing. As places ascend with tokens, the table
//! is almost sorted.

/// A token and how often it was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    pub token: u64,
    /// Zero in a free slot.
    pub count: u32,
}

/// The tokens counted so far.
pub struct Tally {
    /// A power of two of them.
    slots: Vec<Counted>,
    taken: usize,
}

const LEAST_SLOTS: usize = 64;

impl Tally {
    /// For a text of so many bytes.
    pub fn new(bytes: usize) -> Self {
        Self {
            slots: vec![Counted::default(); (bytes / 16).next_power_of_two().clamp(LEAST_SLOTS, 1 << 16)],
            taken: 0,
        }
    }

    /// Counts a token; `first` is called for the first of its kind.
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

    /// What was counted, in the order of places: almost that of tokens.
    pub fn counted(&self) -> impl Iterator<Item = Counted> {
        self.slots.iter().filter(|slot| slot.count > 0).copied()
    }

    /// What was counted, in ascending order of tokens.
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

/// The slot that has `token`, or the free one that is its.
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
