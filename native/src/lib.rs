//! `factory._native`: the hot kernels of the Model Factory.
//!
//! A folder holds the kernels of one stage: pure functions over slices, tests beside them, and below them
//! thin Python functions that borrow Arrow buffers and release the interpreter lock. Nothing here opens a
//! socket or knows a setting, and only `pages` reads files, those it is given. `factory/_native.pyi`
//! documents each function.
//!
//! A table's code version takes in the source hashes of the kernels that made it (`build.rs`). So that a hash
//! covers all that its kernels run, a folder exposes `register` alone, and the others cannot call into it.

use pyo3::prelude::*;
use pyo3::types::PyDict;

mod blend;
mod dedup;
mod depsort;
mod filters;
mod lake;
mod packing;
mod pages;

type Register = fn(&Bound<'_, PyModule>) -> PyResult<()>;

const STAGES: [(&str, Register); 7] = [
    (env!("FACTORY_SOURCES_BLEND"), blend::register),
    (env!("FACTORY_SOURCES_DEDUP"), dedup::register),
    (env!("FACTORY_SOURCES_DEPSORT"), depsort::register),
    (env!("FACTORY_SOURCES_FILTERS"), filters::register),
    (env!("FACTORY_SOURCES_LAKE"), lake::register),
    (env!("FACTORY_SOURCES_PACKING"), packing::register),
    (env!("FACTORY_SOURCES_PAGES"), pages::register),
];

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let hashes = PyDict::new(module.py());
    for (hash, register) in STAGES {
        let earlier = module.index()?.len();
        register(module)?;
        for name in module.index()?.iter().skip(earlier) {
            hashes.set_item(name, hash)?;
        }
    }
    module.add("__source_hashes__", hashes)
}
