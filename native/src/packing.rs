//! The sequence each piece of text goes to, by best-fit decreasing.
//!
//! Pieces are placed from the longest to the shortest, each in the open sequence with the least free
//! space that still holds it (Ding et al., "Fewer Truncations Improve Language Modeling", 2024).
//!
//! Equal pieces are placed together: after a sequence took one, what is left of it is again the least
//! sufficient space as long as it holds another. Ties go to the earlier piece.

use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, UInt32Array, make_array};
use arrow_data::ArrayData;
use arrow_pyarrow::PyArrowType;
use arrow_schema::{DataType, Field, Schema};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::Arc;

use amounts::ByAmount;
pub use exact_fit::fewest_sequences;

mod amounts;
mod exact_fit;

/// The sequence of a piece of length zero.
pub const NOT_PLACED: u32 = u32::MAX;

/// The longest sequence a plan may have, in tokens.
pub const LONGEST_SEQUENCE: u32 = 1 << 24;

/// The sequence of every piece (`NOT_PLACED` for length zero) and the number of sequences.
///
/// No length may exceed `capacity`; sequences are numbered in the order in which they were opened.
pub fn best_fit_decreasing(lengths: &[u32], capacity: u32) -> (Vec<u32>, u32) {
    let mut ends = vec![0u32; capacity as usize + 2];
    for &length in lengths {
        ends[length as usize] += 1;
    }
    let mut start = 0;
    for end in ends.iter_mut().rev() {
        let count = *end;
        *end = start;
        start += count;
    }
    // `ends[length]` is where the pieces of that length begin, longest first, and moves to where they end.
    let mut by_length = vec![0u32; lengths.len()];
    for (piece, &length) in lengths.iter().enumerate() {
        let position = &mut ends[length as usize];
        by_length[*position as usize] = piece as u32;
        *position += 1;
    }
    let mut sequences = vec![NOT_PLACED; lengths.len()];
    let mut open = ByAmount::new(capacity); // sequences by free space
    let mut n_sequences = 0u32;
    let mut first = 0;
    while first < by_length.len() {
        let length = lengths[by_length[first] as usize];
        if length == 0 {
            break;
        }
        let end = ends[length as usize] as usize;
        while first < end {
            let (sequence, free) = open.take_least(length).unwrap_or_else(|| {
                n_sequences += 1;
                (n_sequences - 1, capacity)
            });
            let together = (end - first).min((free / length) as usize);
            for &piece in &by_length[first..first + together] {
                sequences[piece as usize] = sequence;
            }
            first += together;
            let left = free - together as u32 * length;
            if left > 0 {
                open.insert(sequence, left);
            }
        }
    }
    (sequences, n_sequences)
}

/// A piece of a document: where it begins and how long it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Piece {
    pub sequence: u32,
    pub document: u32,
    pub offset: u64,
    pub length: u32,
}

/// The whole sequences a document fills by itself: as many as are needed to bring the rest below or to `capacity`.
///
/// A document that fits fills none, not even where it has exactly `capacity` tokens: it stays whole.
pub fn full_chunks(length: u64, capacity: u32) -> u64 {
    if length <= u64::from(capacity) {
        0
    } else {
        length / u64::from(capacity)
    }
}

/// What is left of a document after its full chunks.
pub fn remainder(length: u64, capacity: u32) -> u32 {
    (length - full_chunks(length, capacity) * u64::from(capacity)) as u32
}

/// Every token's place, given the sequence of each document's remainder: pieces by (sequence, document, offset).
///
/// Full chunks come after the `n_sequences` sequences of the remainders.
pub fn placements(lengths: &[u64], capacity: u32, sequences: &[u32], n_sequences: u32) -> Vec<Piece> {
    let mut pieces = Vec::with_capacity(lengths.len());
    let mut next = n_sequences;
    for (document, (&length, &sequence)) in lengths.iter().zip(sequences).enumerate() {
        let chunks = full_chunks(length, capacity);
        let document = document as u32;
        for chunk in 0..chunks {
            let offset = chunk * u64::from(capacity);
            pieces.push(Piece {
                sequence: next,
                document,
                offset,
                length: capacity,
            });
            next += 1;
        }
        let length = remainder(length, capacity);
        if length > 0 {
            pieces.push(Piece {
                sequence,
                document,
                offset: chunks * u64::from(capacity),
                length,
            });
        }
    }
    pieces.sort_unstable();
    pieces
}

