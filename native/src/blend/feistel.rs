//! A keyed permutation of 0 .. n-1 that computes each position alone: the Feistel network of
//! `blender/spec/permutation.py`, walked until it falls below n.

use arrow_array::Array;
use arrow_array::Int64Array;
use arrow_data::ArrayData;
use arrow_pyarrow::PyArrowType;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

const ROUNDS: usize = 6;

struct Network {
    n: u64,
    low: u32,
    low_mask: u64,
    high_mask: u64,
    keys: [u64; ROUNDS],
}

impl Network {
    fn new(n: u64, keys: [u64; ROUNDS]) -> Self {
        let bits = 64 - (n - 1).leading_zeros();
        let low = bits - bits / 2; // the high half may be a bit narrower
        Self {
            n,
            low,
            low_mask: (1 << low) - 1,
            high_mask: (1 << (bits / 2)) - 1,
            keys,
        }
    }

    fn encrypt(&self, value: u64) -> u64 {
        let (mut high, mut low) = (value >> self.low, value & self.low_mask);
        for pair in self.keys.chunks_exact(2) {
            high ^= mix(low.wrapping_add(pair[0])) & self.high_mask;
            low ^= mix(high.wrapping_add(pair[1])) & self.low_mask;
        }
        (high << self.low) | low
    }

    fn decrypt(&self, value: u64) -> u64 {
        let (mut high, mut low) = (value >> self.low, value & self.low_mask);
        for pair in self.keys.chunks_exact(2).rev() {
            low ^= mix(high.wrapping_add(pair[1])) & self.low_mask;
            high ^= mix(low.wrapping_add(pair[0])) & self.high_mask;
        }
        (high << self.low) | low
    }

    /// The item at a position below n, or the position of an item.
    fn walk(&self, mut value: u64, inverse: bool) -> u64 {
        loop {
            value = if inverse {
                self.decrypt(value)
            } else {
                self.encrypt(value)
            };
            if value < self.n {
                return value;
            }
        }
    }
}

/// The finalizer of splitmix64.
fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ (word >> 31)
}

/// The values from `begin` to `end` that one network permutes.
#[derive(FromPyObject)]
struct Part(usize, usize, u64, [u64; ROUNDS]);

impl Part {
    fn check(&self, values: &[i64]) -> PyResult<()> {
        let &Self(begin, end, n, _) = self;
        if !(2..=1 << 62).contains(&n) {
            return Err(PyValueError::new_err(format!(
                "Cannot permute {n} items. Use 2 to 2^62."
            )));
        }
        let Some(part) = values.get(begin..end) else {
            return Err(PyValueError::new_err(format!(
                "There is no part from {begin} to {end} of {} values.",
                values.len()
            )));
        };
        match part.iter().find(|&&value| !(0..n.cast_signed()).contains(&value)) {
            None => Ok(()),
            Some(beyond) => Err(PyValueError::new_err(format!(
                "Value {beyond} is out of range. Use 0 to {}.",
                n - 1
            ))),
        }
    }
}

/// See `feistel` in the stub.
#[pyfunction]
fn feistel(
    py: Python<'_>,
    values: PyBuffer<i64>,
    parts: Vec<Part>,
    inverse: bool,
) -> PyResult<PyArrowType<ArrayData>> {
    let mut values = values.to_vec(py)?;
    for part in &parts {
        part.check(&values)?;
    }
    py.detach(|| {
        for Part(begin, end, n, keys) in parts {
            let network = Network::new(n, keys);
            for value in &mut values[begin..end] {
                *value = network.walk(value.cast_unsigned(), inverse).cast_signed();
            }
        }
    });
    Ok(PyArrowType(Int64Array::from(values).to_data()))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(feistel, module)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_item_is_read_once() {
        for n in [2, 3, 5, 64, 257, 1000] {
            let network = Network::new(n, [1, 2, 3, 4, 5, 6]);
            let mut items: Vec<u64> = (0..n).map(|it| network.walk(it, false)).collect();
            items.sort_unstable();
            assert!(items.into_iter().eq(0..n), "{n}");
        }
    }

    proptest! {
        #[test]
        fn the_inverse_is_one(n in 2u64..1 << 62, at in any::<u64>(), keys in any::<[u64; 6]>()) {
            let network = Network::new(n, keys);
            prop_assert_eq!(network.walk(network.walk(at % n, false), true), at % n);
        }
    }
}
