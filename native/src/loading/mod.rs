//! Kernels of `blender/loading`: which bin of a loading plan holds each row of a step.
//!
//!     packed.rs           a number above an index in one integer
//!     order.rs            rows by descending cost
//!     tournament.rs       the bin of the least load
//!     greedy.rs           longest processing time first, with equal counts and a memory limit
//!     karmarkar_karp.rs   the largest differencing method
//!     groups.rs           either method for each group of rows, on several threads
//!     python.rs           both methods for Python, and what they refuse (error.rs)
//!
//! Costs are integers, because sums of floats depend on their order. Ties go to the lower row, then to the lower
//! bin, so a plan is the same on any machine and any number of threads.

use pyo3::prelude::*;

mod error;
mod greedy;
mod groups;
mod karmarkar_karp;
#[cfg(test)]
mod oracle;
mod order;
mod packed;
mod python;
mod tournament;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    python::register(module)
}
