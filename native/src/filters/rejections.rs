//! Every rule that a document fails, with its value and the bound it violates.
//!
//! A rule allows the values between two bounds, both included; a missing value passes. Documents are rows and
//! rules are columns; the result has one list per row, in the order of the rules.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{Array, Float64Array, ListArray, RecordBatch, StringArray, StructArray};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_data::ArrayData;
use arrow_pyarrow::PyArrowType;
use arrow_schema::{DataType, Field, Fields};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// A rule's name, and the lowest and the highest value it allows; infinite where there is no bound.
type Limit = (String, f64, f64);

/// The bound that `value` violates, if any.
fn violated(value: f64, low: f64, high: f64) -> Option<f64> {
    if value < low {
        Some(low)
    } else {
        (value > high).then_some(high)
    }
}

/// A list of (rule, value, threshold) for every row of `values`, whose columns belong to `limits` in order.
fn rejections(values: &RecordBatch, limits: &[Limit]) -> Result<ListArray, String> {
    if values.num_columns() != limits.len() {
        return Err(format!(
            "There are {} columns of values and {} limits. Pass one column per limit.",
            values.num_columns(),
            limits.len()
        ));
    }
    let columns = values
        .columns()
        .iter()
        .zip(limits)
        .map(|(column, (rule, ..))| {
            column.as_primitive_opt::<Float64Type>().ok_or_else(|| {
                format!(
                    "The values of `{rule}` are of type {}. Cast them to float64.",
                    column.data_type()
                )
            })
        })
        .collect::<Result<Vec<_>, _>>()?;
    let (mut rules, mut found, mut thresholds) = (Vec::new(), Vec::new(), Vec::new());
    let mut offsets = vec![0i32];
    for row in 0..values.num_rows() {
        for ((rule, low, high), column) in limits.iter().zip(&columns) {
            let value = column.value(row);
            if let Some(threshold) = violated(value, *low, *high).filter(|_| column.is_valid(row)) {
                rules.push(rule.as_str());
                found.push(value);
                thresholds.push(threshold);
            }
        }
        let end = i32::try_from(found.len())
            .map_err(|_| "A batch has more than two billion rejections. Pass smaller batches.")?;
        offsets.push(end);
    }
    let fields = Fields::from(vec![
        Field::new("rule", DataType::Utf8, true),
        Field::new("value", DataType::Float64, true),
        Field::new("threshold", DataType::Float64, true),
    ]);
    let entries = StructArray::try_new(
        fields.clone(),
        vec![
            Arc::new(StringArray::from_iter_values(rules)),
            Arc::new(Float64Array::from(found)),
            Arc::new(Float64Array::from(thresholds)),
        ],
        None,
    )
    .map_err(|error| error.to_string())?;
    let element = Arc::new(Field::new("element", DataType::Struct(fields), true));
    let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
    ListArray::try_new(element, offsets, Arc::new(entries), None).map_err(|error| error.to_string())
}

#[pyfunction]
#[pyo3(name = "rejections")]
fn rejections_py(
    py: Python<'_>,
    values: PyArrowType<RecordBatch>,
    limits: Vec<Limit>,
) -> PyResult<PyArrowType<ArrayData>> {
    py.detach(|| rejections(&values.0, &limits))
        .map(|found| PyArrowType(found.into_data()))
        .map_err(PyValueError::new_err)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(rejections_py, module)?)
}
