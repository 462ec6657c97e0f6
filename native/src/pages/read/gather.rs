//! Rows of several indexes in one array, each at a position that the caller chooses.
//!
//!     result     0     1     2     3     4
//!     part       a     b     a     a     c        positions: a 0 2 3, b 1, c 4; other positions are null
//!
//! A page is read and decoded once. Pages with several wanted rows, and pages likely to be requested again, go
//! through the cache; a row of another page comes straight from the bytes read. Byte strings are copied once, from
//! the page to their place in the result, or read into that place (`decode/single_value.rs`).

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, new_null_array};
use arrow_schema::DataType;
use arrow_select::interleave::interleave;
use rustc_hash::FxHashMap;

use super::cache::{Key, PageCache};
use super::loader::{Loader, PageAt};
use super::reader::{Reader, Worker};
use crate::pages::decode::content::Content;
use crate::pages::decode::decoder::MISSING_ROW;
use crate::pages::decode::rows::{Misfit, Rows, of_bytes};
use crate::pages::decode::single_value::is_one_value;
use crate::pages::error::{PageError, Result};
use crate::pages::format::codec::Codec;

/// Rows of one index and their positions in the result.
pub struct Part<'a> {
    pub reader: &'a Reader,
    pub rows: Vec<u64>,
    pub positions: Vec<u64>,
    /// Whether their pages are likely to be requested again.
    pub again: bool,
}

const NONE: u32 = u32::MAX;

/// The pages to gather, in order of first use, and the page and row of each position.
struct Plan<'a> {
    pages: Vec<PageAt<'a>>,
    cached: Vec<bool>,
    /// Number of wanted rows of each page.
    wanted: Vec<u32>,
    slots: Vec<(u32, u32)>,
}

