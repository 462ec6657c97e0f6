//! Rows and pages of local files, through an index.
//!
//! Pages are read one by one in the order asked for, each exactly, into one buffer, and decoded at once; a page
//! of which several rows are asked for is read once. What is held: the result, one page, and dictionaries
//! within a bound.

use std::collections::VecDeque;
use std::fs::File;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{ArrayRef, UInt32Array};
use arrow_select::take::take;

use super::decode::{Decoder, Dictionary, PageOf, Wanted};
use super::error::{PageError, Place, Result};
use super::files::{AHEAD, Files, announce, read, read_cached};
use super::footer::Leaf;
use super::index::{ChunkEntry, Index, PageEntry};
use super::rows::Rows;

const MOST_DICTIONARY_BYTES: usize = 16 << 20;
const MOST_DICTIONARIES: usize = 64;
const MOST_KEPT: usize = 4 << 20; // a buffer that has grown beyond is not kept

pub struct Reader {
    pub index: Index,
    leaves: Vec<Leaf>,
    files: Files,
    idle: Mutex<Vec<Worker>>,
    dictionaries: Mutex<VecDeque<(usize, Dictionary)>>,
    pages_read: AtomicU64,
    bytes_read: AtomicU64,
}

#[derive(Default)]
struct Worker {
    decoder: Decoder,
    buffer: Vec<u8>,
}

/// A page to read and which of the wanted rows it holds.
struct Task {
    page: PageEntry,
    chunk: ChunkEntry,
    wanted: Range<usize>,
}

