//! Single pages of Parquet files: their locations and their rows.
//!
//!     format/   the bytes of a file: footer, schema, offset index, page headers, codecs
//!     index/    the pages of all files as flat numbers; row or page -> file, row group, bytes
//!     decode/   one page from its bytes to Arrow
//!     read/     files, the bytes of pages with exact reads that keep the disk or the store busy, the cache of pages
//!               that are likely to be requested again, and rows of several indexes in one array
//!
//! Each folder uses only those above it, except that `decode` does not use `index`; `build.rs` reads files to make
//! an index of them. Only `read` and `build.rs` do input.
//!
//! Youmu's design (Zhong et al., 2025): no file is converted, and no row group is read for one of its rows.

use pyo3::prelude::*;

mod build;
#[cfg(test)]
mod crate_files;
mod decode;
mod error;
mod format;
mod index;
mod python;
mod read;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    python::register(module)
}
