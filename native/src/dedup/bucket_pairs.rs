//! Pairs of documents that share buckets, from documents with their buckets.
//!
//!     BucketParts   (document, its buckets)           -> (part, records): the members of buckets
//!                   members of a part                 -> (part, records): members of shared buckets, renamed
//!     BucketPairs   renamed members of a part         -> (part, records, large): the ends of the pairs of
//!                                                        small buckets, and the members of large ones
//!
//! A member is a bucket and a document; all members of a bucket are in one part (`packed_parts.rs`). A shared
//! bucket has several members, and their exclusive or becomes its name: buckets with the same members, of which
//! near copies have dozens, become one. The ends of a pair are two records (`pair_cells.rs`).

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, BinaryArray, BooleanArray, Int32Array, Int64Array, RecordBatch};
use arrow_pyarrow::PyArrowType;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::packed_parts::{Parts, records};
use super::strings::{column, int64_column};

const REPEATED: usize = 1 << 16; // pairs held before repetitions are dropped

/// A bucket and a document in it.
type Member = [i64; 2];

/// Members of the shared buckets among `members`, with the new names of their buckets.
fn members_of_shared(mut members: Vec<Member>) -> Vec<Member> {
    members.sort_unstable();
    members
        .chunk_by(|one, next| one[0] == next[0])
        .filter(|bucket| bucket.len() > 1)
        .flat_map(|bucket| {
            let name = bucket.iter().fold(0, |name, member| name ^ member[1]);
            bucket.iter().map(move |member| [name, member[1]])
        })
        .collect()
}

/// `BucketParts` of the Python module.
#[pyclass]
struct BucketParts(Parts<2>);

impl BucketParts {
    fn push_documents(&mut self, batch: &RecordBatch) -> Result<(), String> {
        let documents = int64_column(batch, "document")?;
        let lists = column(batch, "buckets")?
            .as_list_opt::<i32>()
            .filter(|lists| lists.values().as_primitive_opt::<Int64Type>().is_some())
            .ok_or("Column `buckets` does not hold lists of int64. Cast it first.")?;
        let buckets = lists.values().as_primitive::<Int64Type>().values();
        for (row, &document) in documents.values().iter().enumerate() {
            let (begin, end) = (lists.value_offsets()[row], lists.value_offsets()[row + 1]);
            buckets[begin as usize..end as usize]
                .iter()
                .for_each(|&bucket| self.0.push([bucket, document]));
        }
        Ok(())
    }
}

#[pymethods]
impl BucketParts {
    #[new]
    fn new() -> Self {
        Self(Parts::new())
    }

    fn __len__(&self) -> usize {
        self.0.held()
    }

    fn add_documents(&mut self, py: Python<'_>, batch: PyArrowType<RecordBatch>) -> PyResult<()> {
        py.detach(|| self.push_documents(&batch.0))
            .map_err(PyValueError::new_err)
    }

    fn add_shared(&mut self, py: Python<'_>, batch: PyArrowType<RecordBatch>) -> PyResult<()> {
        py.detach(|| -> Result<(), String> {
            for member in members_of_shared(records(&batch.0)?) {
                self.0.push(member);
            }
            Ok(())
        })
        .map_err(PyValueError::new_err)
    }

    fn drain(&mut self, py: Python<'_>) -> PyResult<PyArrowType<RecordBatch>> {
        py.detach(|| self.0.rows())
            .map(PyArrowType)
            .map_err(PyValueError::new_err)
    }
}

/// `BucketPairs` of the Python module.
#[pyclass]
struct BucketPairs {
    pair_bucket: usize,
    pairs: Vec<[i64; 2]>,
    /// The number of pairs when repetitions were last dropped.
    distinct: usize,
    large: Vec<Member>,
}

impl BucketPairs {
    fn push(&mut self, mut members: Vec<Member>) {
        members.sort_unstable();
        members.dedup();
        for bucket in members.chunk_by(|one, next| one[0] == next[0]) {
            if bucket.len() > self.pair_bucket {
                self.large.extend_from_slice(bucket);
                continue;
            }
            for (place, one) in bucket.iter().enumerate() {
                self.pairs
                    .extend(bucket[place + 1..].iter().map(|other| [one[1], other[1]]));
            }
        }
        if self.pairs.len() > 2 * self.distinct + REPEATED {
            self.once();
        }
    }

