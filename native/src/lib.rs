//! `factory._native`: the hot kernels of the Model Factory.
//!
//! A folder holds the kernels of one stage: pure functions over slices, tests beside them, and below them
//! thin Python functions that borrow Arrow buffers and release the interpreter lock. Nothing here opens a
//! socket or knows a setting, and only `pages` reads files, which its caller names. `factory/_native.pyi`
//! documents each function.
//!
//! A table's code version includes the source hashes of the kernels that made it (`build.rs`). A folder
//! exposes only `register`, and other folders cannot call into it, so a folder's hash covers everything that
//! its kernels run.

use pyo3::prelude::*;
use pyo3::types::PyDict;

mod blend;
mod dedup;
mod depsort;
mod filters;
mod lake;
mod loading;
mod models;
mod packing;
mod pages;

type Register = fn(&Bound<'_, PyModule>) -> PyResult<()>;

const STAGES: [(&str, Register); 9] = [
    (env!("FACTORY_SOURCES_BLEND"), blend::register),
    (env!("FACTORY_SOURCES_DEDUP"), dedup::register),
    (env!("FACTORY_SOURCES_DEPSORT"), depsort::register),
    (env!("FACTORY_SOURCES_FILTERS"), filters::register),
    (env!("FACTORY_SOURCES_LAKE"), lake::register),
    (env!("FACTORY_SOURCES_LOADING"), loading::register),
    (env!("FACTORY_SOURCES_MODELS"), models::register),
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
