//! The text of a C or C++ file as depsort reads it: without comments, as words, and as an outline.
//!
//! Each function is one scan from left to right that never goes back past accepted text, so a megabyte of hostile
//! text takes milliseconds. Bytes above 127 are not letters, as in C itself.

mod bytes;
mod marks;
mod names;
mod outline;
mod prototypes;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

fn dictionary<'py>(py: Python<'py>, counts: &[(Vec<u8>, u64)]) -> PyResult<Bound<'py, PyDict>> {
    let dictionary = PyDict::new(py);
    for (name, count) in counts {
        dictionary.set_item(PyBytes::new(py, name), count)?;
    }
    Ok(dictionary)
}

fn list<'py>(py: Python<'py>, names: &[&[u8]]) -> Vec<Bound<'py, PyBytes>> {
    names.iter().map(|name| PyBytes::new(py, name)).collect()
}

#[pyfunction]
fn c_without_comments<'py>(py: Python<'py>, source: &[u8]) -> Bound<'py, PyBytes> {
    PyBytes::new(py, &py.detach(|| names::without_comments(source)))
}

#[pyfunction]
fn c_words<'py>(py: Python<'py>, text: &[u8]) -> PyResult<Bound<'py, PyDict>> {
    dictionary(py, &py.detach(|| names::words(text)))
}

#[pyfunction]
fn c_declared_names<'py>(py: Python<'py>, text: &[u8]) -> Vec<Bound<'py, PyBytes>> {
    list(py, &py.detach(|| names::declared(text)))
}

#[pyfunction]
fn c_outline<'py>(py: Python<'py>, text: &[u8]) -> Bound<'py, PyBytes> {
    PyBytes::new(py, &py.detach(|| outline::outline(text)))
}

type Functions<'py> = (
    Bound<'py, PyBytes>,
    Bound<'py, PyDict>,
    Bound<'py, PyDict>,
    Vec<Bound<'py, PyBytes>>,
);

#[pyfunction]
fn c_functions<'py>(py: Python<'py>, text: &[u8]) -> PyResult<Functions<'py>> {
    let found = py.detach(|| outline::functions(text));
    let named: Vec<&[u8]> = found.private.iter().map(Vec::as_slice).collect();
    Ok((
        PyBytes::new(py, &found.outline),
        dictionary(py, &found.definitions)?,
        dictionary(py, &found.declarations)?,
        list(py, &named),
    ))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(c_without_comments, module)?)?;
    module.add_function(wrap_pyfunction!(c_words, module)?)?;
    module.add_function(wrap_pyfunction!(c_declared_names, module)?)?;
    module.add_function(wrap_pyfunction!(c_outline, module)?)?;
    module.add_function(wrap_pyfunction!(c_functions, module)?)
}
