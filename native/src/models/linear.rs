//! Linear classifiers over hashed words and pairs of words.
//!
//! The features of a text are the buckets of its distinct 1-grams and 2-grams, each with the value one over the
//! root of their number, so that a long text has the same length as a short one (Weinberger et al., "Feature
//! Hashing for Large Scale Multitask Learning", 2009, without their signs). A score is an intercept plus the
//! weights of these buckets times that value. Several models share one walk over a text.

use std::sync::Arc;

use arrow_array::builder::{ListBuilder, UInt32Builder};
use arrow_array::{Array, ArrayRef, Float64Array, ListArray, RecordBatch, RecordBatchOptions, make_array};
use arrow_data::ArrayData;
use arrow_pyarrow::PyArrowType;
use arrow_schema::{DataType, Field, Schema};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::texts::strings;
use super::tokens::{for_each_token, pair};

const MOST_BITS: u32 = 28;

/// The distinct buckets of one text after the other; the marks are reused.
struct Buckets {
    shift: u32,
    marks: Vec<u32>,
    mark: u32,
}

impl Buckets {
    fn new(bits: u32) -> Result<Self, String> {
        if !(1..=MOST_BITS).contains(&bits) {
            return Err(format!("There are 2^{bits} buckets. Use 2^1 to 2^{MOST_BITS}."));
        }
        Ok(Self {
            shift: 64 - bits,
            marks: vec![0; 1 << bits],
            mark: 0,
        })
    }

    /// Calls `visit` with each distinct bucket of `text`, and the bytes of its first n-gram; returns the number
    /// of tokens.
    #[inline]
    fn for_each(&mut self, text: &str, mut visit: impl FnMut(u32, usize, usize)) -> usize {
        if self.mark == u32::MAX {
            self.marks.fill(0);
            self.mark = 0;
        }
        self.mark += 1;
        let mut n_tokens = 0;
        let (mut previous, mut previous_begin) = (0, 0);
        for_each_token(text, |token| {
            let mut meet = |hash: u64, begin: usize| {
                let bucket = (hash >> self.shift) as usize;
                if self.marks[bucket] != self.mark {
                    self.marks[bucket] = self.mark;
                    visit(bucket as u32, begin, token.end);
                }
            };
            meet(token.hash, token.begin);
            if n_tokens > 0 {
                meet(pair(previous, token.hash), previous_begin);
            }
            n_tokens += 1;
            (previous, previous_begin) = (token.hash, token.begin);
        });
        n_tokens
    }
}

fn features(texts: &ArrayRef, bits: u32) -> Result<ListArray, String> {
    let mut buckets = Buckets::new(bits)?;
    let field = Arc::new(Field::new("element", DataType::UInt32, true));
    let mut lists = ListBuilder::new(UInt32Builder::new()).with_field(field);
    for text in strings(texts)? {
        if let Some(text) = text {
            buckets.for_each(text, |bucket, _, _| lists.values().append_value(bucket));
        }
        lists.append(text.is_some());
    }
    Ok(lists.finish())
}

/// Linear models over the same buckets, with their weights side by side.
#[pyclass(frozen, module = "factory._native")]
struct LinearModels {
    bits: u32,
    weights: Vec<f32>, // by bucket, then by class of each model
    intercepts: Vec<f64>,
}

impl LinearModels {
    fn from_parts(bits: u32, weights: &[&[u8]], intercepts: Vec<f64>) -> Result<Self, String> {
        Buckets::new(bits)?;
        if weights.len() != intercepts.len() {
            return Err(format!(
                "There are {} vectors of weights and {} intercepts. Pass one intercept a vector.",
                weights.len(),
                intercepts.len()
            ));
        }
        let (n_buckets, n_vectors) = (1usize << bits, weights.len());
        let mut interleaved = vec![0f32; n_buckets * n_vectors];
        for (number, vector) in weights.iter().enumerate() {
            if vector.len() != 4 * n_buckets {
                return Err(format!(
                    "A vector of weights has {} bytes. 2^{bits} buckets need {}.",
                    vector.len(),
                    4 * n_buckets
                ));
            }
            for (bucket, bytes) in vector.chunks_exact(4).enumerate() {
                let weight = f32::from_le_bytes(bytes.try_into().expect("four bytes"));
                if !weight.is_finite() {
                    return Err(format!(
                        "The weight of bucket {bucket} is {weight}. Train the model again."
                    ));
                }
                interleaved[bucket * n_vectors + number] = weight;
            }
        }
        Ok(Self {
            bits,
            weights: interleaved,
            intercepts,
        })
    }

