//! Signatures of packed bags, and of bags with given weights, as columns.

use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, Int64Builder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, BinaryArray, RecordBatch, make_array};
use arrow_data::ArrayData;
use arrow_pyarrow::PyArrowType;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::signer::{LIGHTEST, Signer};
use crate::dedup::bags::bag::Bag;
use crate::dedup::bags::weights::{Weights, table_bytes};
use crate::dedup::python::{Batch, detached};
use crate::dedup::strings::Binaries;

/// (signature, n_distinct) of each packed bag; an empty bag has no signature.
fn sign_packed(bags: &ArrayRef, weights: &Weights, signer: &mut Signer) -> Result<RecordBatch, String> {
    let packed = Binaries::new(bags, "bags")?;
    let mut signatures = BinaryBuilder::new();
    let mut n_distinct = Int64Builder::with_capacity(bags.len());
    let (mut signature, mut bag_weights) = (Vec::new(), Vec::new());
    for row in 0..bags.len() {
        let bag = Bag::unpacked(packed.get(row).unwrap_or_default())?;
        weights.of(&bag, &mut bag_weights)?;
        signature.clear();
        signer.sign(&bag.tokens, &bag_weights, &mut signature);
        signatures.append_option((!signature.is_empty()).then_some(&signature));
        n_distinct.append_value(bag.tokens.len() as i64);
    }
    RecordBatch::try_from_iter_with_nullable([
        ("signature", Arc::new(signatures.finish()) as ArrayRef, true),
        ("n_distinct", Arc::new(n_distinct.finish()) as ArrayRef, false),
    ])
    .map_err(|error| error.to_string())
}

/// The signature of each bag; bag i is `tokens[offsets[i]..offsets[i + 1]]`.
fn sign_bags(
    tokens: &[i64],
    weights: &[f64],
    offsets: &[i64],
    signer: &mut Signer,
) -> Result<BinaryArray, String> {
    if let Some(weight) = weights
        .iter()
        .find(|weight| !(LIGHTEST..=signer.heaviest).contains(*weight))
    {
        return Err(format!(
            "Weight {weight} is out of range. Scale all weights of the corpus by one factor into {LIGHTEST} to {}.",
            signer.heaviest
        ));
    }
    let tokens: Vec<u64> = tokens.iter().map(|token| token.cast_unsigned()).collect();
    let mut signatures = BinaryBuilder::new();
    let mut signature = Vec::new();
    for pair in offsets.windows(2) {
        let range =
            usize::try_from(pair[0]).unwrap_or(usize::MAX)..usize::try_from(pair[1]).unwrap_or(usize::MAX);
        let (Some(tokens), Some(weights)) = (tokens.get(range.clone()), weights.get(range)) else {
            return Err(format!(
                "Offsets {} to {} are not a range of {} tokens with {} weights.",
                pair[0],
                pair[1],
                tokens.len(),
                weights.len()
            ));
        };
        signature.clear();
        signer.sign(tokens, weights, &mut signature);
        signatures.append_option((!signature.is_empty()).then_some(&signature));
    }
    Ok(signatures.finish())
}

#[pyfunction]
#[pyo3(name = "sign_packed")]
fn sign_packed_py(
    py: Python<'_>,
    bags: PyArrowType<ArrayData>,
    idf: PyArrowType<ArrayData>,
    scheme: &str,
    values: usize,
    value_bits: usize,
    seed: u64,
) -> PyResult<Batch> {
    let bags = make_array(bags.0);
    detached(py, || {
        let mut signer = Signer::new(scheme, values, value_bits, seed)?;
        let idf = table_bytes(idf.0)?;
        sign_packed(&bags, &Weights::new(idf.values())?, &mut signer)
    })
    .map(PyArrowType)
}

#[pyfunction]
#[allow(clippy::too_many_arguments)] // the signature of the Python function
#[pyo3(name = "sign_bags")]
fn sign_bags_py(
    py: Python<'_>,
    tokens: PyArrowType<ArrayData>,
    weights: PyArrowType<ArrayData>,
    offsets: PyArrowType<ArrayData>,
    scheme: &str,
    values: usize,
    value_bits: usize,
    seed: u64,
) -> PyResult<PyArrowType<ArrayData>> {
    let (tokens, weights, offsets) = (make_array(tokens.0), make_array(weights.0), make_array(offsets.0));
    let columns = (
        tokens.as_primitive_opt::<Int64Type>(),
        weights.as_primitive_opt::<Float64Type>(),
        offsets.as_primitive_opt::<Int64Type>(),
    );
    let (Some(tokens), Some(weights), Some(offsets)) = columns else {
        return Err(PyValueError::new_err(
            "Tokens and offsets must be int64 arrays, weights float64. Cast them first.",
        ));
    };
    py.detach(|| {
        let mut signer = Signer::new(scheme, values, value_bits, seed)?;
        sign_bags(tokens.values(), weights.values(), offsets.values(), &mut signer)
    })
    .map(|signatures| PyArrowType(signatures.into_data()))
    .map_err(PyValueError::new_err)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(sign_packed_py, module)?)?;
    module.add_function(wrap_pyfunction!(sign_bags_py, module)?)
}
