//! A cache of pages that are likely to be requested again, and of dictionaries, with one budget for all indexes.
//!
//! Threads that want the same page wait for one of them to make it. The cache first drops pages whose rows were all
//! taken, because an order that returns to a page takes each row once; then pages without a request since the
//! hand's last pass (CLOCK, which orders pages nearly as LRU does at one bit per page).

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;

use crate::pages::decode::content::Content;
use crate::pages::error::Result;

/// A page or a dictionary, by the number of its index in the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    /// By its number in the index.
    Page(u64, u64),
    /// By the number of its column chunk in the index.
    Dictionary(u64, usize),
}

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
    slots: Vec<Option<Slot>>,
    free: Vec<usize>,
    /// Slots of pages whose last row was taken.
    spent: Vec<(usize, Key)>,
    hand: usize,
    used: usize,
    in_making: Vec<Key>,
}

struct Slot {
    key: Key,
    content: Arc<Content>,
    requested: bool,
    /// Rows not yet taken.
    left: u32,
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

    /// Bytes of all pages and dictionaries in the cache.
    pub fn used(&self) -> usize {
        self.lock().used
    }

    /// The number of requests for pages in the cache, and of pages made.
    pub fn hits_and_misses(&self) -> (u64, u64) {
        (
            self.hits.load(Ordering::Relaxed),
            self.misses.load(Ordering::Relaxed),
        )
    }

    pub fn holds(&self, key: Key) -> bool {
        self.lock().places.contains_key(&key)
    }

    /// A page of which the caller takes `taken` rows, or a dictionary, made if the cache lacks it. Failures are not kept; every
    /// waiting thread then tries itself.
    pub fn get(&self, key: Key, taken: u32, make: impl FnOnce() -> Result<Content>) -> Result<Arc<Content>> {
        let mut state = self.lock();
        loop {
            if let Some(content) = state.take(key, taken) {
                self.count(key, &self.hits);
                return Ok(content);
            }
            if !state.in_making.contains(&key) {
                break;
            }
            state = self.made.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.in_making.push(key);
        drop(state);
        let _ends = Making { cache: self, key };
        self.count(key, &self.misses);
        let content = Arc::new(make()?);
        self.lock().keep(key, &content, taken, self.budget);
        Ok(content)
    }

    fn count(&self, key: Key, counter: &AtomicU64) {
        if matches!(key, Key::Page(..)) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Marks a page as no longer in the making when dropped, after success and failure.
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
    fn take(&mut self, key: Key, taken: u32) -> Option<Arc<Content>> {
        let place = *self.places.get(&key)?;
        let slot = self.slots.get_mut(place)?.as_mut()?;
        slot.requested = true;
        if slot.left > 0 && slot.left <= taken {
            self.spent.push((place, key));
        }
        slot.left = slot.left.saturating_sub(taken);
        Some(Arc::clone(&slot.content))
    }

    fn keep(&mut self, key: Key, content: &Arc<Content>, taken: u32, budget: usize) {
        let size = content.size();
        if size > budget {
            return;
        }
        while self.used + size > budget && !self.places.is_empty() {
            self.drop_one();
        }
        let slot = Slot {
            key,
            content: Arc::clone(content),
            requested: false,
            left: u32::try_from(content.rows()).unwrap_or(u32::MAX),
        };
        let place = self.free.pop().unwrap_or(self.slots.len());
        match self.slots.get_mut(place) {
            Some(free) => *free = Some(slot),
            None => self.slots.push(Some(slot)),
        }
        self.places.insert(key, place);
        self.used += size;
        self.take(key, taken);
        if let Some(slot) = &mut self.slots[place] {
            slot.requested = false; // the first request does not count; pages requested again stay longer
        }
    }

    fn drop_one(&mut self) {
        while let Some((place, key)) = self.spent.pop() {
            if self.slots[place]
                .as_ref()
                .is_some_and(|it| it.key == key && it.left == 0)
            {
                return self.remove(place);
            }
        }
        loop {
            self.hand = (self.hand + 1) % self.slots.len();
            match &mut self.slots[self.hand] {
                Some(slot) if slot.requested => slot.requested = false,
                Some(_) => return self.remove(self.hand),
                None => {}
            }
        }
    }

    fn remove(&mut self, place: usize) {
        if let Some(gone) = self.slots[place].take() {
            self.places.remove(&gone.key);
            self.used -= gone.content.size();
            self.free.push(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::error::PageError;
    use std::sync::atomic::AtomicUsize;
    use std::thread;

    const PAGE: fn(u64) -> Key = |number| Key::Page(0, number);

    fn page(bytes: usize) -> Content {
        Content::bytes(vec![0; bytes], 0, vec![0; 5])
    }

    #[test]
    fn the_budget_holds_and_requested_pages_stay() {
        let cache = PageCache::new(10_000);
        for number in 0..100 {
            cache.get(PAGE(number), 1, || Ok(page(1_000))).unwrap();
            cache.get(PAGE(0), 0, || panic!("the page is there")).unwrap();
            assert!(cache.used() <= 10_000, "{}", cache.used());
        }
        assert!(cache.holds(PAGE(99)) && !cache.holds(PAGE(50)) && !cache.holds(Key::Page(1, 99)));
    }

    #[test]
    fn pages_that_are_taken_whole_go_before_those_with_rows_left() {
        let cache = PageCache::new(10_000);
        for number in 0..8 {
            cache.get(PAGE(number), 1, || Ok(page(1_000))).unwrap();
        }
        cache.get(PAGE(7), 3, || panic!("the page is there")).unwrap();
        for number in 8..100 {
            cache.get(PAGE(number), 4, || Ok(page(1_000))).unwrap();
        }
        assert!((0..7).all(|number| cache.holds(PAGE(number))));
        assert!(!cache.holds(PAGE(7)) && cache.holds(PAGE(99)));
    }

    #[test]
    fn a_page_above_the_budget_is_handed_out_and_not_kept() {
        let cache = PageCache::new(100);
        assert!(cache.get(PAGE(0), 1, || Ok(page(1_000))).unwrap().size() >= 1_000);
        assert_eq!(cache.used(), 0);
    }

    #[test]
    fn a_failure_is_not_kept() {
        let cache = PageCache::new(1_000);
        assert!(
            cache
                .get(PAGE(0), 1, || Err(PageError::Corrupt("damaged".into())))
                .is_err()
        );
        assert!(cache.get(PAGE(0), 1, || Ok(page(1))).is_ok());
    }

    #[test]
    fn threads_that_want_one_page_make_it_once() {
        let (cache, made) = (PageCache::new(1 << 20), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for number in 0..50 {
                        cache
                            .get(PAGE(number), 1, || {
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
