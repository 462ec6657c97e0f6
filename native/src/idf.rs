//! Token weights: (1 + ln tf) * idf, from a frozen table of one byte a slot.
//!
//! idf = ln(1 + N / df) in steps of 1/16, for N texts of which df hold the token. The table has 2^20
//! slots, indexed by the low bits of the token; a slot shared by several tokens takes the least idf, that
//! of the most frequent one. A token the table has not seen takes the idf of a token in one text. The
//! coarse steps keep a recount, or a few more texts, from moving signatures. A byte ends at 255/16, which
//! is N / df of eight million.

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, make_array};
use arrow_data::ArrayData;
use arrow_pyarrow::PyArrowType;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::bag::Bag;
use crate::ln::ln;

pub const SLOTS: usize = 1 << 20;
const STEPS: f64 = 16.0;

fn slot(token: u64) -> usize {
    (token & (SLOTS as u64 - 1)) as usize
}

/// ln(1 + N / df) in steps of 1/16, at least one.
pub fn steps(document_frequency: i64, n_documents: i64) -> u8 {
    let share = n_documents.max(1) as f64 / document_frequency.max(1) as f64;
    (ln(1.0 + share) * STEPS + 0.5).clamp(1.0, 255.0) as u8
}

/// The part of the table that these tokens fill: zero for a slot without a token.
pub fn partial_table(tokens: &[i64], document_frequencies: &[i64], n_documents: i64) -> Vec<u8> {
    let mut table = vec![0; SLOTS];
    for (&token, &frequency) in tokens.iter().zip(document_frequencies) {
        let entry = &mut table[slot(token.cast_unsigned())];
        let steps = steps(frequency, n_documents);
        *entry = if *entry == 0 { steps } else { steps.min(*entry) };
    }
    table
}

/// Turns counts into weights with one table.
pub struct Weights<'a> {
    table: &'a [u8],
    /// (1 + ln tf) / 16 for small tf.
    damped: Vec<f64>,
}

impl<'a> Weights<'a> {
    pub fn new(table: &'a [u8]) -> Result<Self, String> {
        if table.len() != SLOTS || table.contains(&0) {
            return Err(format!(
                "An idf table has {SLOTS} entries of 1 to 255; this one has {} and {} zeros. Build it with `idf_table`.",
                table.len(),
                table.iter().filter(|entry| **entry == 0).count()
            ));
        }
        Ok(Self {
            table,
            damped: (0..256u32).map(damped).collect(),
        })
    }

    /// The weight of each token of `bag`, in `weights`.
    pub fn of(&self, bag: &Bag, weights: &mut Vec<f64>) {
        weights.clear();
        weights.extend(bag.tokens.iter().zip(&bag.counts).map(|(&token, &count)| {
            let tf = self
                .damped
                .get(count as usize)
                .copied()
                .unwrap_or_else(|| damped(count));
            tf * f64::from(self.table[slot(token)])
        }));
    }
}

fn damped(count: u32) -> f64 {
    let tf = if count > 1 {
        1.0 + ln(f64::from(count))
    } else {
        1.0
    };
    tf / STEPS
}

#[pyfunction]
#[pyo3(name = "idf_table")]
fn idf_table_py<'py>(
    py: Python<'py>,
    tokens: PyArrowType<ArrayData>,
    document_frequencies: PyArrowType<ArrayData>,
    n_documents: i64,
) -> PyResult<Bound<'py, PyBytes>> {
    let (tokens, frequencies) = (make_array(tokens.0), make_array(document_frequencies.0));
    let columns = (
        tokens.as_primitive_opt::<Int64Type>(),
        frequencies.as_primitive_opt::<Int64Type>(),
    );
    let (Some(tokens), Some(frequencies)) = columns else {
        return Err(PyValueError::new_err(
            "Tokens and document frequencies are int64 arrays. Cast them first.",
        ));
    };
    if tokens.len() != frequencies.len() || tokens.null_count() + frequencies.null_count() > 0 {
        return Err(PyValueError::new_err(
            "Tokens and document frequencies differ in length or hold nulls. Pass one frequency a token.",
        ));
    }
    let table = py.detach(|| partial_table(tokens.values(), frequencies.values(), n_documents));
    Ok(PyBytes::new(py, &table))
}

#[pyfunction]
fn idf_steps(document_frequency: i64, n_documents: i64) -> u8 {
    steps(document_frequency, n_documents)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(idf_steps, module)?)?;
    module.add_function(wrap_pyfunction!(idf_table_py, module)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rarer_is_heavier_up_to_a_byte() {
        assert_eq!(steps(1, 1), 11); // 16 ln 2 = 11.09
        assert_eq!(steps(100, 100), 11);
        assert_eq!(steps(1, 6000), 139);
        assert_eq!(steps(1, i64::MAX), 255);
        assert_eq!(steps(0, 0), 11);
        assert_eq!(steps(1000, 1), 1);
    }

    #[test]
    fn a_shared_slot_takes_the_most_frequent_token() {
        let other = 5 + SLOTS as i64;
        let table = partial_table(&[5, other, 7], &[1, 50, 3], 100);
        assert_eq!(table[5], steps(50, 100));
        assert_eq!(table[7], steps(3, 100));
        assert_eq!(table[6], 0);
    }

    #[test]
    fn a_weight_is_damped_count_times_idf() {
        let mut table = vec![16; SLOTS];
        table[3] = 32;
        let bag = Bag {
            tokens: vec![3, 4, 5],
            counts: vec![1, 1, 1000],
            n_tokens: 1002,
        };
        let mut weights = Vec::new();
        Weights::new(&table).unwrap().of(&bag, &mut weights);
        assert_eq!(weights[..2], [2.0, 1.0]);
        assert!((weights[2] - (1.0 + 1000f64.ln())).abs() < 1e-12);
    }

    #[test]
    fn a_table_with_holes_is_refused() {
        assert!(Weights::new(&vec![0; SLOTS]).is_err());
        assert!(Weights::new(&[1, 2]).is_err());
    }
}
