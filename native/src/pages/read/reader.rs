//! An open index with its files: descriptions of pages, and their dictionaries.

use std::fs::File;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_schema::DataType;
use bytes::Bytes;

use super::cache::{Key, PageCache};
use super::files::{Files, read};
use crate::pages::decode::content::Content;
use crate::pages::decode::decoder::{Decoder, Dictionary, PageOf};
use crate::pages::decode::single_value::LengthPredictor;
use crate::pages::error::{PageError, Place, Result};
use crate::pages::format::footer::Leaf;
use crate::pages::index::entries::{ChunkEntry, PageEntry};
use crate::pages::index::page_index::Index;

/// Reads byte ranges of files that are not local, in their order: (path, ranges) in, bytes out.
pub type Fetch = dyn Fn(&[(&str, Vec<Range<u64>>)]) -> Result<Vec<Vec<Bytes>>> + Send + Sync;

const MOST_DICTIONARY_BYTES: usize = 16 << 20; // without a cache of the caller's
const MOST_KEPT: usize = 4 << 20; // larger buffers are freed

pub struct Reader {
    /// Its number in the process.
    pub id: u64,
    pub index: Index,
    /// Reads files that are not local; `None` for local ones.
    pub fetch: Option<Box<Fetch>>,
    leaves: Vec<Leaf>,
    files: Files,
    idle: Mutex<Vec<Worker>>,
    /// Of callers without a cache.
    dictionaries: PageCache,
    pages_read: AtomicU64,
    bytes_read: AtomicU64,
}

/// The decoder and buffers of one thread, kept between calls.
#[derive(Default)]
pub struct Worker {
    pub decoder: Decoder,
    pub buffer: Vec<u8>,
    pub length_predictor: LengthPredictor,
}

impl Worker {
    /// The first `length` bytes of its buffer.
    pub fn room(&mut self, length: usize) -> &mut [u8] {
        if self.buffer.len() < length {
            self.buffer.resize(length, 0);
        }
        &mut self.buffer[..length]
    }
}

impl Reader {
    pub fn new(index: Index, fetch: Option<Box<Fetch>>) -> Result<Self> {
        let column = index.column();
        let place = Place {
            file: "the page index",
            column,
        };
        let leaves = (0..index.n_leaves())
            .map(|number| Leaf::open(place, index.leaf(number)))
            .collect::<Result<_>>()?;
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Ok(Self {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            fetch,
            leaves,
            index,
            files: Files::default(),
            idle: Mutex::default(),
            dictionaries: PageCache::new(MOST_DICTIONARY_BYTES),
            pages_read: AtomicU64::new(0),
            bytes_read: AtomicU64::new(0),
        })
    }

    /// The column's leaf; `None` for an index without files.
    pub fn leaf(&self) -> Option<&Leaf> {
        self.leaves.first()
    }

    /// The Arrow type of a row.
    pub fn kind(&self) -> DataType {
        self.leaf()
            .map_or(DataType::Null, |leaf| leaf.field.data_type().clone())
    }

    /// The number of the page that holds a row, and the page.
    pub fn page_of_row(&self, row: u64) -> Result<(u64, PageEntry)> {
        self.index.page_of_row(row)?.ok_or_else(|| {
            PageError::Beyond(format!(
                "There is no row {row}: the index has {}.",
                self.index.rows()
            ))
        })
    }

    /// Pages and bytes read so far, including dictionaries.
    pub fn read_so_far(&self) -> (u64, u64) {
        (
            self.pages_read.load(Ordering::Relaxed),
            self.bytes_read.load(Ordering::Relaxed),
        )
    }

    pub fn page(&self, number: u64) -> Result<PageEntry> {
        let found = self.index.page(number)?;
        found.ok_or_else(|| {
            PageError::Beyond(format!(
                "There is no page {number}: the index has {}.",
                self.index.pages()
            ))
        })
    }

    fn chunk(&self, page: &PageEntry) -> Result<ChunkEntry> {
        let found = self.index.chunk(page.chunk);
        found.ok_or_else(|| PageError::Corrupt("The page index lacks a column chunk. Build it again.".into()))
    }

    /// The file, column and entries of a page, for the decoder.
    pub fn described(&self, page: &PageEntry) -> Result<(PageOf<'_>, &Leaf, ChunkEntry)> {
        let chunk = self.chunk(page)?;
        let found = self
            .index
            .file(chunk.file)
            .and_then(|file| Some((file, self.leaves.get(file.leaf)?)));
        let (file, leaf) =
            found.ok_or_else(|| PageError::Corrupt("The page index lacks a file. Build it again.".into()))?;
        let place = Place {
            file: file.path,
            column: self.index.column(),
        };
        let of = PageOf {
            place,
            row_group: chunk.row_group,
            page: page.page,
            rows: page.rows,
            codec: chunk.codec,
        };
        if page
            .offset
            .checked_add(page.size as u64)
            .is_none_or(|end| end > file.bytes)
        {
            return Err(of
                .place
                .corrupt_page(of.row_group, of.page, "its index places it outside the file"));
        }
        Ok((of, leaf, chunk))
    }

    /// An idle worker, or a new one.
    pub fn take_worker(&self) -> Worker {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.pop().unwrap_or_default()
    }

    /// Keeps a worker for the next call.
    pub fn keep_worker(&self, worker: Worker) {
        if worker.buffer.len() <= MOST_KEPT && worker.decoder.size() <= MOST_KEPT {
            self.idle
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(worker);
        }
    }

    pub fn open(&self, chunk: ChunkEntry, place: Place<'_>) -> Result<Arc<File>> {
        let entry = self.index.file(chunk.file);
        let entry =
            entry.ok_or_else(|| PageError::Corrupt("The page index lacks a file. Build it again.".into()))?;
        self.files.get(chunk.file, entry, place)
    }

    fn range(&self, place: Place<'_>, chunk: ChunkEntry, range: Range<u64>) -> Result<Vec<u8>> {
        if let Some(fetch) = &self.fetch {
            let found = fetch(&[(place.file, vec![range])])?;
            return Ok(found.into_iter().flatten().next().unwrap_or_default().to_vec());
        }
        let mut bytes = vec![0; (range.end - range.start) as usize];
        read(&*self.open(chunk, place)?, &mut bytes, range.start, place)?;
        Ok(bytes)
    }

    pub fn count(&self, pages: usize, bytes: usize) {
        self.pages_read.fetch_add(pages as u64, Ordering::Relaxed);
        self.bytes_read.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// The dictionary of column chunk `number`, in `cache` for the next pages, or without one in a cache of the index.
    pub fn dictionary(
        &self,
        of: PageOf<'_>,
        leaf: &Leaf,
        chunk: ChunkEntry,
        number: usize,
        cache: Option<&PageCache>,
    ) -> Result<Option<Dictionary>> {
        let (begin, end) = chunk.dictionary;
        let size = end.saturating_sub(begin) as usize;
        if size == 0 || self.index.file(chunk.file).is_none_or(|entry| end > entry.bytes) {
            return Ok(None);
        }
        let cache = cache.unwrap_or(&self.dictionaries);
        let content = cache.get(Key::Dictionary(self.id, number), 0, || {
            let bytes = self.range(of.place, chunk, begin..end)?;
            self.count(1, size);
            let dictionary = Decoder::default().dictionary(of, leaf, &bytes)?;
            Ok(Content::Dictionary(dictionary))
        })?;
        Ok(match &*content {
            Content::Dictionary(dictionary) => Some(dictionary.clone()),
            _ => None,
        })
    }
}
