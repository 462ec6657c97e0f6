//! Which documents meet in buckets: rows of buckets in, pairs of documents out.
//!
//!     BucketParts   (document, its buckets)           -> (part, members of the buckets of the part)
//!                   members of a part                 -> (part, members of shared buckets, by their names)
//!     BucketPairs   members of a part, by their names -> each pair of a small bucket, the members of a large one
//!
//! A member is a bucket and a document, 16 bytes. A part holds the members whose bucket begins with the same
//! 12 bits, so all members of a bucket are in one part. A shared bucket has several members and is named by the
//! exclusive or of them: buckets of the same members, of which near copies have dozens, become one.

use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, Int64Builder};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int32Array, RecordBatch};
use arrow_pyarrow::PyArrowType;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::strings::{Binaries, column, int64_column};

const PART_BITS: u32 = 12;
const MEMBER_BYTES: usize = 16;
const REPEATED: usize = 1 << 16; // pairs that may be repetitions

/// A bucket and a document in it.
type Member = (i64, i64);

/// The members in the rows of a batch's column `members`.
fn members(batch: &RecordBatch) -> Result<Vec<Member>, String> {
    let packed = Binaries::new(column(batch, "members")?, "members")?;
    let mut members = Vec::new();
    for row in 0..batch.num_rows() {
        let (found, rest) = packed.get(row).unwrap_or_default().as_chunks::<MEMBER_BYTES>();
        if !rest.is_empty() {
            return Err(format!(
                "`members` of row {row} are not of {MEMBER_BYTES} bytes. Make them again."
            ));
        }
        members.extend(found.iter().map(|member| {
            let (halves, _) = member.as_chunks::<{ MEMBER_BYTES / 2 }>();
            (i64::from_le_bytes(halves[0]), i64::from_le_bytes(halves[1]))
        }));
    }
    Ok(members)
}

/// Members of the shared buckets among `members`, each under the name of its bucket.
fn shared(mut members: Vec<Member>) -> Vec<Member> {
    members.sort_unstable();
    members
        .chunk_by(|one, next| one.0 == next.0)
        .filter(|bucket| bucket.len() > 1)
        .flat_map(|bucket| {
            let name = bucket.iter().fold(0, |name, member| name ^ member.1);
            bucket.iter().map(move |member| (name, member.1))
        })
        .collect()
}

/// `BucketParts` of the Python module.
#[pyclass]
struct BucketParts {
    parts: Vec<Vec<u8>>,
    held: usize,
}

impl BucketParts {
    fn push(&mut self, (bucket, document): Member) {
        let part = &mut self.parts[(bucket.cast_unsigned() >> (u64::BITS - PART_BITS)) as usize];
        part.extend_from_slice(&bucket.to_le_bytes());
        part.extend_from_slice(&document.to_le_bytes());
        self.held += 1;
    }

    fn push_documents(&mut self, batch: &RecordBatch) -> Result<(), String> {
        let documents = int64_column(batch, "document")?;
        let lists = column(batch, "buckets")?
            .as_list_opt::<i32>()
            .filter(|lists| lists.values().as_primitive_opt::<Int64Type>().is_some())
            .ok_or("`buckets` is no column of lists of int64. Cast it first.")?;
        let buckets = lists.values().as_primitive::<Int64Type>().values();
        for (row, &document) in documents.values().iter().enumerate() {
            let (begin, end) = (lists.value_offsets()[row], lists.value_offsets()[row + 1]);
            buckets[begin as usize..end as usize]
                .iter()
                .for_each(|&bucket| self.push((bucket, document)));
        }
        Ok(())
    }

    fn rows(&mut self) -> Result<RecordBatch, String> {
        let (mut numbers, mut packed) = (Vec::new(), BinaryBuilder::new());
        for (number, part) in self.parts.iter_mut().enumerate() {
            if !part.is_empty() {
                numbers.push(number as i32);
                packed.append_value(std::mem::take(part));
            }
        }
        self.held = 0;
        RecordBatch::try_from_iter([
            ("part", Arc::new(Int32Array::from(numbers)) as ArrayRef),
            ("members", Arc::new(packed.finish())),
        ])
        .map_err(|error| error.to_string())
    }
}

#[pymethods]
impl BucketParts {
    #[new]
    fn new() -> Self {
        Self {
            parts: vec![Vec::new(); 1 << PART_BITS],
            held: 0,
        }
    }

    fn __len__(&self) -> usize {
        self.held
    }

    fn add_documents(&mut self, py: Python<'_>, batch: PyArrowType<RecordBatch>) -> PyResult<()> {
        py.detach(|| self.push_documents(&batch.0))
            .map_err(PyValueError::new_err)
    }

    fn add_shared(&mut self, py: Python<'_>, batch: PyArrowType<RecordBatch>) -> PyResult<()> {
        py.detach(|| -> Result<(), String> {
            for member in shared(members(&batch.0)?) {
                self.push(member);
            }
            Ok(())
        })
        .map_err(PyValueError::new_err)
    }