impl Reader {
    pub fn new(index: Index) -> Result<Self> {
        let column = index.column();
        let place = Place {
            file: "the page index",
            column,
        };
        let leaves = (0..index.n_leaves())
            .map(|number| Leaf::open(place, index.leaf(number)))
            .collect::<Result<_>>()?;
        Ok(Self {
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
        let tasks = numbers
            .iter()
            .map(|&number| {
                let page = self.page(number)?;
                Ok(Task {
                    chunk: self.chunk(&page)?,
                    page,
                    wanted: 0..0,
                })
            })
            .collect::<Result<Vec<_>>>()?;
        let mut arrays = Vec::with_capacity(tasks.len());
        self.each(&tasks, |decoder, task, of, leaf, bytes| {
            let mut rows = Rows::new(leaf.field.data_type().clone());
            rows.expect(of.rows, task.page.size / of.rows.max(1));
            decoder.append(
                of,
                leaf,
                bytes,
                Wanted::All,
                || self.dictionary(of, leaf, task.chunk, task.page.chunk),
                &mut rows,
            )?;
            arrays.push(
                rows.finish()
                    .map_err(|what| of.place.corrupt_page(of.row_group, of.page, what))?,
            );
            Ok(())
        })?;
        Ok(arrays)
    }

    /// One array with the rows in the order asked for; a row may be asked for more than once.
    pub fn read_rows(&self, numbers: &[u64]) -> Result<ArrayRef> {
        let mut sought = Vec::with_capacity(numbers.len()); // page, row in it, position
        let mut pages = Vec::with_capacity(numbers.len());
        for (position, &row) in numbers.iter().enumerate() {
            let page = self.index.page_of_row(row)?.ok_or_else(|| {
                PageError::Beyond(format!(
                    "There is no row {row}: the index has {}.",
                    self.index.rows()
                ))
            })?;
            let entry = self.page(page)?;
            sought.push((page, (row - entry.first_row) as u32, position as u32));
            pages.push(entry);
        }
        let mut sorted = sought.clone();
        sorted.sort_unstable();
        let alone = sorted.windows(2).all(|pair| pair[0].0 != pair[1].0);
        let order = if alone { sought } else { sorted };
        let (mut wanted, mut places, mut tasks) = (
            Vec::new(),
            vec![0; if alone { 0 } else { order.len() }],
            Vec::new(),
        );
        let mut before = None;
        for (page, row, position) in order {
            if before != Some((page, row)) {
                wanted.push(row);
            }
            let same = before.is_some_and(|it| it.0 == page);
            before = Some((page, row));
            match tasks.last_mut() {
                Some(Task { wanted: range, .. }) if same => range.end = wanted.len(),
                _ => {
                    let page = pages[position as usize];
                    tasks.push(Task {
                        chunk: self.chunk(&page)?,
                        page,
                        wanted: wanted.len() - 1..wanted.len(),
                    });
                }
            }
            if !alone {
                places[position as usize] = wanted.len() as u32 - 1;
            }
        }
        let kind = self.leaf().map_or(arrow_schema::DataType::Null, |leaf| {
            leaf.field.data_type().clone()
        });
        let mut rows = Rows::new(kind);
        if let Some(first) = tasks.first() {
            rows.expect(wanted.len(), first.page.size / first.page.rows.max(1));
        }
        self.each(&tasks, |decoder, task, of, leaf, bytes| {
            let wanted = Wanted::Some(&wanted[task.wanted.clone()]);
            decoder.append(
                of,
                leaf,
                bytes,
                wanted,
                || self.dictionary(of, leaf, task.chunk, task.page.chunk),
                &mut rows,
            )
        })?;
        let told =
            |what: String| PageError::Corrupt(format!("Rows of column `{}`: {what}.", self.index.column()));
        let array = rows.finish().map_err(told)?;
        if alone {
            return Ok(array);
        }
        take(&array, &UInt32Array::from(places), None).map_err(|error| told(error.to_string()))
    }

    /// Reads the pages of `tasks` in order and hands each to `visit`.
    fn each(
        &self,
        tasks: &[Task],
        mut visit: impl FnMut(&mut Decoder, &Task, PageOf<'_>, &Leaf, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let mut worker = self
            .idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop()
            .unwrap_or_default();
        let (mut waiting, mut announced) = (false, 0);
        let mut opened: Option<(usize, Arc<File>)> = None;
        for (number, task) in tasks.iter().enumerate() {
            let (of, leaf, chunk) = self.described(&task.page)?;
            let file = match opened.take() {
                Some(same) if same.0 == chunk.file => same.1,
                _ => self.open(chunk, of.place)?,
            };
            if worker.buffer.len() < task.page.size {
                worker.buffer.resize(task.page.size, 0);
            }
            let bytes = &mut worker.buffer[..task.page.size];
            if waiting || !read_cached(&file, bytes, task.page.offset) {
                waiting = true; // what is not cached seldom comes alone
                let end = tasks.len().min(number + AHEAD);
                for next in tasks.get(announced.max(number + 1)..end).unwrap_or_default() {
                    let (of, _, chunk) = self.described(&next.page)?;
                    announce(&*self.open(chunk, of.place)?, next.page.offset, next.page.size);
                }
                announced = end;
                read(&file, bytes, task.page.offset, of.place)?;
            }
            visit(&mut worker.decoder, task, of, leaf, bytes)?;
            opened = Some((chunk.file, file));
        }
        self.count(tasks.len(), tasks.iter().map(|task| task.page.size).sum());
        if worker.buffer.len() <= MOST_KEPT && worker.decoder.size() <= MOST_KEPT {
            self.idle
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(worker);
        }
        Ok(())
    }

    fn open(&self, chunk: ChunkEntry, place: Place<'_>) -> Result<Arc<File>> {
        let entry = self.index.file(chunk.file);
        let entry =
            entry.ok_or_else(|| PageError::Corrupt("The page index lacks a file. Build it anew.".into()))?;
        self.files.get(chunk.file, entry, place)
    }

    fn count(&self, pages: usize, bytes: usize) {
        self.pages_read.fetch_add(pages as u64, Ordering::Relaxed);
        self.bytes_read.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// The dictionary of a page's column chunk, kept for the pages to come.
    fn dictionary(
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
        let file = self.open(chunk, of.place)?;
        let size = end.saturating_sub(begin) as usize;
        if size == 0 || self.index.file(chunk.file).is_none_or(|entry| end > entry.bytes) {
            return Ok(None);
        }
        let mut bytes = vec![0; size];
        read(&file, &mut bytes, begin, of.place)?;
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