/// The capacity as the kernels take it, or a sentence.
pub fn checked_capacity(sequence_length: i64) -> Result<u32, String> {
    u32::try_from(sequence_length)
        .ok()
        .filter(|c| (1..=LONGEST_SEQUENCE).contains(c))
        .ok_or_else(|| {
            format!(
                "A sequence of {sequence_length} tokens cannot be packed. \
             Use a sequence length from 1 to {LONGEST_SEQUENCE}."
            )
        })
}

/// Lengths as the kernels take them, or a sentence: no nulls, nothing negative, fewer than 2^32 pieces in all.
pub fn checked_lengths(lengths: &Int64Array, capacity: u32) -> Result<Vec<u64>, String> {
    if lengths.null_count() > 0 {
        return Err("A length is null. Give every document its number of tokens.".to_owned());
    }
    let mut pieces = 0u64;
    for &length in lengths.values() {
        if length < 0 {
            return Err(format!(
                "A length is {length}. Give every document a number of tokens of zero or more."
            ));
        }
        pieces = pieces.saturating_add(full_chunks(length as u64, capacity) + 1);
    }
    if pieces >= u64::from(u32::MAX) {
        return Err(format!(
            "{pieces} pieces are too many for one plan. Pack in chunks of fewer documents."
        ));
    }
    Ok(lengths.values().iter().map(|&length| length as u64).collect())
}

/// `data` as an array of 64-bit integers, or a sentence.
pub fn int64(name: &str, data: ArrayData) -> Result<Int64Array, String> {
    match data.data_type() {
        DataType::Int64 => Ok(Int64Array::from(data)),
        other => Err(format!("`{name}` has type {other}. Give an array of int64.")),
    }
}

/// Pieces as a batch of (document, doc_offset, length, sequence).
pub fn batch(pieces: &[Piece]) -> Result<RecordBatch, String> {
    fn column(pieces: &[Piece], value: impl Fn(&Piece) -> i64) -> ArrayRef {
        Arc::new(pieces.iter().map(|p| Some(value(p))).collect::<Int64Array>())
    }
    let fields =
        ["document", "doc_offset", "length", "sequence"].map(|n| Field::new(n, DataType::Int64, false));
    let columns = vec![
        column(pieces, |p| i64::from(p.document)),
        column(pieces, |p| p.offset as i64),
        column(pieces, |p| i64::from(p.length)),
        column(pieces, |p| i64::from(p.sequence)),
    ];
    RecordBatch::try_new(Arc::new(Schema::new(fields.to_vec())), columns).map_err(|error| error.to_string())
}

/// A way to give every piece its sequence: (sequences, number of sequences).
type Packing = fn(&[u32], u32) -> (Vec<u32>, u32);

fn sequences_of(lengths: ArrayData, sequence_length: i64, packing: Packing) -> Result<ArrayData, String> {
    let capacity = checked_capacity(sequence_length)?;
    let lengths = checked_lengths(&int64("lengths", lengths)?, capacity)?;
    if let Some(longest) = lengths.iter().find(|&&length| length > u64::from(capacity)) {
        return Err(format!(
            "A piece of {longest} tokens does not fit in a sequence of {capacity}. Split it first."
        ));
    }
    let lengths: Vec<u32> = lengths.into_iter().map(|length| length as u32).collect();
    let (sequences, _) = packing(&lengths, capacity);
    let placed: UInt32Array = sequences
        .iter()
        .map(|&s| (s != NOT_PLACED).then_some(s))
        .collect();
    Ok(make_array(placed.into_data()).to_data())
}