    /// The scores of each text, a column a vector of weights; null for a text of fewer than `least` tokens.
    fn scores(&self, texts: &ArrayRef, least: usize) -> Result<Vec<Vec<Option<f64>>>, String> {
        let n_vectors = self.intercepts.len();
        let mut buckets = Buckets::new(self.bits)?;
        let mut columns = vec![Vec::with_capacity(texts.len()); n_vectors];
        let mut sums = vec![0f64; n_vectors];
        for text in strings(texts)? {
            let mut n_features = 0u64;
            sums.fill(0.0);
            let n_tokens = text.map_or(0, |text| {
                buckets.for_each(text, |bucket, _, _| {
                    n_features += 1;
                    let first = bucket as usize * n_vectors;
                    for (sum, weight) in sums.iter_mut().zip(&self.weights[first..first + n_vectors]) {
                        *sum += f64::from(*weight);
                    }
                })
            });
            let value = 1.0 / (n_features.max(1) as f64).sqrt();
            let enough = text.is_some() && n_tokens >= least;
            for (column, (sum, intercept)) in columns.iter_mut().zip(sums.iter().zip(&self.intercepts)) {
                column.push(enough.then(|| intercept + sum * value));
            }
        }
        Ok(columns)
    }
}

#[pymethods]
impl LinearModels {
    #[new]
    fn new(bits: u32, weights: Vec<Vec<u8>>, intercepts: Vec<f64>) -> PyResult<Self> {
        let vectors: Vec<&[u8]> = weights.iter().map(Vec::as_slice).collect();
        Self::from_parts(bits, &vectors, intercepts).map_err(PyValueError::new_err)
    }

    #[pyo3(name = "scores")]
    fn scores_py(
        &self,
        py: Python<'_>,
        texts: PyArrowType<ArrayData>,
        least_tokens: usize,
    ) -> PyResult<PyArrowType<RecordBatch>> {
        py.detach(|| {
            let texts = make_array(texts.0);
            let columns = self.scores(&texts, least_tokens)?;
            let fields: Vec<Field> = (0..columns.len())
                .map(|number| Field::new(number.to_string(), DataType::Float64, true))
                .collect();
            let arrays = columns
                .into_iter()
                .map(|column| Arc::new(Float64Array::from(column)) as ArrayRef)
                .collect();
            let options = RecordBatchOptions::new().with_row_count(Some(texts.len()));
            RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options)
                .map_err(|error| error.to_string())
        })
        .map(PyArrowType)
        .map_err(PyValueError::new_err)
    }
}

#[pyfunction]
fn hashed_features(
    py: Python<'_>,
    texts: PyArrowType<ArrayData>,
    bits: u32,
) -> PyResult<PyArrowType<ArrayData>> {
    py.detach(|| features(&make_array(texts.0), bits))
        .map(|lists| PyArrowType(lists.into_data()))
        .map_err(PyValueError::new_err)
}

#[pyfunction]
fn hashed_ngrams(py: Python<'_>, text: &str, bits: u32) -> PyResult<Vec<(u32, usize, usize)>> {
    py.detach(|| {
        let mut ngrams = Vec::new();
        Buckets::new(bits)?.for_each(text, |bucket, begin, end| ngrams.push((bucket, begin, end)));
        Ok(ngrams)
    })
    .map_err(|error: String| PyValueError::new_err(error))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<LinearModels>()?;
    module.add_function(wrap_pyfunction!(hashed_features, module)?)?;
    module.add_function(wrap_pyfunction!(hashed_ngrams, module)?)
}

#[cfg(test)]
mod tests {
    use arrow_array::StringArray;
    use proptest::prelude::*;

    use super::*;

    fn model(bits: u32, seed: u32) -> Vec<u8> {
        (0..1u32 << bits)
            .flat_map(|bucket| ((bucket.wrapping_mul(seed) % 97) as f32 / 97.0 - 0.5).to_le_bytes())
            .collect()
    }

    fn texts(values: &[Option<&str>]) -> ArrayRef {
        Arc::new(StringArray::from(values.to_vec()))
    }

    proptest! {
        #[test]
        fn models_together_score_as_each_alone(text in "[a-d ]{0,60}", other in "[a-d ]{0,20}") {
            let (first, second) = (model(8, 31), model(8, 57));
            let array = texts(&[Some(&other), None, Some(&text)]);
            let together = LinearModels::from_parts(8, &[&first, &second], vec![0.5, -1.0]).unwrap();
            let alone = LinearModels::from_parts(8, &[&second], vec![-1.0]).unwrap();
            let scores = together.scores(&array, 1).unwrap();
            prop_assert_eq!(&scores[1], &alone.scores(&array, 1).unwrap()[0]);
            prop_assert_eq!(scores[0][1], None);
        }
    }

    #[test]
    fn a_text_of_few_tokens_has_no_score() {
        let models = LinearModels::from_parts(4, &[&model(4, 3)], vec![0.0]).unwrap();
        let scores = models
            .scores(&texts(&[Some("a b"), Some("a b c"), Some("")]), 3)
            .unwrap();
        assert_eq!(
            scores[0].iter().map(Option::is_some).collect::<Vec<_>>(),
            [false, true, false]
        );
    }

    #[test]
    fn wrong_weights_are_refused() {
        assert!(LinearModels::from_parts(4, &[&[0; 63]], vec![0.0]).is_err());
        assert!(LinearModels::from_parts(4, &[&[0; 64]], vec![]).is_err());
        assert!(LinearModels::from_parts(40, &[], vec![]).is_err());
        assert!(LinearModels::from_parts(2, &[&f32::NAN.to_le_bytes().repeat(4)], vec![0.0]).is_err());
    }
}