    fn drain(&mut self, py: Python<'_>) -> PyResult<PyArrowType<RecordBatch>> {
        py.detach(|| self.rows())
            .map(PyArrowType)
            .map_err(PyValueError::new_err)
    }
}

/// `BucketPairs` of the Python module.
#[pyclass]
struct BucketPairs {
    pair_bucket: usize,
    pairs: Vec<(i64, i64)>,
    /// How many pairs were left when they were last rid of repetitions.
    distinct: usize,
    crowded: Vec<Member>,
}

impl BucketPairs {
    fn push(&mut self, mut members: Vec<Member>) {
        members.sort_unstable();
        members.dedup();
        for bucket in members.chunk_by(|one, next| one.0 == next.0) {
            if bucket.len() > self.pair_bucket {
                self.crowded.extend_from_slice(bucket);
                continue;
            }
            for (place, one) in bucket.iter().enumerate() {
                self.pairs
                    .extend(bucket[place + 1..].iter().map(|other| (one.1, other.1)));
            }
        }
        if self.pairs.len() > 2 * self.distinct + REPEATED {
            self.once();
        }
    }

    /// Near copies that differ in few bands meet in many buckets.
    fn once(&mut self) {
        self.pairs.sort_unstable();
        self.pairs.dedup();
        self.distinct = self.pairs.len();
    }

    fn rows(&mut self) -> Result<RecordBatch, String> {
        self.once();
        let (pairs, crowded) = (std::mem::take(&mut self.pairs), std::mem::take(&mut self.crowded));
        self.distinct = 0;
        let n = pairs.len() + crowded.len();
        let builder = || Int64Builder::with_capacity(n);
        let (mut buckets, mut documents, mut others) = (builder(), builder(), builder());
        buckets.append_nulls(pairs.len());
        for &(document, other) in &pairs {
            documents.append_value(document);
            others.append_value(other);
        }
        for &(bucket, document) in &crowded {
            buckets.append_value(bucket);
            documents.append_value(document);
        }
        others.append_nulls(crowded.len());
        RecordBatch::try_from_iter_with_nullable([
            ("bucket", Arc::new(buckets.finish()) as ArrayRef, true),
            ("document", Arc::new(documents.finish()), true),
            ("other", Arc::new(others.finish()), true),
        ])
        .map_err(|error| error.to_string())
    }
}

#[pymethods]
impl BucketPairs {
    #[new]
    fn new(pair_bucket: usize) -> Self {
        Self {
            pair_bucket,
            pairs: Vec::new(),
            distinct: 0,
            crowded: Vec::new(),
        }
    }

    fn __len__(&self) -> usize {
        self.pairs.len() + self.crowded.len()
    }

    fn add(&mut self, py: Python<'_>, batch: PyArrowType<RecordBatch>) -> PyResult<()> {
        py.detach(|| members(&batch.0).map(|members| self.push(members)))
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
    module.add_class::<BucketPairs>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::Array;

    #[test]
    fn buckets_of_the_same_members_get_one_name_and_lone_members_go() {
        let members = vec![(1, 5), (2, 9), (1, 6), (3, 6), (3, 5), (4, 7), (5, 5), (5, 9)];
        let name = 5 ^ 6;
        assert_eq!(
            shared(members),
            [(name, 5), (name, 6), (name, 5), (name, 6), (5 ^ 9, 5), (5 ^ 9, 9)]
        );
    }

    #[test]
    fn a_pair_comes_once_and_a_large_bucket_stays_a_crowd() {
        let mut pairs = BucketPairs::new(2);
        pairs.push(vec![(7, 2), (7, 1), (7, 2)]);
        pairs.push(vec![(8, 1), (8, 2)]);
        pairs.push(vec![(9, 1), (9, 2), (9, 3)]);
        assert_eq!((pairs.pairs.len(), pairs.crowded.len()), (2, 3));
        let rows = pairs.rows().unwrap();
        assert_eq!((rows.num_rows(), pairs.__len__()), (4, 0));
        let documents = int64_column(&rows, "document").unwrap();
        assert_eq!(documents.values(), &[1, 1, 2, 3]);
        assert_eq!(column(&rows, "other").unwrap().null_count(), 3);
        assert_eq!(column(&rows, "bucket").unwrap().null_count(), 1);
    }

    #[test]
    fn parts_are_told_by_the_first_bits_of_a_bucket_and_come_back_as_they_went() {
        let mut parts = BucketParts::new();
        let given = [(-1, 4), (3, -9), (i64::MIN, 5), (-1, 6)];
        given.iter().for_each(|&member| parts.push(member));
        let rows = parts.rows().unwrap();
        let numbers = rows.column(0).as_primitive::<arrow_array::types::Int32Type>();
        assert_eq!(numbers.values(), &[0, 2048, 4095]);
        assert_eq!(
            members(&rows).unwrap(),
            [(3, -9), (i64::MIN, 5), (-1, 4), (-1, 6)]
        );
    }
}
