//! Memory for the bytes of a result, reused after the result is dropped.
//!
//! A reader takes one block of some megabytes after another. The system zeroes such memory page by page, and reclaims
//! it with every block: hundreds of page faults, each as expensive as copying a row.

use std::sync::{Mutex, MutexGuard, PoisonError};

use arrow_buffer::Buffer;
use bytes::Bytes;

/// Shorter blocks are cheap to allocate.
const LEAST: usize = 1 << 18;
/// Idle bytes of the whole process.
const MOST_IDLE: usize = 16 << 20;

static IDLE: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

/// Bytes of a result, appended or written in place.
#[derive(Default)]
pub struct Space {
    /// Initialized memory.
    bytes: Vec<u8>,
    used: usize,
}

impl Space {
    pub fn len(&self) -> usize {
        self.used
    }

    /// Reserves `length` bytes, if it is empty.
    pub fn expect(&mut self, length: usize) {
        if self.bytes.len() < length {
            give_back(std::mem::take(&mut self.bytes));
            self.bytes = taken(length);
        }
    }

    /// The next `length` bytes, with any content; `keep` adds them.
    pub fn next(&mut self, length: usize) -> &mut [u8] {
        let end = self.used + length;
        if self.bytes.len() < end {
            self.bytes.resize(end.max(2 * self.bytes.len()), 0);
        }
        &mut self.bytes[self.used..end]
    }

    pub fn keep(&mut self, length: usize) {
        self.used += length;
    }

    /// The kept bytes, without a copy.
    pub fn into_buffer(self) -> Buffer {
        let Self { mut bytes, used } = self;
        if bytes.len() < LEAST {
            bytes.truncate(used);
            return Buffer::from_vec(bytes);
        }
        Buffer::from(Bytes::from_owner(Lent(bytes))).slice_with_length(0, used)
    }
}

/// Memory that returns to the idle blocks when dropped.
struct Lent(Vec<u8>);

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        give_back(std::mem::take(&mut self.0));
    }
}

/// Idle memory of `length` to twice `length` bytes, or new memory.
fn taken(length: usize) -> Vec<u8> {
    if length >= LEAST {
        let mut idle = idle();
        if let Some(place) = idle
            .iter()
            .rposition(|it| (length..=2 * length).contains(&it.len()))
        {
            return idle.swap_remove(place);
        }
    }
    vec![0; length]
}

fn give_back(bytes: Vec<u8>) {
    if !(LEAST..=MOST_IDLE).contains(&bytes.len()) {
        return;
    }
    let mut idle = idle();
    idle.push(bytes);
    let mut held: usize = idle.iter().map(Vec::len).sum();
    while held > MOST_IDLE {
        held -= idle.remove(0).len(); // the block that was idle longest
    }
}

fn idle() -> MutexGuard<'static, Vec<Vec<u8>>> {
    IDLE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_kept_bytes_are_in_the_buffer() {
        let mut old = Space::default();
        old.expect(LEAST);
        old.next(LEAST).fill(7);
        old.keep(LEAST);
        drop(old.into_buffer());
        let mut space = Space::default();
        space.expect(LEAST);
        space.next(3).copy_from_slice(b"abc");
        space.keep(3);
        space.next(5).fill(9); // not kept
        space.next(1).copy_from_slice(b"d");
        space.keep(1);
        assert_eq!(space.into_buffer().as_slice(), b"abcd");
    }

    #[test]
    fn more_than_was_expected_has_room() {
        let mut space = Space::default();
        space.expect(2);
        for byte in 0..200 {
            space.next(1)[0] = byte;
            space.keep(1);
        }
        assert_eq!(space.into_buffer().as_slice(), (0..200).collect::<Vec<u8>>());
    }

    #[test]
    fn two_results_never_share_memory() {
        let filled = |byte: u8| {
            let mut space = Space::default();
            space.expect(LEAST);
            space.next(LEAST).fill(byte);
            space.keep(LEAST);
            space.into_buffer()
        };
        drop(filled(0));
        let (one, other) = (filled(1), filled(2));
        let third = one.clone();
        drop(one);
        drop(filled(3));
        assert!(third.iter().all(|&it| it == 1) && other.iter().all(|&it| it == 2));
    }

    #[test]
    fn memory_that_waits_is_bounded() {
        for length in [LEAST, 3 * LEAST, MOST_IDLE, MOST_IDLE + 1] {
            give_back(vec![0; length]);
            assert!(idle().iter().map(Vec::len).sum::<usize>() <= MOST_IDLE);
        }
    }
}
