//! Latent semantic analysis of texts: hashed words and pairs of words, projected to a few dimensions.
//!
//! The features of a text are the buckets of its 1-grams and 2-grams behind a license comment, with their
//! counts. A count n weighs 1 + ln n; the weight of a bucket in the documents (idf) is part of its row of the
//! projection. The vector of a text has length one (Deerwester et al., "Indexing by Latent Semantic Analysis",
//! 1990). `factory/models/lsa.py` is the readable definition, and fits the projection.

use std::sync::Arc;

use arrow_array::builder::{ListBuilder, UInt32Builder};
use arrow_array::{Array, ArrayRef, Float32Array, RecordBatch, make_array};
use arrow_data::ArrayData;
use arrow_pyarrow::PyArrowType;
use arrow_schema::{DataType, Field};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::license_comment::without_license_comment;
use super::texts::strings;
use super::tokens::{for_each_token, pair};

const MOST_BITS: u32 = 24;

/// The buckets of one text after the other, with their counts; the table of places is reused.
struct Counts {
    shift: u32,
    places: Vec<u32>, // of a bucket in `buckets`, from 1; 0 for a bucket that the text lacks
    buckets: Vec<u32>,
    counts: Vec<u32>,
}

impl Counts {
    fn new(bits: u32) -> Result<Self, String> {
        if !(1..=MOST_BITS).contains(&bits) {
            return Err(format!("There are 2^{bits} buckets. Use 2^1 to 2^{MOST_BITS}."));
        }
        Ok(Self {
            shift: 64 - bits,
            places: vec![0; 1 << bits],
            buckets: Vec::new(),
            counts: Vec::new(),
        })
    }

    /// Fills `buckets`, in the order of first occurrence, and `counts`.
    fn count(&mut self, text: &str) {
        for bucket in self.buckets.drain(..) {
            self.places[bucket as usize] = 0;
        }
        self.counts.clear();
        let mut previous = None;
        for_each_token(without_license_comment(text), |token| {
            self.add(token.hash);
            if let Some(previous) = previous.replace(token.hash) {
                self.add(pair(previous, token.hash));
            }
        });
    }

    #[inline]
    fn add(&mut self, hash: u64) {
        let bucket = (hash >> self.shift) as u32;
        let place = &mut self.places[bucket as usize];
        if *place == 0 {
            self.buckets.push(bucket);
            self.counts.push(1);
            *place = self.buckets.len() as u32;
        } else {
            let count = &mut self.counts[*place as usize - 1];
            *count = count.saturating_add(1);
        }
    }
}

fn count_texts(texts: &ArrayRef, bits: u32) -> Result<RecordBatch, String> {
    let mut counts = Counts::new(bits)?;
    let list = || {
        let field = Arc::new(Field::new("element", DataType::UInt32, true));
        ListBuilder::new(UInt32Builder::new()).with_field(field)
    };
    let (mut bucket_lists, mut count_lists) = (list(), list());
    for text in strings(texts)? {
        if let Some(text) = text {
            counts.count(text);
            bucket_lists.values().append_slice(&counts.buckets);
            count_lists.values().append_slice(&counts.counts);
        }
        bucket_lists.append(text.is_some());
        count_lists.append(text.is_some());
    }
    let columns: [(&str, ArrayRef); 2] = [
        ("buckets", Arc::new(bucket_lists.finish())),
        ("counts", Arc::new(count_lists.finish())),
    ];
    RecordBatch::try_from_iter(columns).map_err(|error| error.to_string())
}

/// The float32 of a bfloat16, which is the first half of its bits.
#[inline]
fn widened(number: u16) -> f32 {
    f32::from_bits(u32::from(number) << 16)
}

/// A projection of hashed counts to vectors.
#[pyclass(frozen, module = "factory._native")]
struct LsaModel {
    bits: u32,
    dimensions: usize,
    projection: Vec<u16>, // bfloat16, by bucket, then by dimension: half the memory that a text touches
}

impl LsaModel {
    fn from_bytes(bits: u32, projection: &[u8]) -> Result<Self, String> {
        Counts::new(bits)?;
        let row_bytes = projection.len() >> bits;
        if row_bytes == 0 || !row_bytes.is_multiple_of(2) || row_bytes << bits != projection.len() {
            return Err(format!(
                "The projection has {} bytes. Pass two for each dimension of each of 2^{bits} buckets.",
                projection.len()
            ));
        }
        let projection: Vec<u16> = projection
            .chunks_exact(2)
            .map(|bytes| u16::from_le_bytes(bytes.try_into().expect("two bytes")))
            .collect();
        match projection.iter().find(|number| !widened(**number).is_finite()) {
            Some(number) => Err(format!(
                "The projection contains {}. Fit the model again.",
                widened(*number)
            )),
            None => Ok(Self {
                bits,
                dimensions: row_bytes / 2,
                projection,
            }),
        }
    }

