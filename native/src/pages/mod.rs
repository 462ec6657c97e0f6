//! Single pages of Parquet files: their locations and their rows.
//!
//!     scan.rs       a file's pages, from its footer and offset indexes (the caller reads bytes)
//!     index.rs      the pages of all files as flat numbers (layout.rs); row or page -> file, row group, bytes
//!     decode.rs     one page from its bytes to Arrow
//!     loader.rs     the bytes of pages, with exact reads that keep the disk or the store busy
//!     cache.rs      pages that are likely to be requested again, within a budget
//!     gather.rs     rows of several indexes in one array, in the requested order
//!
//! Youmu's design (Zhong et al., 2025): no file is converted, and no row group is read for one of its rows.

use pyo3::prelude::*;

mod body;
mod build;
mod cache;
mod checked_entries;
mod codec;
mod content;
#[cfg(test)]
mod crate_files;
mod decode;
mod delta;
mod entries;
mod error;
mod files;
mod footer;
mod gather;
mod guard;
mod header;
mod header_scan;
mod index;
mod layout;
mod loader;
mod locations;
mod one_page;
mod python;
mod read;
mod reader;
mod rows;
mod runs;
mod scan;
mod schema;
mod space;
mod straight;
mod thrift;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    python::register(module)
}
