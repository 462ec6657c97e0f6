//! Pages from bytes to rows of an Arrow array, without input or output.

mod body;
pub mod content;
pub mod decoder;
mod delta;
mod one_page;
pub mod rows;
pub mod single_value;
mod space;