    /// Drops repetitions: near copies that differ in few bands share many buckets.
    fn once(&mut self) {
        self.pairs.sort_unstable();
        self.pairs.dedup();
        self.distinct = self.pairs.len();
    }

    fn rows(&mut self) -> Result<RecordBatch, String> {
        self.once();
        let (mut ends, mut members) = (Parts::new(), Parts::new());
        for [one, other] in std::mem::take(&mut self.pairs) {
            ends.push([one, other]);
            ends.push([other, one]);
        }
        for member in std::mem::take(&mut self.large) {
            members.push(member);
        }
        self.distinct = 0;
        let parts: Vec<(bool, (i32, Vec<u8>))> = (ends.drain().into_iter().map(|part| (false, part)))
            .chain(members.drain().into_iter().map(|part| (true, part)))
            .collect();
        let numbers = parts.iter().map(|(_, part)| part.0);
        let packed = parts.iter().map(|(_, part)| &part.1);
        let large: Vec<bool> = parts.iter().map(|part| part.0).collect();
        RecordBatch::try_from_iter([
            (
                "part",
                Arc::new(Int32Array::from_iter_values(numbers)) as ArrayRef,
            ),
            ("records", Arc::new(BinaryArray::from_iter_values(packed))),
            ("large", Arc::new(BooleanArray::from(large))),
        ])
        .map_err(|error| error.to_string())
    }
}

/// (bucket, document) of the rows (part, records).
#[pyfunction]
fn bucket_members(py: Python<'_>, batch: PyArrowType<RecordBatch>) -> PyResult<PyArrowType<RecordBatch>> {
    py.detach(|| {
        let members = records::<2>(&batch.0)?;
        let column = |place: usize| -> ArrayRef {
            Arc::new(members.iter().map(|member| member[place]).collect::<Int64Array>())
        };
        RecordBatch::try_from_iter([("bucket", column(0)), ("document", column(1))])
            .map_err(|error| error.to_string())
    })
    .map(PyArrowType)
    .map_err(PyValueError::new_err)
}

#[pymethods]
impl BucketPairs {
    #[new]
    fn new(pair_bucket: usize) -> Self {
        Self {
            pair_bucket,
            pairs: Vec::new(),
            distinct: 0,
            large: Vec::new(),
        }
    }

    fn __len__(&self) -> usize {
        self.pairs.len() + self.large.len()
    }

    fn add(&mut self, py: Python<'_>, batch: PyArrowType<RecordBatch>) -> PyResult<()> {
        py.detach(|| records(&batch.0).map(|members| self.push(members)))
            .map_err(PyValueError::new_err)
    }

    fn drain(&mut self, py: Python<'_>) -> PyResult<PyArrowType<RecordBatch>> {
        py.detach(|| self.rows())
            .map(PyArrowType)
            .map_err(PyValueError::new_err)
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<BucketParts>()?;
    module.add_class::<BucketPairs>()?;
    module.add_function(wrap_pyfunction!(bucket_members, module)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_of_the_same_members_get_one_name_and_lone_members_go() {
        let members = vec![[1, 5], [2, 9], [1, 6], [3, 6], [3, 5], [4, 7], [5, 5], [5, 9]];
        let name = 5 ^ 6;
        assert_eq!(
            members_of_shared(members),
            [[name, 5], [name, 6], [name, 5], [name, 6], [5 ^ 9, 5], [5 ^ 9, 9]]
        );
    }

    #[test]
    fn a_pair_comes_once_and_a_large_bucket_is_no_pairs() {
        let mut pairs = BucketPairs::new(2);
        pairs.push(vec![[7, 2], [7, 1], [7, 2]]);
        pairs.push(vec![[8, 1], [8, 2]]);
        pairs.push(vec![[9, 1], [9, 2], [9, 3]]);
        assert_eq!((pairs.pairs.len(), pairs.large.len()), (2, 3));
        let rows = pairs.rows().unwrap();
        assert_eq!((rows.num_rows(), pairs.__len__()), (2, 0));
        let large = column(&rows, "large").unwrap().as_boolean();
        assert_eq!((large.value(0), large.value(1)), (false, true));
        assert_eq!(records::<2>(&rows.slice(0, 1)).unwrap(), [[1, 2], [2, 1]]);
        assert_eq!(records::<2>(&rows.slice(1, 1)).unwrap(), [[9, 1], [9, 2], [9, 3]]);
    }
}
