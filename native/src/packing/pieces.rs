//! Pieces of documents: the cuts of long documents, and the place of each piece in a sequence.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch};
use arrow_data::ArrayData;
use arrow_schema::{DataType, Field, Schema};

/// The longest sequence a plan may have, in tokens.
pub const LONGEST_SEQUENCE: u32 = 1 << 24;

/// A piece of a document, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Piece {
    pub sequence: u32,
    pub document: u32,
    pub offset: u64,
    pub length: u32,
}

/// The sequences that a document fills alone, as many as it takes to leave at most `capacity` tokens.
///
/// A document that fits fills none, not even with exactly `capacity` tokens: it stays whole.
pub fn full_chunks(length: u64, capacity: u32) -> u64 {
    if length <= u64::from(capacity) {
        0
    } else {
        length / u64::from(capacity)
    }
}

/// The tokens of a document after its full chunks.
pub fn remainder(length: u64, capacity: u32) -> u32 {
    (length - full_chunks(length, capacity) * u64::from(capacity)) as u32
}

/// All pieces, given the sequence of each document's remainder, sorted by (sequence, document, offset).
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

/// The capacity as the kernels take it, or an error.
pub fn checked_capacity(sequence_length: i64) -> Result<u32, String> {
    u32::try_from(sequence_length)
        .ok()
        .filter(|c| (1..=LONGEST_SEQUENCE).contains(c))
        .ok_or_else(|| {
            format!("The sequence length is {sequence_length} tokens. Use 1 to {LONGEST_SEQUENCE}.")
        })
}

/// Lengths as the kernels take them, or an error: no nulls, none negative, fewer than 2^32 pieces in total.
pub fn checked_lengths(lengths: &Int64Array, capacity: u32) -> Result<Vec<u64>, String> {
    if lengths.null_count() > 0 {
        return Err("A length is null. Pass every document's number of tokens.".to_owned());
    }
    let mut pieces = 0u64;
    for &length in lengths.values() {
        if length < 0 {
            return Err(format!("A length is {length}. Use zero or more tokens."));
        }
        pieces = pieces.saturating_add(full_chunks(length as u64, capacity) + 1);
    }
    if pieces >= u64::from(u32::MAX) {
        return Err(format!(
            "A plan has {pieces} pieces, more than {}. Pack fewer documents in a chunk.",
            u32::MAX - 1
        ));
    }
    Ok(lengths.values().iter().map(|&length| length as u64).collect())
}

/// `data` as an array of 64-bit integers, or an error.
pub fn int64(name: &str, data: ArrayData) -> Result<Int64Array, String> {
    match data.data_type() {
        DataType::Int64 => Ok(Int64Array::from(data)),
        other => Err(format!("`{name}` has type {other}. Pass an array of int64.")),
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
