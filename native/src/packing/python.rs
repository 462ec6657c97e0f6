//! Python's `best_fit_decreasing` and `fewest_sequences`: from lengths to the sequence of each.

use arrow_array::{Array, UInt32Array, make_array};
use arrow_data::ArrayData;
use arrow_pyarrow::PyArrowType;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::best_fit::{NOT_PLACED, best_fit_decreasing};
use super::exact_fit::fewest_sequences;
use super::pieces::{checked_capacity, checked_lengths, int64};

/// An algorithm from (lengths, capacity) to (sequence of each piece, number of sequences).
type Packing = fn(&[u32], u32) -> (Vec<u32>, u32);

fn sequences_of(lengths: ArrayData, sequence_length: i64, packing: Packing) -> Result<ArrayData, String> {
    let capacity = checked_capacity(sequence_length)?;
    let lengths = checked_lengths(&int64("lengths", lengths)?, capacity)?;
    if let Some(longest) = lengths.iter().find(|&&length| length > u64::from(capacity)) {
        return Err(format!(
            "A piece of {longest} tokens does not fit in a sequence of {capacity}. Split it first."
        ));
    }
    let lengths: Vec<u32> = lengths.into_iter().map(|length| length as u32).collect();
    let (sequences, _) = packing(&lengths, capacity);
    let placed: UInt32Array = sequences
        .iter()
        .map(|&s| (s != NOT_PLACED).then_some(s))
        .collect();
    Ok(make_array(placed.into_data()).to_data())
}

/// `sequences_of` for Python, without the interpreter's lock.
fn detached(
    py: Python<'_>,
    lengths: PyArrowType<ArrayData>,
    sequence_length: i64,
    packing: Packing,
) -> PyResult<PyArrowType<ArrayData>> {
    py.detach(|| sequences_of(lengths.0, sequence_length, packing))
        .map(PyArrowType)
        .map_err(PyValueError::new_err)
}

#[pyfunction]
#[pyo3(name = "best_fit_decreasing")]
fn best_fit_decreasing_py(
    py: Python<'_>,
    lengths: PyArrowType<ArrayData>,
    sequence_length: i64,
) -> PyResult<PyArrowType<ArrayData>> {
    detached(py, lengths, sequence_length, best_fit_decreasing)
}

#[pyfunction]
#[pyo3(name = "fewest_sequences")]
fn fewest_sequences_py(
    py: Python<'_>,
    lengths: PyArrowType<ArrayData>,
    sequence_length: i64,
) -> PyResult<PyArrowType<ArrayData>> {
    detached(py, lengths, sequence_length, fewest_sequences)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(best_fit_decreasing_py, module)?)?;
    module.add_function(wrap_pyfunction!(fewest_sequences_py, module)?)?;
    Ok(())
}
