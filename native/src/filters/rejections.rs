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

#[cfg(test)]
mod tests {
    use arrow_array::{ArrayRef, Int32Array};

    use super::*;

    fn values(columns: Vec<(&str, Vec<Option<f64>>)>) -> RecordBatch {
        let arrays = columns
            .into_iter()
            .map(|(name, column)| (name, Arc::new(Float64Array::from(column)) as ArrayRef));
        RecordBatch::try_from_iter(arrays).unwrap()
    }

    fn limit(rule: &str, low: f64, high: f64) -> Limit {
        (rule.into(), low, high)
    }

    #[test]
    fn a_row_lists_the_rules_it_fails_in_their_order() {
        let batch = values(vec![
            ("a", vec![Some(1.0), Some(2.0), Some(5.1), None]),
            ("b", vec![Some(0.5), Some(0.0), Some(0.1), Some(-0.0)]),
        ]);
        let limits = [limit("a", 2.0, 5.0), limit("b", f64::NEG_INFINITY, 0.0)];
        let found = rejections(&batch, &limits).unwrap();
        let entries = found.values().as_struct();
        let (rules, values, thresholds) = (entries.column(0), entries.column(1), entries.column(2));
        assert_eq!(found.value_offsets(), [0, 2, 2, 4, 4]);
        assert_eq!(
            rules.as_string::<i32>(),
            &StringArray::from(vec!["a", "b", "a", "b"])
        );
        let numbers = |it: Vec<f64>| Float64Array::from(it);
        assert_eq!(
            values.as_primitive::<Float64Type>(),
            &numbers(vec![1.0, 0.5, 5.1, 0.1])
        );
        assert_eq!(
            thresholds.as_primitive::<Float64Type>(),
            &numbers(vec![2.0, 0.0, 5.0, 0.0])
        );
    }

    #[test]
    fn a_wrong_type_and_a_wrong_number_of_columns_are_errors() {
        let whole: ArrayRef = Arc::new(Int32Array::from(vec![1]));
        let batch = RecordBatch::try_from_iter([("a", whole)]).unwrap();
        let error = rejections(&batch, &[limit("a", 0.0, 1.0)]).unwrap_err();
        assert!(error.contains("`a` are of type Int32"), "{error}");
        assert!(
            rejections(&batch, &[])
                .unwrap_err()
                .contains("1 columns of values and 0 limits")
        );
    }
}
