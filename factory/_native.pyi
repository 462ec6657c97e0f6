"""The native kernels: Arrow in, Arrow out; no I/O and no settings (sources: `native/src`)."""

import pyarrow as pa

__source_hash__: str
"""A hash of the kernels' sources, part of the code version of every table."""

def fingerprint(batch: pa.RecordBatch, columns: list[str]) -> bytes:
    """The sum over the rows of `batch` of a 128-bit hash of `columns`, as 16 little-endian bytes.

    Independent of row order, of the order of columns and of the physical width of integers and strings;
    nulls add nothing. Raises ValueError for an unknown column or a type without a fingerprint.
    """

def text_signals(texts: pa.StringArray | pa.LargeStringArray, names: list[str]) -> pa.RecordBatch:
    """The values of the signals `names` for each text: one nullable float64 column a name, in that order.

    A signal is the number a filter rule of the same name measures (`docs/filters.md`). A null text has null
    values, and so has a text to which a signal does not apply. Raises ValueError for an unknown name, an
    array of another type or a text of more than 4 GiB.
    """

def text_signal_names() -> list[str]:
    """The names `text_signals` knows."""

def character_boundaries(kind: str) -> list[int]:
    """The code points at which membership of a class of characters begins or ends, ascending.

    Even positions begin a range, odd ones end it (exclusive). `kind` is `space` (White_Space), `letter`
    (Alphabetic) or `alphanumeric` (letters and all numbers); raises ValueError for another.
    """

# -- packing (native/src/packing.rs, native/src/packing_runs.rs)

def best_fit_decreasing(lengths: pa.Int64Array, sequence_length: int) -> pa.UInt32Array:
    """The sequence of each piece by best-fit decreasing, numbered as opened; null for a piece of length zero.

    Raises ValueError where a length is null, negative or above `sequence_length` tokens.
    """

def plan_sequences(
    lengths: pa.Int64Array,
    repositories: pa.Int64Array,
    dependents: pa.Int64Array,
    dependencies: pa.Int64Array,
    sequence_length: int,
    slack: float,
) -> pa.RecordBatch:
    """The plan of one chunk as int64 rows (document, doc_offset, length, sequence), by sequence and document.

    `lengths` are the tokens of the documents in order of (repository, place), documents being named by
    their position there; `repositories` changes its value where another repository begins. Dependency i
    says that document `dependents[i]` depends on `dependencies[i]`. Documents above `sequence_length` are
    cut in full sequences and a remainder, all others stay whole. Up to the share `slack` more sequences
    than tokens require may be spent on bringing dependents and dependencies together.
    """

def plan_next_fit(
    lengths: pa.Int64Array, repositories: pa.Int64Array, sequence_length: int
) -> pa.RecordBatch:
    """Next-fit's plan of the same documents, to compare with: rows as those of `plan_sequences`."""
