//! Pairs of documents that share buckets, from documents with their buckets.
//!
//!     add_documents   (document, its buckets)     -> (part, records): the members of buckets
//!     add_shared      members of a part           -> (part, records): members of shared buckets, renamed
//!     BucketPairs     renamed members of a part   -> (part, records, large): the ends of the pairs of small
//!                                                    buckets, and the members of large ones
//!
//! A member is a bucket and a document; all members of a bucket are in one part (`packed_parts.rs`). A shared
//! bucket has several members, and their exclusive or becomes its name: buckets with the same members, of which
//! near copies have dozens, become one. The ends of a pair are two records (`pair_cells.rs`).

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, BinaryArray, BooleanArray, Int32Array, Int64Array, RecordBatch};
use arrow_pyarrow::PyArrowType;
use pyo3::prelude::*;

use super::packed_parts::{Parts, records};
use crate::dedup::python::{Batch, detached};
use crate::dedup::strings::{int64_column, int64_lists};

const REPEATED: usize = 1 << 16; // pairs held before repetitions are dropped

/// A bucket and a document in it.
type Member = [i64; 2];

/// Members of the shared buckets among `members`, with the new names of their buckets.
pub fn members_of_shared(mut members: Vec<Member>) -> Vec<Member> {
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

/// Adds the members of the rows (document, buckets).
pub fn push_documents(batch: &RecordBatch, members: &mut Parts) -> Result<(), String> {
    let documents = int64_column(batch, "document")?;
    let lists = int64_lists(batch, "buckets")?;
    let buckets = lists.values().as_primitive::<Int64Type>().values();
    for (row, &document) in documents.values().iter().enumerate() {
        let (begin, end) = (lists.value_offsets()[row], lists.value_offsets()[row + 1]);
        buckets[begin as usize..end as usize]
            .iter()
            .for_each(|&bucket| members.push([bucket, document]));
    }
    Ok(())
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
fn bucket_members(py: Python<'_>, batch: Batch) -> PyResult<Batch> {
    detached(py, || {
        let members = records::<2>(&batch.0)?;
        let column = |place: usize| -> ArrayRef {
            Arc::new(members.iter().map(|member| member[place]).collect::<Int64Array>())
        };
        RecordBatch::try_from_iter([("bucket", column(0)), ("document", column(1))])
            .map_err(|error| error.to_string())
    })
    .map(PyArrowType)
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

    fn add(&mut self, py: Python<'_>, batch: Batch) -> PyResult<()> {
        detached(py, || records(&batch.0).map(|members| self.push(members)))
    }

    fn drain(&mut self, py: Python<'_>) -> PyResult<Batch> {
        detached(py, || self.rows()).map(PyArrowType)
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<BucketPairs>()?;
    module.add_function(wrap_pyfunction!(bucket_members, module)?)
}