    /// The vectors of the texts, one after the other; zeros for a text without a known bucket.
    fn vectors(&self, texts: &ArrayRef) -> Result<Vec<f32>, String> {
        let mut counts = Counts::new(self.bits)?;
        let mut vectors = vec![0f32; texts.len() * self.dimensions];
        for (text, vector) in strings(texts)?.zip(vectors.chunks_exact_mut(self.dimensions)) {
            if let Some(text) = text {
                counts.count(text);
                self.project(&counts, vector);
            }
        }
        Ok(vectors)
    }

    fn project(&self, counts: &Counts, vector: &mut [f32]) {
        for (bucket, count) in counts.buckets.iter().zip(&counts.counts) {
            let first = *bucket as usize * self.dimensions;
            let row = &self.projection[first..first + self.dimensions];
            let weight = if *count == 1 {
                1.0
            } else {
                1.0 + (*count as f32).ln()
            };
            for (sum, number) in vector.iter_mut().zip(row) {
                *sum += weight * widened(*number);
            }
        }
        let squares: f64 = vector.iter().map(|sum| f64::from(*sum) * f64::from(*sum)).sum();
        let length = squares.sqrt();
        if length > 0.0 {
            for sum in vector {
                *sum = (f64::from(*sum) / length) as f32;
            }
        }
    }
}

#[pymethods]
impl LsaModel {
    #[new]
    fn new(bits: u32, projection: &[u8]) -> PyResult<Self> {
        Self::from_bytes(bits, projection).map_err(PyValueError::new_err)
    }

    #[getter]
    fn dimensions(&self) -> usize {
        self.dimensions
    }

    fn embed(&self, py: Python<'_>, texts: PyArrowType<ArrayData>) -> PyResult<PyArrowType<ArrayData>> {
        py.detach(|| self.vectors(&make_array(texts.0)))
            .map(|numbers| PyArrowType(Float32Array::from(numbers).into_data()))
            .map_err(PyValueError::new_err)
    }
}

#[pyfunction]
fn hashed_counts(
    py: Python<'_>,
    texts: PyArrowType<ArrayData>,
    bits: u32,
) -> PyResult<PyArrowType<RecordBatch>> {
    py.detach(|| count_texts(&make_array(texts.0), bits))
        .map(PyArrowType)
        .map_err(PyValueError::new_err)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<LsaModel>()?;
    module.add_function(wrap_pyfunction!(hashed_counts, module)?)
}

#[cfg(test)]
mod tests {
    use arrow_array::StringArray;
    use proptest::prelude::*;

    use super::*;

    fn bfloat16(number: f32) -> [u8; 2] {
        ((number.to_bits() >> 16) as u16).to_le_bytes()
    }

    fn model(bits: u32, dimensions: usize) -> LsaModel {
        let bytes: Vec<u8> = (0..dimensions << bits)
            .flat_map(|place| bfloat16((place * 31 % 97) as f32 / 97.0 - 0.5))
            .collect();
        LsaModel::from_bytes(bits, &bytes).unwrap()
    }

    fn texts(values: &[Option<&str>]) -> ArrayRef {
        Arc::new(StringArray::from(values.to_vec()))
    }

    #[test]
    fn a_text_without_tokens_has_a_vector_of_zeros() {
        let vectors = model(6, 3)
            .vectors(&texts(&[None, Some(" ,;"), Some("a")]))
            .unwrap();
        assert_eq!(vectors[..6], [0.0; 6]);
        let squares: f32 = vectors[6..].iter().map(|number| number * number).sum();
        assert!((squares - 1.0).abs() < 1e-6);
    }

    #[test]
    fn a_license_comment_changes_no_vector() {
        let vectors = model(8, 5)
            .vectors(&texts(&[Some("# Copyright 2020\na b a"), Some("a b a")]))
            .unwrap();
        assert_eq!(vectors[..5], vectors[5..]);
    }

    #[test]
    fn a_damaged_projection_is_refused() {
        assert!(LsaModel::from_bytes(4, &[0; 63]).is_err());
        assert!(LsaModel::from_bytes(4, &[]).is_err());
        assert!(LsaModel::from_bytes(40, &[0; 64]).is_err());
        assert!(LsaModel::from_bytes(2, &bfloat16(f32::NAN).repeat(4)).is_err());
    }

    proptest! {
        #[test]
        fn a_vector_depends_on_its_text_alone(text in "[a-d ]{0,60}", other in "[a-d ]{0,20}") {
            let model = model(5, 7);
            let together = model.vectors(&texts(&[Some(&other), None, Some(&text)])).unwrap();
            let alone = model.vectors(&texts(&[Some(&text)])).unwrap();
            prop_assert_eq!(&together[14..], &alone[..]);
        }
    }
}
