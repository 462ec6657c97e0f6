//! Which n-grams of a given set does a text hold, and where?
//!
//! The hash of an n-gram is a polynomial of the hashes of its tokens, so that it rolls over a text, mixed so that
//! all bits depend on all tokens. A text of fewer than n tokens is one n-gram. `factory/models/ngram_probe.py` is
//! the readable definition.

use std::sync::Arc;

use arrow_array::builder::{Int64Builder, ListBuilder, StructBuilder, UInt64Builder};
use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, ArrayRef, make_array};
use arrow_data::ArrayData;
use arrow_pyarrow::PyArrowType;
use arrow_schema::{DataType, Field, Fields};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rustc_hash::FxHashSet;

use super::texts::strings;
use super::tokens::{Token, mixed, tokens};

const BASE: u64 = 0x9e37_79b9_7f4a_7c15;
const MOST_TOKENS: usize = 1_000;

/// Calls `visit` with the hash of each n-gram of `tokens`, and its first and last token.
fn for_each_ngram(tokens: &[Token], n: usize, mut visit: impl FnMut(u64, &Token, &Token)) {
    let n = n.min(tokens.len());
    if n == 0 {
        return;
    }
    let highest = (1..n).fold(1u64, |power, _| power.wrapping_mul(BASE));
    let mut sum = 0u64;
    for (at, token) in tokens.iter().enumerate() {
        if at >= n {
            sum = sum.wrapping_sub(tokens[at - n].hash.wrapping_mul(highest));
        }
        sum = sum.wrapping_mul(BASE).wrapping_add(token.hash);
        if at + 1 >= n {
            visit(mixed(sum ^ n as u64), &tokens[at + 1 - n], token);
        }
    }
}

fn require_length(n: usize) -> Result<(), String> {
    if (1..=MOST_TOKENS).contains(&n) {
        Ok(())
    } else {
        Err(format!(
            "An n-gram of {n} tokens is not possible. Use 1 to {MOST_TOKENS}."
        ))
    }
}

/// A set of n-grams, by their hashes.
#[pyclass(frozen, module = "factory._native")]
struct NgramProbe {
    hashes: FxHashSet<u64>,
    n: usize,
}

#[pymethods]
impl NgramProbe {
    #[new]
    fn new(hashes: PyArrowType<ArrayData>, n: usize) -> PyResult<Self> {
        require_length(n).map_err(PyValueError::new_err)?;
        let hashes = make_array(hashes.0);
        let column = hashes
            .as_primitive_opt::<UInt64Type>()
            .ok_or_else(|| PyValueError::new_err("The hashes are no uint64. Cast them."))?;
        Ok(Self {
            hashes: column.iter().flatten().collect(),
            n,
        })
    }

    /// A list of (hash, begin, end) for each text.
    fn places(&self, py: Python<'_>, texts: PyArrowType<ArrayData>) -> PyResult<PyArrowType<ArrayData>> {
        py.detach(|| {
            let texts = make_array(texts.0);
            let fields = Fields::from(vec![
                Field::new("hash", DataType::UInt64, true),
                Field::new("begin", DataType::Int64, true),
                Field::new("end", DataType::Int64, true),
            ]);
            let mut lists = ListBuilder::new(StructBuilder::from_fields(fields, 0));
            for text in strings(&texts)? {
                if let Some(text) = text {
                    for_each_ngram(&tokens(text), self.n, |hash, first, last| {
                        if self.hashes.contains(&hash) {
                            append(lists.values(), hash, first.begin, last.end);
                        }
                    });
                }
                lists.append(text.is_some());
            }
            Ok(lists.finish())
        })
        .map(|lists| PyArrowType(lists.into_data()))
        .map_err(|error: String| PyValueError::new_err(error))
    }
}

fn append(places: &mut StructBuilder, hash: u64, begin: usize, end: usize) {
    places
        .field_builder::<UInt64Builder>(0)
        .expect("the first field")
        .append_value(hash);
    places
        .field_builder::<Int64Builder>(1)
        .expect("the second field")
        .append_value(begin as i64);
    places
        .field_builder::<Int64Builder>(2)
        .expect("the third field")
        .append_value(end as i64);
    places.append(true);
}

#[pyfunction]
fn token_ngrams(py: Python<'_>, texts: PyArrowType<ArrayData>, n: usize) -> PyResult<PyArrowType<ArrayData>> {
    py.detach(|| {
        require_length(n)?;
        let texts: ArrayRef = make_array(texts.0);
        let field = Arc::new(Field::new("element", DataType::UInt64, true));
        let mut lists = ListBuilder::new(UInt64Builder::new()).with_field(field);
        for text in strings(&texts)? {
            if let Some(text) = text {
                for_each_ngram(&tokens(text), n, |hash, _, _| lists.values().append_value(hash));
            }
            lists.append(text.is_some());
        }
        Ok(lists.finish())
    })
    .map(|lists| PyArrowType(lists.into_data()))
    .map_err(|error: String| PyValueError::new_err(error))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<NgramProbe>()?;
    module.add_function(wrap_pyfunction!(token_ngrams, module)?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hashes(text: &str, n: usize) -> Vec<u64> {
        let mut hashes = Vec::new();
        for_each_ngram(&tokens(text), n, |hash, _, _| hashes.push(hash));
        hashes
    }

    proptest! {
        #[test]
        fn a_rolling_hash_is_that_of_the_ngram_alone(words in proptest::collection::vec("[a-c]{1,2}", 1..12), n in 1usize..5) {
            let rolling = hashes(&words.join(" "), n);
            let alone: Vec<u64> = words.windows(n.min(words.len())).map(|ngram| hashes(&ngram.join(" "), n)[0]).collect();
            prop_assert_eq!(rolling, alone);
        }
    }

    #[test]
    fn a_short_text_is_one_ngram_and_differs_from_a_part_of_a_longer_one() {
        assert_eq!(hashes("a b", 3).len(), 1);
        assert_ne!(hashes("a b", 3)[0], hashes("a b c", 3)[0]);
        assert!(hashes("", 3).is_empty());
    }
}