/// An array of `n` rows of type `kind`: the type of all parts, or any type of bytes if all parts have one.
///
/// `cache` keeps pages; `dictionaries` keeps dictionaries, or without it each index its own.
pub fn gather(
    kind: &DataType,
    n: usize,
    parts: &[Part<'_>],
    cache: &PageCache,
    dictionaries: Option<&PageCache>,
) -> Result<ArrayRef> {
    if let Some(part) = parts.iter().find(|it| !fits(kind, it.reader)) {
        let found = part.reader.kind();
        return Err(PageError::Unsupported(format!(
            "Column `{}` has type {found}, and the request is for {kind}. Request its own type.",
            part.reader.index.column()
        )));
    }
    let plan = Plan::of(n, parts)?;
    let mut loader = Loader::default();
    let kept = |number: usize| plan.cached[number] && cache.holds(plan.key(number));
    loader.fetch(&plan.pages, (0..plan.pages.len()).filter(|&number| !kept(number)))?;
    let reader = plan.pages.first().map(|page| page.reader);
    let mut gathering = Gathering {
        plan: &plan,
        cache,
        dictionaries,
        loader,
        worker: reader.map(Reader::take_worker).unwrap_or_default(),
    };
    let array = if of_bytes(kind) {
        gathering.bytes(kind)
    } else {
        gathering.arrays(kind)
    };
    if let Some(reader) = reader {
        reader.keep_worker(gathering.worker);
    }
    array
}

fn fits(kind: &DataType, reader: &Reader) -> bool {
    reader.leaf().is_none_or(|leaf| {
        leaf.field.data_type() == kind || (of_bytes(kind) && of_bytes(leaf.field.data_type()))
    })
}

impl<'a> Plan<'a> {
    fn of(n: usize, parts: &[Part<'a>]) -> Result<Self> {
        let mut wanted = vec![(NONE, 0u64); n];
        for (number, part) in parts.iter().enumerate() {
            if part.rows.len() != part.positions.len() {
                return Err(PageError::Beyond(
                    "The numbers of rows and positions differ. Pass one position per row.".into(),
                ));
            }
            for (&row, &position) in part.rows.iter().zip(&part.positions) {
                let place = usize::try_from(position).ok().and_then(|it| wanted.get_mut(it));
                *place.ok_or_else(|| {
                    PageError::Beyond(format!(
                        "There is no position {position}: the result has {n} rows."
                    ))
                })? = (number as u32, row);
            }
        }
        let mut plan = Self {
            pages: Vec::with_capacity(n),
            cached: Vec::with_capacity(n),
            wanted: Vec::with_capacity(n),
            slots: Vec::with_capacity(n),
        };
        let mut known: FxHashMap<(u64, u64), u32> = FxHashMap::default();
        let mut last = vec![NONE; parts.len()]; // the page of each part's last row
        for (number, row) in wanted {
            let Some(part) = parts.get(number as usize) else {
                plan.slots.push((NONE, 0));
                continue;
            };
            let again = plan
                .pages
                .get(last[number as usize] as usize)
                .map(|page| page.entry);
            if let Some(entry) = again.filter(|it| it.holds(row)) {
                let page = last[number as usize];
                plan.cached[page as usize] = true;
                plan.wanted[page as usize] += 1;
                plan.slots.push((page, (row - entry.first_row) as u32));
                continue;
            }
            let (page, entry) = part.reader.page_of_row(row)?;
            let place = *known
                .entry((part.reader.id, page))
                .or_insert(plan.pages.len() as u32);
            if place as usize == plan.pages.len() {
                plan.pages.push(PageAt {
                    reader: part.reader,
                    number: page,
                    entry,
                });
                plan.cached.push(part.again);
                plan.wanted.push(1);
            } else {
                plan.cached[place as usize] = true;
                plan.wanted[place as usize] += 1;
            }
            last[number as usize] = place;
            plan.slots.push((place, (row - entry.first_row) as u32));
        }
        Ok(plan)
    }

    fn key(&self, page: usize) -> Key {
        Key::Page(self.pages[page].reader.id, self.pages[page].number)
    }
}

/// A plan with the cache, loader and worker that read its pages.
struct Gathering<'a> {
    plan: &'a Plan<'a>,
    cache: &'a PageCache,
    dictionaries: Option<&'a PageCache>,
    loader: Loader,
    worker: Worker,
}

impl Gathering<'_> {
    fn content(&mut self, page: usize, taken: u32) -> Result<Arc<Content>> {
        let (plan, cache) = (self.plan, self.cache);
        cache.get(plan.key(page), taken, || self.decoded(page))
    }

    fn decoded(&mut self, page: usize) -> Result<Content> {
        let (pages, worker, dictionaries) = (&self.plan.pages, &mut self.worker, self.dictionaries);
        let at = &pages[page];
        let (of, leaf, chunk) = at.described()?;
        let dictionary = || {
            at.reader
                .dictionary(of, leaf, chunk, at.entry.chunk, dictionaries)
        };
        if of.codec == Codec::Plain {
            let mut bytes = vec![0; at.entry.size]; // the content keeps them
            self.loader
                .read_parts(pages, page, of, chunk, &mut bytes, &mut [])?;
            return worker.decoder.content(of, leaf, Cow::Owned(bytes), dictionary);
        }
        let bytes = worker.room(at.entry.size);
        self.loader.read_parts(pages, page, of, chunk, bytes, &mut [])?;
        let bytes = &worker.buffer[..at.entry.size];
        worker.decoder.content(of, leaf, Cow::Borrowed(bytes), dictionary)
    }

    /// Byte strings, copied in the order of the result.
    fn bytes(&mut self, kind: &DataType) -> Result<ArrayRef> {
        let mut rows = Rows::new(kind.clone());
        let plan = self.plan;
        rows.expect(plan.slots.len());
        for run in plan.slots.chunk_by(|one, next| one.0 == next.0) {
            let number = run[0].0 as usize;
            if run[0].0 == NONE {
                run.iter().for_each(|_| rows.push_null());
            } else if plan.cached[number] {
                let content = self.content(number, run.len() as u32)?;
                for &(_, row) in run {
                    content
                        .append(row as usize, &mut rows)
                        .ok_or_else(|| self.corrupt(number, MISSING_ROW))?;
                }
            } else {
                self.append(number, run[0].1, &mut rows)?;
            }
        }
        rows.finish().map_err(|misfit| self.misfit(kind, misfit))
    }

    /// The only wanted row of a page.
    fn append(&mut self, page: usize, row: u32, rows: &mut Rows) -> Result<()> {
        let (pages, worker, dictionaries) = (&self.plan.pages, &mut self.worker, self.dictionaries);
        let at = &pages[page];
        let (of, leaf, chunk) = at.described()?;
        let size = at.entry.size;
        let (head, value) = worker.length_predictor.split(of, size);
        let bytes = worker.room(size);
        let taken = rows.push_filled(value, |space| {
            self.loader
                .read_parts(pages, page, of, chunk, &mut bytes[..head], space)?;
            let is_value = value > 0 && is_one_value(of, leaf, &bytes[..head], space);
            if !is_value {
                bytes[head..].copy_from_slice(space);
            }
            Ok(is_value)
        })?;
        if taken {
            return Ok(());
        }
        let before = rows.n_bytes();
        let dictionary = || {
            at.reader
                .dictionary(of, leaf, chunk, at.entry.chunk, dictionaries)
        };
        let bytes = &worker.buffer[..size];
        worker.decoder.append(of, leaf, bytes, row, dictionary, rows)?;
        worker
            .length_predictor
            .record(of, size, rows.n_bytes().saturating_sub(before));
        Ok(())
    }

    /// Rows of any other type, taken from the arrays of their pages.
    fn arrays(&mut self, kind: &DataType) -> Result<ArrayRef> {
        let plan = self.plan;
        let mut arrays = Vec::with_capacity(plan.pages.len() + 1);
        for page in 0..plan.pages.len() {
            let content = if plan.cached[page] {
                self.content(page, plan.wanted[page])?
            } else {
                Arc::new(self.decoded(page)?)
            };
            match &*content {
                Content::Array(array) => arrays.push(Arc::clone(array)),
                _ => return Err(self.corrupt(page, "it holds bytes")),
            }
        }
        let nothing = arrays.len();
        arrays.push(new_null_array(kind, 1));
        let places: Vec<(usize, usize)> = plan
            .slots
            .iter()
            .map(|&(page, row)| {
                if page == NONE {
                    (nothing, 0)
                } else {
                    (page as usize, row as usize)
                }
            })
            .collect();
        let without_nulls = !places.iter().any(|it| it.0 == nothing);
        if let ([one], true) = (&arrays[..nothing], without_nulls)
            && places.len() == one.len()
            && places.iter().enumerate().all(|(number, it)| it.1 == number)
        {
            return Ok(Arc::clone(one));
        }
        let arrays: Vec<&dyn Array> = arrays.iter().map(AsRef::as_ref).collect();
        interleave(&arrays, &places)
            .map_err(|error| PageError::Corrupt(format!("Rows of a column do not fit together: {error}.")))
    }

    fn corrupt(&self, page: usize, what: &str) -> PageError {
        match self.plan.pages[page].described() {
            Ok((of, ..)) => of.place.corrupt_page(of.row_group, of.page, what),
            Err(error) => error,
        }
    }

    /// The error for rows that do not fit `kind`; names the page whose value is not UTF-8.
    fn misfit(&mut self, kind: &DataType, misfit: Misfit) -> PageError {
        if matches!(misfit, Misfit::TooLong) {
            return PageError::Beyond(format!(
                "The values of {} rows take more than 2 GiB, too much for one array of {kind}. Request fewer rows \
                 at a time.",
                self.plan.slots.len()
            ));
        }
        for &(page, row) in self.plan.slots.iter().filter(|slot| slot.0 != NONE) {
            let Ok(content) = self.content(page as usize, 0) else {
                continue;
            };
            let value = content.value(row as usize).flatten();
            if value.is_some_and(|value| str::from_utf8(value).is_err()) {
                return self.corrupt(page as usize, &misfit.to_string());
            }
        }
        PageError::Corrupt(format!(
            "The rows do not form an array of {kind}: {misfit}. Read them again."
        ))
    }
}
