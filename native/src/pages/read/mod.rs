//! Rows of opened indexes: files, the bytes of pages, the cache, and rows in the requested order.

pub mod cache;
pub mod files;
pub mod gather;
mod loader;
pub mod one_index;
pub mod reader;
