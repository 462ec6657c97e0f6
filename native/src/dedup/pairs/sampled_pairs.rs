//! Pairs of similar signatures between a sample of documents and all others, whether or not they share a bucket.
//!
//! The recall of banding is measured against these pairs. Each signature of a small sample is compared with every
//! signature, for some ten nanoseconds per pair.

use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, Float64Builder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_pyarrow::PyArrowType;
use pyo3::prelude::*;

use crate::dedup::python::{Batch, detached};
use crate::dedup::sign::agreement::{checked_value_bits, estimate, matches, matches_for, of_length};
use crate::dedup::strings::{Binaries, column, string_column};

/// The layout of a signature: bits per value, bits per band, and the number of bands.
#[derive(Clone, Copy, Debug)]
pub struct SignatureLayout {
    pub value_bits: usize,
    pub band_bits: usize,
    pub bands: usize,
}

/// Whether two signatures agree in all bits of some band.
pub fn share_a_band(signature: &[u8], other: &[u8], layout: SignatureLayout) -> bool {
    (0..layout.bands).any(|band| {
        equal_bits(
            signature,
            other,
            band * layout.band_bits,
            (band + 1) * layout.band_bits,
        )
    })
}

/// Whether bits `start` to `end` are equal; bit 0 is the highest of the first byte.
fn equal_bits(signature: &[u8], other: &[u8], start: usize, end: usize) -> bool {
    if end > 8 * signature.len().min(other.len()) {
        return false;
    }
    (start / 8..end.div_ceil(8)).all(|place| {
        let after = 0xff >> (start.saturating_sub(8 * place)).min(8);
        let before = !(0xff >> (end - 8 * place).min(8)) as u8;
        (signature[place] ^ other[place]) & (after as u8) & before == 0
    })
}

/// (sampled, other, estimate, shares_bucket) of the rows (doc_id, signature) of `batch` that are similar to one of `sample`.
///
/// Of two sampled documents, `other` is the one with the greater id.
fn pairs(
    batch: &RecordBatch,
    sample: &RecordBatch,
    min_estimate: f64,
    layout: SignatureLayout,
) -> Result<RecordBatch, String> {
    let names = string_column(batch, "doc_id")?;
    let signatures = Binaries::new(column(batch, "signature")?, "signature")?;
    let sampled = string_column(sample, "doc_id")?;
    let of_sample = Binaries::new(column(sample, "signature")?, "signature")?;
    let mut chosen = Vec::with_capacity(sampled.len());
    let bytes = (sampled.len() > 0)
        .then(|| of_sample.get(0))
        .flatten()
        .map_or(0, <[u8]>::len);
    for row in 0..sampled.len() {
        let signature = of_length(bytes, of_sample.get(row))?;
        chosen.push((sampled.required(row, "doc_id")?, signature));
    }
    chosen.sort_unstable();
    let values = bytes * 8 / layout.value_bits;
    let min_matches = matches_for(min_estimate, values, layout.value_bits);
    let (mut left, mut right) = (StringBuilder::new(), StringBuilder::new());
    let (mut estimates, mut shares_bucket) = (Float64Builder::new(), BooleanBuilder::new());
    for row in 0..names.len() {
        let name = names.required(row, "doc_id")?;
        let signature = of_length(bytes, signatures.get(row))?;
        let in_sample = chosen.binary_search_by_key(&name, |&(other, _)| other).is_ok();
        for &(other, of_other) in &chosen {
            if other == name || (in_sample && other > name) {
                continue;
            }
            let agreeing = matches(signature, of_other, layout.value_bits);
            if agreeing >= min_matches {
                left.append_value(other);
                right.append_value(name);
                estimates.append_value(estimate(agreeing, values, layout.value_bits));
                shares_bucket.append_value(share_a_band(signature, of_other, layout));
            }
        }
    }
    RecordBatch::try_from_iter_with_nullable([
        ("sampled", Arc::new(left.finish()) as ArrayRef, false),
        ("other", Arc::new(right.finish()) as ArrayRef, false),
        ("estimate", Arc::new(estimates.finish()) as ArrayRef, false),
        (
            "shares_bucket",
            Arc::new(shares_bucket.finish()) as ArrayRef,
            false,
        ),
    ])
    .map_err(|error| error.to_string())
}

#[pyfunction]
fn sampled_pairs(
    py: Python<'_>,
    batch: Batch,
    sample: Batch,
    min_estimate: f64,
    value_bits: usize,
    band_bits: usize,
    bands: usize,
) -> PyResult<Batch> {
    let layout = checked_value_bits(value_bits).map(|value_bits| SignatureLayout {
        value_bits,
        band_bits,
        bands,
    });
    detached(py, || {
        layout.and_then(|layout| pairs(&batch.0, &sample.0, min_estimate, layout))
    })
    .map(PyArrowType)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(sampled_pairs, module)?)
}

#[cfg(test)]
mod tests {
    use arrow_array::{BinaryArray, StringArray};
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn signatures_meet_where_all_bits_of_a_band_agree(
            signature in proptest::collection::vec(0u8..2, 32),
            other in proptest::collection::vec(0u8..2, 32),
            band_bits in 1usize..20,
        ) {
            let packed = |bits: &[u8]| -> Vec<u8> {
                bits.chunks(8).map(|byte| byte.iter().fold(0, |number, bit| number << 1 | bit)).collect()
            };
            let bands = 32 / band_bits;
            let layout = SignatureLayout { value_bits: 1, band_bits, bands };
            let expected = (0..bands).any(|band| {
                let of_band = band * band_bits..(band + 1) * band_bits;
                signature[of_band.clone()] == other[of_band]
            });
            prop_assert_eq!(share_a_band(&packed(&signature), &packed(&other), layout), expected);
        }
    }

    #[test]
    fn signatures_of_other_lengths_are_refused() {
        let documents = |names: [&str; 2], signatures: [&[u8]; 2]| {
            let names = Arc::new(StringArray::from_iter_values(names)) as ArrayRef;
            let signatures = Arc::new(BinaryArray::from_iter_values(signatures)) as ArrayRef;
            RecordBatch::try_from_iter([("doc_id", names), ("signature", signatures)]).unwrap()
        };
        let layout = SignatureLayout {
            value_bits: 8,
            band_bits: 8,
            bands: 2,
        };
        let alike = documents(["a", "b"], [b"xy", b"xy"]);
        let unlike = documents(["c", "d"], [b"xy", b"xyz"]);
        assert_eq!(pairs(&alike, &alike, 0.5, layout).unwrap().num_rows(), 1);
        for (batch, sample) in [(&alike, &unlike), (&unlike, &alike)] {
            let error = pairs(batch, sample, 0.5, layout).unwrap_err();
            assert!(
                error.starts_with("A group has signatures of 2 and 3 bytes"),
                "{error}"
            );
        }
    }

    #[test]
    fn bits_that_are_not_there_agree_with_none() {
        assert!(!equal_bits(b"ab", b"ab", 8, 24));
        assert!(equal_bits(b"ab", b"xb", 8, 16));
    }
}
