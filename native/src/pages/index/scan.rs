//! A search for the pages of a column in one file, without input or output.
//!
//!     let mut scan = FileScan::new(path, size, column, window);
//!     while there are ranges in scan.wanted(): read them, and scan.push(their bytes)
//!
//! It requests the end of the file, then the footer and the offset indexes unless these bytes held them, then page
//! headers, a window at a time, of column chunks without an offset index.

use std::ops::Range;

use super::runs::Runs;
use crate::pages::error::{Place, Result};
use crate::pages::format::codec::Codec;
use crate::pages::format::footer::{Chunk, Leaf, TAIL, footer_range, parse};
use crate::pages::format::header_scan::HeaderScan;
use crate::pages::format::locations::{ChunkPages, from_offset_index};

const GUESS: u64 = 64 << 10; // bytes at the end that hold most footers with their offset indexes

enum State {
    End,
    Footer,
    OffsetIndexes,
    Headers(Box<HeaderScan>),
    Done,
}

/// A column chunk with its pages.
pub struct ChunkFound {
    pub row_group: usize,
    pub codec: Codec,
    pub dictionary: Option<Range<u64>>,
    pub runs: Runs,
    /// Least and greatest value, see `Chunk`.
    pub bounds: Option<(i64, i64)>,
}

pub struct FileScan {
    pub path: String,
    pub column: String,
    pub size: u64,
    window: u64,
    state: State,
    /// The last bytes of the file, and their offset.
    tail: Vec<u8>,
    tail_begin: u64,
    leaf: Option<Leaf>,
    indexed: Vec<(Chunk, Range<u64>)>,
    bare: Vec<Chunk>,
    found: Vec<ChunkFound>,
}

impl FileScan {
    /// `window` is the number of bytes to request at a time of a chunk without an offset index.
    pub fn new(path: String, size: u64, column: String, window: u64) -> Self {
        Self {
            path,
            column,
            size,
            window: window.max(1),
            state: State::End,
            tail: Vec::new(),
            tail_begin: size - size.min(GUESS),
            leaf: None,
            indexed: Vec::new(),
            bare: Vec::new(),
            found: Vec::new(),
        }
    }

    /// Byte ranges to push next; empty once all pages are found.
    pub fn wanted(&self) -> Vec<Range<u64>> {
        match &self.state {
            State::End | State::Footer => std::iter::once(self.tail_begin..self.size).collect(),
            State::OffsetIndexes => self.indexed.iter().map(|it| it.1.clone()).collect(),
            State::Headers(scan) => scan.wanted().into_iter().collect(),
            State::Done => Vec::new(),
        }
    }

    /// Takes the bytes of `wanted`, in that order.
    pub fn push(&mut self, ranges: &[&[u8]]) -> Result<()> {
        let (path, column) = (std::mem::take(&mut self.path), std::mem::take(&mut self.column));
        let done = self.push_of(
            Place {
                file: &path,
                column: &column,
            },
            ranges,
        );
        (self.path, self.column) = (path, column);
        done
    }

    fn push_of(&mut self, place: Place<'_>, ranges: &[&[u8]]) -> Result<()> {
        let wanted = self.wanted();
        let lengths = wanted.iter().map(|it| it.end - it.start);
        if !lengths.eq(ranges.iter().map(|it| it.len() as u64)) {
            return Err(place.corrupt("it is shorter than its size, so it was cut short"));
        }
        match &mut self.state {
            State::End | State::Footer => {
                self.tail = ranges.concat();
                self.take_footer(place)
            }
            State::OffsetIndexes => {
                for ((chunk, _), bytes) in self.indexed.drain(..).zip(ranges) {
                    self.found.push(kept(&from_offset_index(place, chunk, bytes)?));
                }
                self.next_headers(place)
            }
            State::Headers(scan) => {
                for bytes in ranges {
                    scan.push(place, bytes)?;
                }
                if scan.wanted().is_none() {
                    self.next_headers(place)?;
                }
                Ok(())
            }
            State::Done => Ok(()),
        }
    }

    fn take_footer(&mut self, place: Place<'_>) -> Result<()> {
        let split = self.tail.len().saturating_sub(TAIL as usize);
        let range = footer_range(place, self.size, &self.tail[split..])?;
        if range.start < self.tail_begin {
            self.tail_begin = range.start;
            self.state = State::Footer;
            return Ok(());
        }
        let begin = (range.start - self.tail_begin) as usize;
        let (leaf, chunks) = parse(place, &self.tail[begin..split], range.start)?;
        self.leaf = Some(leaf);
        for chunk in chunks {
            match chunk.offset_index.clone() {
                _ if chunk.rows == 0 => {}
                None => self.bare.push(chunk),
                Some(range) if range.start < self.tail_begin => self.indexed.push((chunk, range)),
                Some(range) => {
                    let inside =
                        (range.start - self.tail_begin) as usize..(range.end - self.tail_begin) as usize;
                    self.found
                        .push(kept(&from_offset_index(place, chunk, &self.tail[inside])?));
                }
            }
        }
        self.tail = Vec::new();
        self.bare.reverse();
        if self.indexed.is_empty() {
            return self.next_headers(place);
        }
        self.state = State::OffsetIndexes;
        Ok(())
    }

    fn next_headers(&mut self, place: Place<'_>) -> Result<()> {
        let state = std::mem::replace(&mut self.state, State::Done);
        if let State::Headers(scan) = state {
            self.found.push(kept(&scan.finish(place)?));
        }
        if let Some(chunk) = self.bare.pop() {
            let repeated = self.leaf.as_ref().is_some_and(|leaf| leaf.max_repetition > 0);
            self.state = State::Headers(Box::new(HeaderScan::new(chunk, repeated, self.window)));
        } else {
            self.found.sort_by_key(|it| it.row_group);
        }
        Ok(())
    }

    /// The column and its chunks with pages in order of row groups, once `wanted` is empty.
    pub fn found(&self) -> Option<(&Leaf, &[ChunkFound])> {
        let leaf = self.leaf.as_ref().filter(|_| matches!(self.state, State::Done))?;
        Some((leaf, &self.found))
    }
}

/// A chunk's pages as runs, a fraction of their list.
fn kept(found: &ChunkPages) -> ChunkFound {
    ChunkFound {
        row_group: found.chunk.row_group,
        codec: found.chunk.codec,
        dictionary: found.dictionary.clone(),
        runs: Runs::of(found),
        bounds: found.chunk.bounds,
    }
}
