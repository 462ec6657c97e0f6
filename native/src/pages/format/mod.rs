//! Parquet's format: footers, schemas, offset indexes, page headers and codecs, without input or output.

pub mod codec;
pub mod footer;
pub mod guard;
pub mod header;
pub mod header_scan;
pub mod locations;
mod schema;
pub mod thrift;
