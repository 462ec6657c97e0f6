//! Exact byte ranges of local files.
//!
//! A read first tries the system's page cache, without waiting. If that holds too little, the reader announces the
//! next ranges to the system too, so that the disk works on many at a time, without a thread for each.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;

use crate::pages::error::{PageError, Place, Result};
use crate::pages::index::entries::FileEntry;

/// Open files of all indexes: half of most systems' limit for a process.
const MOST_OPEN: usize = 512;
/// Ranges announced ahead of the current one: as many as a disk's queue holds on Linux.
const AHEAD: usize = 256;
/// Bytes announced ahead, because long ranges fill the page cache.
const LEAST_AHEAD: usize = 16;
const AHEAD_BYTES: usize = 16 << 20;

static OPEN: LazyLock<Mutex<Open>> = LazyLock::new(Mutex::default);
static INDEXES: AtomicU64 = AtomicU64::new(0);

/// The files of an index, opened at their first read.
///
/// All indexes of the process share one budget of open files; the file opened first is closed first.
pub struct Files {
    index: u64,
}

/// An index and the number of one of its files.
type Key = (u64, usize);

#[derive(Default)]
struct Open {
    files: FxHashMap<Key, Arc<File>>,
    order: VecDeque<Key>,
}

impl Default for Files {
    fn default() -> Self {
        Self {
            index: INDEXES.fetch_add(1, Ordering::Relaxed),
        }
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let mut open = lock();
        open.files.retain(|key, _| key.0 != self.index);
        open.order.retain(|key| key.0 != self.index);
    }
}

impl Files {
    /// A file by its number; Corrupt if its size differs from the index.
    pub fn get(&self, number: usize, entry: FileEntry<'_>, place: Place<'_>) -> Result<Arc<File>> {
        let key = (self.index, number);
        if let Some(file) = lock().files.get(&key) {
            return Ok(Arc::clone(file));
        }
        let file = File::open(entry.path).map_err(|error| place.unreadable(&error))?;
        let size = file.metadata().map_err(|error| place.unreadable(&error))?.len();
        if size != entry.bytes {
            return Err(PageError::Corrupt(format!(
                "File {} has {size} bytes, its page index says {}: it was cut short or rewritten. \
                 Restore it, or build the index again.",
                entry.path, entry.bytes
            )));
        }
        Ok(lock().keep(key, Arc::new(file)))
    }
}

impl Open {
    /// The file of a key; if two threads opened it, the first one.
    fn keep(&mut self, key: Key, file: Arc<File>) -> Arc<File> {
        if let Some(first) = self.files.get(&key) {
            return Arc::clone(first);
        }
        if self.order.len() == MOST_OPEN
            && let Some(oldest) = self.order.pop_front()
        {
            self.files.remove(&oldest);
        }
        self.order.push_back(key);
        self.files.insert(key, Arc::clone(&file));
        file
    }
}

fn lock() -> MutexGuard<'static, Open> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Fills `head`, then `rest`, from the page cache alone; returns whether it could.
#[cfg(target_os = "linux")]
pub fn read_cached(file: &File, head: &mut [u8], rest: &mut [u8], offset: u64) -> bool {
    let length = head.len() + rest.len();
    let n = if rest.is_empty() { 1 } else { 2 };
    let mut parts = [io::IoSliceMut::new(head), io::IoSliceMut::new(rest)];
    rustix::io::preadv2(file, &mut parts[..n], offset, rustix::io::ReadWriteFlags::NOWAIT) == Ok(length)
}

/// The number of ranges of `length` bytes to announce ahead.
pub fn ahead(bytes: usize) -> usize {
    (AHEAD_BYTES / bytes.max(1)).clamp(LEAST_AHEAD, AHEAD)
}

/// Announces a range to the system.
#[cfg(target_os = "linux")]
pub fn announce(file: &File, offset: u64, length: usize) {
    // Only advice: a system that ignores it reads the range later.
    let _ = rustix::fs::fadvise(
        file,
        offset,
        std::num::NonZeroU64::new(length as u64),
        rustix::fs::Advice::WillNeed,
    );
}

/// Only Linux can read from its page cache alone.
#[cfg(not(target_os = "linux"))]
pub fn read_cached(_file: &File, _head: &mut [u8], _rest: &mut [u8], _offset: u64) -> bool {
    false
}

/// Only Linux accepts advice on a range.
#[cfg(not(target_os = "linux"))]
pub fn announce(_file: &File, _offset: u64, _length: usize) {}

/// Fills `bytes`, waiting for the disk.
pub fn read(file: &File, bytes: &mut [u8], offset: u64, place: Place<'_>) -> Result<()> {
    file.read_exact_at(bytes, offset)
        .map_err(|error| place.unreadable(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_small_pages_than_large_ones_are_announced() {
        assert_eq!(ahead(8 << 10), 256);
        assert_eq!(ahead(0), 256);
        assert_eq!(ahead(1 << 18), 64);
        assert_eq!(ahead(1 << 30), 16);
    }
}
