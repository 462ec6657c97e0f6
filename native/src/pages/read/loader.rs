//! The bytes of a list of pages, of local files or of a store.
//!
//! Local pages are read one by one, each exactly. After the first one that is not in the system's cache, the loader
//! also announces the next ones, so that the disk works on many at a time without a thread for each. Pages of a
//! store are requested all at once, because every request there takes a round trip.

use std::fs::File;
use std::sync::Arc;

use bytes::Bytes;
use rustc_hash::FxHashMap;

use super::files::{ahead, announce, read, read_cached};
use super::reader::Reader;
use crate::pages::decode::decoder::PageOf;
use crate::pages::error::{PageError, Result};
use crate::pages::format::footer::Leaf;
use crate::pages::index::entries::{ChunkEntry, PageEntry};

/// A page of one of several indexes.
pub struct PageAt<'a> {
    pub reader: &'a Reader,
    pub number: u64,
    pub entry: PageEntry,
}

impl<'a> PageAt<'a> {
    /// Its file, column and entries, for the decoder.
    pub fn described(&self) -> Result<(PageOf<'a>, &'a Leaf, ChunkEntry)> {
        self.reader.described(&self.entry)
    }
}

const MOST_OPENED: usize = 8;

#[derive(Default)]
pub struct Loader {
    waiting: bool,
    announced: usize,
    /// The files read last, by the id of an index and the number of one of its files.
    opened: Vec<((u64, usize), Arc<File>)>,
    fetched: FxHashMap<usize, Bytes>,
}

impl Loader {
    /// Requests the `wanted` numbers of `pages` from stores; leaves local ones for later.
    pub fn fetch(&mut self, pages: &[PageAt<'_>], wanted: impl Iterator<Item = usize>) -> Result<()> {
        let mut by_reader: FxHashMap<u64, Vec<usize>> = FxHashMap::default();
        for number in wanted.filter(|&number| pages[number].reader.fetch.is_some()) {
            by_reader.entry(pages[number].reader.id).or_default().push(number);
        }
        for numbers in by_reader.into_values() {
            let reader = pages[numbers[0]].reader;
            let Some(fetch) = &reader.fetch else { continue };
            let (mut asked, mut of_files) = (Vec::new(), Vec::new());
            let mut places: FxHashMap<usize, usize> = FxHashMap::default();
            for &number in &numbers {
                let (of, _, chunk) = pages[number].described()?;
                let place = *places.entry(chunk.file).or_insert_with(|| {
                    asked.push((of.place.file, Vec::new()));
                    of_files.push(Vec::new());
                    asked.len() - 1
                });
                asked[place].1.push(pages[number].entry.bytes());
                of_files[place].push(number);
            }
            for (numbers, found) in of_files.into_iter().zip(fetch(&asked)?) {
                for (number, bytes) in numbers.into_iter().zip(found) {
                    reader.count(1, bytes.len());
                    self.fetched.insert(number, bytes);
                }
            }
        }
        Ok(())
    }

    /// Fills `bytes` with page `number` of `pages`; callers mostly read in order.
    pub fn read(&mut self, pages: &[PageAt<'_>], number: usize, bytes: &mut [u8]) -> Result<()> {
        let (of, _, chunk) = pages[number].described()?;
        self.read_parts(pages, number, of, chunk, bytes, &mut [])
    }

    /// Fills `head`, then `rest`, with page `number` of `pages`, given its description.
    pub fn read_parts(
        &mut self,
        pages: &[PageAt<'_>],
        number: usize,
        of: PageOf<'_>,
        chunk: ChunkEntry,
        head: &mut [u8],
        rest: &mut [u8],
    ) -> Result<()> {
        let page = &pages[number];
        let length = head.len() + rest.len();
        if page.reader.fetch.is_some() {
            if !self.fetched.contains_key(&number) {
                self.fetch(pages, std::iter::once(number))?;
            }
            let found = self.fetched.remove(&number).unwrap_or_default();
            if found.len() != length {
                return Err(PageError::Corrupt(format!(
                    "File {} is shorter than its footer says. Restore it.",
                    of.place.file
                )));
            }
            let (first, second) = found.split_at(head.len());
            head.copy_from_slice(first);
            rest.copy_from_slice(second);
            return Ok(());
        }
        let file = self.opened(page, chunk, of)?;
        if self.waiting || !read_cached(&file, head, rest, page.entry.offset) {
            self.waiting = true; // the next pages are probably not cached either
            self.announce_from(pages, number)?;
            let behind = page.entry.offset + head.len() as u64;
            read(&file, head, page.entry.offset, of.place)?;
            read(&file, rest, behind, of.place)?;
        }
        page.reader.count(1, length);
        Ok(())
    }

    fn opened(&mut self, page: &PageAt<'_>, chunk: ChunkEntry, of: PageOf<'_>) -> Result<Arc<File>> {
        let key = (page.reader.id, chunk.file);
        if let Some((_, file)) = self.opened.iter().find(|it| it.0 == key) {
            return Ok(Arc::clone(file));
        }
        let file = page.reader.open(chunk, of.place)?;
        if self.opened.len() == MOST_OPENED {
            self.opened.remove(0);
        }
        self.opened.push((key, Arc::clone(&file)));
        Ok(file)
    }

    /// Announces page `number` and the next ones to the system, unless it is the last.
    ///
    /// Page `number` is the first in the disk's queue, so it is copied while the disk reads the others.
    fn announce_from(&mut self, pages: &[PageAt<'_>], number: usize) -> Result<()> {
        let end = pages.len().min(number + ahead(pages[number].entry.size));
        if number + 1 == pages.len() {
            return Ok(());
        }
        for next in pages.get(self.announced.max(number)..end).unwrap_or_default() {
            if next.reader.fetch.is_none() {
                let (of, _, chunk) = next.described()?;
                let file = next.reader.open(chunk, of.place)?;
                announce(&file, next.entry.offset, next.entry.size);
            }
        }
        self.announced = self.announced.max(end);
        Ok(())
    }
}
