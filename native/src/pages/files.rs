//! Exact byte ranges of local files.
//!
//! A read first takes what the page cache holds, without waiting. Where it holds too little, the system is
//! told of the next ranges as well, so that the disk works on many at a time, without a thread for each.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap;

use super::error::{PageError, Place, Result};
use super::index::FileEntry;

const MOST_OPEN: usize = 256;
/// Ranges the system is told of ahead of the one that is waited for.
pub const AHEAD: usize = 64;

/// The files of an index, opened when they are first read.
#[derive(Default)]
pub struct Files(Mutex<Open>);

#[derive(Default)]
struct Open {
    files: FxHashMap<usize, Arc<File>>,
    order: VecDeque<usize>,
}

impl Files {
    /// A file by its number; Corrupt where it is not of the size its index knows.
    pub fn get(&self, number: usize, entry: FileEntry<'_>, place: Place<'_>) -> Result<Arc<File>> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = open.files.get(&number) {
            return Ok(Arc::clone(file));
        }
        let file = File::open(entry.path).map_err(|error| place.unreadable(&error))?;
        let size = file.metadata().map_err(|error| place.unreadable(&error))?.len();
        if size != entry.bytes {
            return Err(PageError::Corrupt(format!(
                "File {} has {size} bytes, its page index says {}: it was cut short or written anew. \
                 Restore it, or build the index anew.",
                entry.path, entry.bytes
            )));
        }
        let file = Arc::new(file);
        if open.order.len() == MOST_OPEN
            && let Some(oldest) = open.order.pop_front()
        {
            open.files.remove(&oldest);
        }
        open.order.push_back(number);
        open.files.insert(number, Arc::clone(&file));
        Ok(file)
    }
}

/// Fills `bytes` from the page cache alone; says whether it could.
#[cfg(target_os = "linux")]
pub fn read_cached(file: &File, bytes: &mut [u8], offset: u64) -> bool {
    let mut parts = [io::IoSliceMut::new(bytes)];
    let length = parts[0].len();
    rustix::io::preadv2(file, &mut parts, offset, rustix::io::ReadWriteFlags::NOWAIT) == Ok(length)
}

/// Tells the system that a range will be read.
#[cfg(target_os = "linux")]
pub fn announce(file: &File, offset: u64, length: usize) {
    // Advice: a system that does not take it reads later, no differently.
    let _ = rustix::fs::fadvise(
        file,
        offset,
        std::num::NonZeroU64::new(length as u64),
        rustix::fs::Advice::WillNeed,
    );
}

/// Only Linux says what its page cache holds.
#[cfg(not(target_os = "linux"))]
pub fn read_cached(_file: &File, _bytes: &mut [u8], _offset: u64) -> bool {
    false
}

/// Only Linux takes advice on a range.
#[cfg(not(target_os = "linux"))]
pub fn announce(_file: &File, _offset: u64, _length: usize) {}

/// Fills `bytes`, waiting for the disk.
pub fn read(file: &File, bytes: &mut [u8], offset: u64, place: Place<'_>) -> Result<()> {
    file.read_exact_at(bytes, offset)
        .map_err(|error| place.unreadable(&error))
}
