//! Pages and rows of one index, in the order of the request.

use arrow_array::ArrayRef;

use super::cache::PageCache;
use super::gather::{Part, gather};
use super::loader::{Loader, PageAt};
use super::reader::Reader;
use crate::pages::error::Result;

const MOST_HELD: usize = 64 << 20; // bytes of pages with several requested rows

/// The whole pages `numbers`; `cache` keeps their dictionaries, or without it the index.
pub fn read_pages(reader: &Reader, numbers: &[u64], cache: Option<&PageCache>) -> Result<Vec<ArrayRef>> {
    let pages = numbers
        .iter()
        .map(|&number| {
            let entry = reader.page(number)?;
            Ok(PageAt {
                reader,
                number,
                entry,
            })
        })
        .collect::<Result<Vec<_>>>()?;
    let (mut loader, mut worker) = (Loader::default(), reader.take_worker());
    loader.fetch(&pages, 0..pages.len())?;
    let mut arrays = Vec::with_capacity(pages.len());
    for (number, page) in pages.iter().enumerate() {
        let (of, leaf, chunk) = page.described()?;
        loader.read(&pages, number, worker.room(page.entry.size))?;
        let bytes = &worker.buffer[..page.entry.size];
        let dictionary = || reader.dictionary(of, leaf, chunk, page.entry.chunk, cache);
        arrays.push(worker.decoder.page(of, leaf, bytes, dictionary)?);
    }
    reader.keep_worker(worker);
    Ok(arrays)
}

/// One array of `rows`, which may repeat.
pub fn read_rows(reader: &Reader, rows: Vec<u64>) -> Result<ArrayRef> {
    let n = rows.len();
    let part = Part {
        reader,
        rows,
        positions: (0..n as u64).collect(),
        again: false,
    };
    gather(&reader.kind(), n, &[part], &PageCache::new(MOST_HELD), None)
}
