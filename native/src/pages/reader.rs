//! The rows and pages of an index: what a page is, and the dictionaries that pages need, within a bound.

use std::collections::VecDeque;
use std::fs::File;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::ArrayRef;
use arrow_schema::DataType;

use super::cache::PageCache;
use super::decode::{Decoder, Dictionary, PageOf};
use super::error::{PageError, Place, Result};
use super::files::{Files, read};
use super::footer::Leaf;
use super::gather::{Part, gather};
use super::index::{ChunkEntry, Index, PageEntry};
use super::loader::{Fetch, Loader, PageAt};
use super::straight::Alike;

const MOST_DICTIONARY_BYTES: usize = 16 << 20;
const MOST_DICTIONARIES: usize = 64;
const MOST_HELD: usize = 64 << 20; // of pages that are wanted for several rows of one call
const MOST_KEPT: usize = 4 << 20; // a buffer that has grown beyond is not kept

pub struct Reader {
    /// Its number among all of the process.
    pub id: u64,
    pub index: Index,
    /// How the bytes of files are got that are not local.
    pub fetch: Option<Box<Fetch>>,
    leaves: Vec<Leaf>,
    files: Files,
    idle: Mutex<Vec<Worker>>,
    dictionaries: Mutex<VecDeque<(usize, Dictionary)>>,
    pages_read: AtomicU64,
    bytes_read: AtomicU64,
}

/// What a thread decodes with, kept from one call to the next.
#[derive(Default)]
pub struct Worker {
    pub decoder: Decoder,
    pub buffer: Vec<u8>,
    pub alike: Alike,
}

impl Worker {
    /// So many bytes of its buffer.
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
            dictionaries: Mutex::default(),
            pages_read: AtomicU64::new(0),
            bytes_read: AtomicU64::new(0),
        })
    }

    /// The column as its pages are decoded; nothing where there is no file.
    pub fn leaf(&self) -> Option<&Leaf> {
        self.leaves.first()
    }

    /// The Arrow type of a row.
    pub fn kind(&self) -> DataType {
        self.leaf()
            .map_or(DataType::Null, |leaf| leaf.field.data_type().clone())
    }

    /// The page that holds a row, and its number.
    pub fn page_of_row(&self, row: u64) -> Result<(u64, PageEntry)> {
        self.index.page_of_row(row)?.ok_or_else(|| {
            PageError::Beyond(format!(
                "There is no row {row}: the index has {}.",
                self.index.rows()
            ))
        })
    }

    /// Pages and bytes read so far, dictionaries included.
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
        found.ok_or_else(|| PageError::Corrupt("The page index lacks a column chunk. Build it anew.".into()))
    }

    /// What the decoder has to know of a page.
    pub fn described(&self, page: &PageEntry) -> Result<(PageOf<'_>, &Leaf, ChunkEntry)> {
        let chunk = self.chunk(page)?;
        let found = self
            .index
            .file(chunk.file)
            .and_then(|file| Some((file, self.leaves.get(file.leaf)?)));
        let (file, leaf) =
            found.ok_or_else(|| PageError::Corrupt("The page index lacks a file. Build it anew.".into()))?;
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

    /// Each page whole.
    pub fn read_pages(&self, numbers: &[u64]) -> Result<Vec<ArrayRef>> {
        let pages = numbers
            .iter()
            .map(|&number| {
                let entry = self.page(number)?;
                Ok(PageAt {
                    reader: self,
                    number,
                    entry,
                })
            })
            .collect::<Result<Vec<_>>>()?;
        let (mut loader, mut worker) = (Loader::default(), self.worker());
        loader.fetch(&pages, 0..pages.len())?;
        let mut arrays = Vec::with_capacity(pages.len());
        for (number, page) in pages.iter().enumerate() {
            let (of, leaf, chunk) = page.described()?;
            loader.read(&pages, number, worker.room(page.entry.size))?;
            let bytes = &worker.buffer[..page.entry.size];
            let dictionary = || self.dictionary(of, leaf, chunk, page.entry.chunk);
            arrays.push(worker.decoder.page(of, leaf, bytes, dictionary)?);
        }
        self.rests(worker);
        Ok(arrays)
    }

    /// One array with the rows in the order asked for; a row may be asked for more than once.
    pub fn read_rows(&self, rows: Vec<u64>) -> Result<ArrayRef> {
        let n = rows.len();
        let part = Part {
            reader: self,
            rows,
            positions: (0..n as u64).collect(),
            again: false,
        };
        gather(&self.kind(), n, &[part], &PageCache::new(MOST_HELD))
    }

    /// A worker that rests, or a new one.
    pub fn worker(&self) -> Worker {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.pop().unwrap_or_default()
    }

    /// Lets a worker rest.
    pub fn rests(&self, worker: Worker) {
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
            entry.ok_or_else(|| PageError::Corrupt("The page index lacks a file. Build it anew.".into()))?;
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

    /// The dictionary of a page's column chunk, kept for the pages to come.
    pub fn dictionary(
        &self,
        of: PageOf<'_>,
        leaf: &Leaf,
        chunk: ChunkEntry,
        number: usize,
    ) -> Result<Option<Dictionary>> {
        let lock = || self.dictionaries.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, kept)) = lock().iter().find(|it| it.0 == number) {
            return Ok(Some(kept.clone()));
        }
        let (begin, end) = chunk.dictionary;
        let size = end.saturating_sub(begin) as usize;
        if size == 0 || self.index.file(chunk.file).is_none_or(|entry| end > entry.bytes) {
            return Ok(None);
        }
        let bytes = self.range(of.place, chunk, begin..end)?;
        self.count(1, size);
        let made = Decoder::default().dictionary(of, leaf, &bytes)?;
        let mut kept = lock();
        kept.push_front((number, made.clone()));
        while kept.len() > MOST_DICTIONARIES
            || kept.iter().map(|it| it.1.size()).sum::<usize>() > MOST_DICTIONARY_BYTES
        {
            kept.pop_back();
        }
        Ok(Some(made))
    }
}
