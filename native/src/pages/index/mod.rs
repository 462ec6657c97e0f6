//! The index of a column's pages over all files: its layout in bytes, and how a scan of each file fills it.

mod checked_entries;
pub mod entries;
pub mod layout;
pub mod page_index;
mod runs;
pub mod scan;
