//! A page index from the scans of its files.

use std::fs::File;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::error::{PageError, Place, Result};
use super::index::entries::ChunkEntry;
use super::index::layout::Parts;
use super::index::scan::FileScan;
use super::read::files::read;
use super::read::reader::Reader;

const THREADS: usize = 8; // reading footers means waiting, not computing
const WINDOW: u64 = 64 << 10; // bytes of page headers per read of a local disk

/// The index of `scans`, in their order; NotImplemented unless the column has one type in all files.
pub fn join<'a>(column: &str, scans: impl IntoIterator<Item = &'a FileScan>) -> Result<Parts> {
    let mut parts = Parts {
        column: column.to_owned(),
        ..Parts::default()
    };
    let mut first = None;
    for scan in scans {
        let place = Place {
            file: &scan.path,
            column,
        };
        let Some((leaf, chunks)) = scan.found() else {
            return Err(place.corrupt("its scan has not ended"));
        };
        let kind = leaf.field.data_type();
        let (first_kind, first_path) = &*first.get_or_insert_with(|| (kind.clone(), scan.path.clone()));
        if first_kind != kind {
            return Err(place.unsupported(
                format!("it is of type {kind}, in file {first_path} of type {first_kind}"),
                "Index files of one type together.",
            ));
        }
        let leaf = parts.leaf(&leaf.bytes);
        for found in chunks {
            parts.runs.append(parts.chunks.len() as u64, &found.runs);
            parts.chunks.push(ChunkEntry {
                file: parts.files.len(),
                row_group: found.row_group,
                codec: found.codec,
                dictionary: found.dictionary.clone().map_or((0, 0), |it| (it.start, it.end)),
            });
        }
        parts.files.push((scan.path.clone(), scan.size, leaf));
    }
    Ok(parts)
}

/// One index over several, in their order; NotImplemented unless they have one column and type.
pub fn join_indexes(readers: &[Reader]) -> Result<Parts> {
    let mut parts = Parts::default();
    for reader in readers {
        let first = &readers[0];
        if (first.kind(), first.index.column()) != (reader.kind(), reader.index.column()) {
            return Err(PageError::Unsupported(format!(
                "Column `{}` of type {} and column `{}` of type {} cannot share an index. Join indexes of one column.",
                first.index.column(),
                first.kind(),
                reader.index.column(),
                reader.kind()
            )));
        }
        reader.index.append_to(&mut parts)?;
        parts.column = reader.index.column().to_owned();
    }
    Ok(parts)
}

/// Scans of local files, several at a time.
pub fn scan_files(paths: &[String], column: &str) -> Result<Vec<FileScan>> {
    let next = AtomicUsize::new(0);
    let found = Mutex::new(Vec::with_capacity(paths.len()));
    thread::scope(|scope| {
        for _ in 0..THREADS.min(paths.len()) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(path) = paths.get(number) else {
                        return;
                    };
                    let scan = scan_file(path, column);
                    if scan.is_err() {
                        next.store(paths.len(), Ordering::Relaxed);
                    }
                    found
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .push((number, scan));
                }
            });
        }
    });
    let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.sort_by_key(|it| it.0);
    found.into_iter().map(|it| it.1).collect()
}

fn scan_file(path: &str, column: &str) -> Result<FileScan> {
    let place = Place { file: path, column };
    let file = File::open(path).map_err(|error| place.unreadable(&error))?;
    let size = file.metadata().map_err(|error| place.unreadable(&error))?.len();
    let mut scan = FileScan::new(path.to_owned(), size, column.to_owned(), WINDOW);
    loop {
        let wanted = scan.wanted();
        if wanted.is_empty() {
            return Ok(scan);
        }
        let mut ranges = Vec::with_capacity(wanted.len());
        for range in wanted {
            if range.end > size {
                return Err(PageError::Corrupt(format!(
                    "File {path} is shorter than its footer says. Restore it."
                )));
            }
            let mut bytes = vec![0; (range.end - range.start) as usize];
            read(&file, &mut bytes, range.start, place)?;
            ranges.push(bytes);
        }
        scan.push(&ranges.iter().map(Vec::as_slice).collect::<Vec<_>>())?;
    }
}