/// `sequences_of` for Python, without the interpreter's lock.
fn detached(
    py: Python<'_>,
    lengths: PyArrowType<ArrayData>,
    sequence_length: i64,
    packing: Packing,
) -> PyResult<PyArrowType<ArrayData>> {
    py.detach(|| sequences_of(lengths.0, sequence_length, packing))
        .map(PyArrowType)
        .map_err(PyValueError::new_err)
}

#[pyfunction]
#[pyo3(name = "best_fit_decreasing")]
fn best_fit_decreasing_py(
    py: Python<'_>,
    lengths: PyArrowType<ArrayData>,
    sequence_length: i64,
) -> PyResult<PyArrowType<ArrayData>> {
    detached(py, lengths, sequence_length, best_fit_decreasing)
}

#[pyfunction]
#[pyo3(name = "fewest_sequences")]
fn fewest_sequences_py(
    py: Python<'_>,
    lengths: PyArrowType<ArrayData>,
    sequence_length: i64,
) -> PyResult<PyArrowType<ArrayData>> {
    detached(py, lengths, sequence_length, fewest_sequences)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(best_fit_decreasing_py, module)?)?;
    module.add_function(wrap_pyfunction!(fewest_sequences_py, module)?)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The same by a scan over all open sequences.
    fn by_scan(lengths: &[u32], capacity: u32) -> usize {
        let mut order: Vec<u32> = lengths.iter().copied().filter(|&l| l > 0).collect();
        order.sort_unstable_by(|a, b| b.cmp(a));
        let mut free: Vec<u32> = Vec::new();
        for length in order {
            match free.iter_mut().filter(|f| **f >= length).min() {
                Some(f) => *f -= length,
                None => free.push(capacity - length),
            }
        }
        free.len()
    }

    fn is_valid(lengths: &[u32], capacity: u32, sequences: &[u32], n_sequences: u32) -> bool {
        let mut used = vec![0u64; n_sequences as usize];
        for (&length, &sequence) in lengths.iter().zip(sequences).filter(|(l, _)| **l > 0) {
            used[sequence as usize] += u64::from(length);
        }
        lengths
            .iter()
            .zip(sequences)
            .all(|(&l, &s)| (l == 0) == (s == NOT_PLACED))
            && used.iter().all(|&u| 0 < u && u <= u64::from(capacity))
    }

    proptest! {
        #[test]
        fn sequences_are_as_many_as_by_scan_and_none_overflows(
            (capacity, lengths) in (1u32..9000).prop_flat_map(|c| (Just(c), prop::collection::vec(0..=c, 0..300)))
        ) {
            let (sequences, n) = best_fit_decreasing(&lengths, capacity);
            prop_assert_eq!(n as usize, by_scan(&lengths, capacity));
            prop_assert!(is_valid(&lengths, capacity, &sequences, n));
        }

        #[test]
        fn every_token_has_one_place(lengths in prop::collection::vec(0u64..5000, 0..50), capacity in 1u32..1200) {
            let rest: Vec<u32> = lengths.iter().map(|&l| remainder(l, capacity)).collect();
            let (sequences, n) = best_fit_decreasing(&rest, capacity);
            let mut pieces = placements(&lengths, capacity, &sequences, n);
            prop_assert!(pieces.is_sorted());
            pieces.sort_unstable_by_key(|p| (p.document, p.offset));
            let mut reached = vec![0u64; lengths.len()];
            for piece in pieces {
                prop_assert_eq!(piece.offset, reached[piece.document as usize]);
                prop_assert!(0 < piece.length && piece.length <= capacity);
                reached[piece.document as usize] += u64::from(piece.length);
            }
            prop_assert_eq!(reached, lengths);
        }
    }

    #[test]
    fn a_document_of_exactly_the_capacity_stays_whole_and_one_more_token_splits_it() {
        assert_eq!((full_chunks(8, 8), remainder(8, 8)), (0, 8));
        assert_eq!((full_chunks(9, 8), remainder(9, 8)), (1, 1));
        assert_eq!((full_chunks(16, 8), remainder(16, 8)), (2, 0));
        assert_eq!((full_chunks(0, 8), remainder(0, 8)), (0, 0));
    }
}
