//! Pages that are likely to be asked for again, under one budget for all indexes.
//!
//! Threads that want the same page wait for one of them to make it. What is dropped is what has not been asked
//! for since the hand went by last (CLOCK, which orders pages nearly as LRU does and costs a bit a page).

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;

use super::content::Content;
use super::error::Result;

/// The number of an index among all of the process, and of a page in it.
pub type Key = (u64, u64);

pub struct PageCache {
    budget: usize,
    state: Mutex<State>,
    made: Condvar,
    hits: AtomicU64,
    misses: AtomicU64,
}

#[derive(Default)]
struct State {
    places: FxHashMap<Key, usize>,
    slots: Vec<Slot>,
    hand: usize,
    used: usize,
    in_making: Vec<Key>,
}

struct Slot {
    key: Key,
    content: Arc<Content>,
    asked: bool,
}

impl PageCache {
    pub fn new(budget: usize) -> Self {
        Self {
            budget,
            state: Mutex::default(),
            made: Condvar::new(),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        }
    }

    /// Bytes of what is kept.
    pub fn used(&self) -> usize {
        self.lock().used
    }

    /// How often a page was there, and how often it had to be made.
    pub fn hits_and_misses(&self) -> (u64, u64) {
        (
            self.hits.load(Ordering::Relaxed),
            self.misses.load(Ordering::Relaxed),
        )
    }

    pub fn holds(&self, key: Key) -> bool {
        self.lock().places.contains_key(&key)
    }

    /// A page, made where it is not kept; what fails is not kept, and whoever waits for it tries himself.
    pub fn get(&self, key: Key, make: impl FnOnce() -> Result<Content>) -> Result<Arc<Content>> {
        let mut state = self.lock();
        loop {
            if let Some(&place) = state.places.get(&key) {
                let slot = &mut state.slots[place];
                slot.asked = true;
                self.hits.fetch_add(1, Ordering::Relaxed);
                return Ok(Arc::clone(&slot.content));
            }
            if !state.in_making.contains(&key) {
                break;
            }
            state = self.made.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.in_making.push(key);
        drop(state);
        let _ends = Making { cache: self, key };
        self.misses.fetch_add(1, Ordering::Relaxed);
        let content = Arc::new(make()?);
        self.lock().keep(key, &content, self.budget);
        Ok(content)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A page is no longer in the making, however that ended.
struct Making<'a> {
    cache: &'a PageCache,
    key: Key,
}

impl Drop for Making<'_> {
    fn drop(&mut self) {
        self.cache.lock().in_making.retain(|it| *it != self.key);
        self.cache.made.notify_all();
    }
}

impl State {
    fn keep(&mut self, key: Key, content: &Arc<Content>, budget: usize) {
        let size = content.size();
        if size > budget {
            return;
        }
        while self.used + size > budget && !self.slots.is_empty() {
            self.drop_one();
        }
        self.places.insert(key, self.slots.len());
        self.slots.push(Slot {
            key,
            content: Arc::clone(content),
            asked: false,
        });
        self.used += size;
    }

    fn drop_one(&mut self) {
        loop {
            self.hand = if self.hand < self.slots.len() {
                self.hand
            } else {
                0
            };
            let slot = &mut self.slots[self.hand];
            if slot.asked {
                slot.asked = false;
                self.hand += 1;
                continue;
            }
            let gone = self.slots.swap_remove(self.hand);
            self.places.remove(&gone.key);
            if let Some(moved) = self.slots.get(self.hand) {
                self.places.insert(moved.key, self.hand);
            }
            self.used -= gone.content.size();
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::error::PageError;
    use std::sync::atomic::AtomicUsize;
    use std::thread;

    fn page(bytes: usize) -> Content {
        Content::bytes(vec![0; bytes], 0, vec![0])
    }

    #[test]
    fn the_budget_holds_and_what_was_asked_for_stays() {
        let cache = PageCache::new(10_000);
        for number in 0..100 {
            cache.get((0, number), || Ok(page(1_000))).unwrap();
            cache.get((0, 0), || panic!("the page is there")).unwrap();
            assert!(cache.used() <= 10_000, "{}", cache.used());
        }
        assert!(cache.holds((0, 99)) && !cache.holds((0, 50)) && !cache.holds((1, 99)));
    }

    #[test]
    fn a_page_above_the_budget_is_handed_out_and_not_kept() {
        let cache = PageCache::new(100);
        assert!(cache.get((0, 0), || Ok(page(1_000))).unwrap().size() >= 1_000);
        assert_eq!(cache.used(), 0);
    }

    #[test]
    fn a_failure_is_not_kept() {
        let cache = PageCache::new(1_000);
        assert!(
            cache
                .get((0, 0), || Err(PageError::Corrupt("damaged".into())))
                .is_err()
        );
        assert!(cache.get((0, 0), || Ok(page(1))).is_ok());
    }

    #[test]
    fn threads_that_want_one_page_make_it_once() {
        let (cache, made) = (PageCache::new(1 << 20), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for number in 0..50 {
                        cache
                            .get((0, number), || {
                                made.fetch_add(1, Ordering::Relaxed);
                                Ok(page(10))
                            })
                            .unwrap();
                    }
                });
            }
        });
        assert_eq!(made.load(Ordering::Relaxed), 50);
    }
}
