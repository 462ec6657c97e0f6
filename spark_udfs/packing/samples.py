"""Rows of one document each, cut and joined with pictures in Spark's Python workers.

    document   tokens [7, 310, 92, 7, 551, 0]   two pictures (token 7), rows of at most 4 tokens
    rows       [7, 310, 92, 7]   images [{position: 0, ...}, {position: 3, ...}]
               [551, 0]          images []

Documents come by first ordinal, and the rows of one have consecutive ordinals.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from factory.errors import ConfigurationError
from factory.lake.schemas.images import IMAGES, PACKED_IMAGES, with_images
from factory.lake.schemas.packing import PACKED
from spark_udfs.column_fetch import Batches, ReadColumn
from spark_udfs.packing.tokenize import token_type

CONTENT_LEAF = f"{IMAGES}.list.element.content"  # read alone, as a list of structs with this one field

_FACTS = [field for field in PACKED_IMAGES.type.value_type if field.name not in ("position", "content")]
FACTS = tuple(field.name for field in _FACTS)  # small, so they come as columns

_WITH_IMAGES = with_images(PACKED, PACKED_IMAGES).columns
_SEGMENTS = PACKED.columns.field("segments").type
_BATCH_BYTES = 8 << 20  # pictures of a batch to the JVM, if no document alone has more

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class SampleRows:
    """The facts that the rows of a table share; `image_token` is None in a table without pictures."""

    sequence_length: int
    token_bytes: int
    append: int = 0
    image_token: int | None = None


@dataclass(frozen=True)
class _Cuts:
    """The rows that the documents of a batch become; shapes [rows]."""

    document: Ints
    """The number of its document in the batch."""
    number: Ints
    """Its number among the rows of the document."""
    offset: Ints
    """Its first token in the document."""
    length: Ints
    """Its tokens."""


def text_rows(batches: Batches, rows: SampleRows) -> Iterator[pa.RecordBatch]:
    """Yield rows of `PACKED` for documents (ordinal, shard, doc_id, tokens, partition)."""
    for batch in batches:
        columns = _columns(batch, _cuts(batch, rows), rows)
        yield pa.RecordBatch.from_arrays([columns[name] for name in PACKED.names], schema=PACKED.columns)


def image_rows(batches: Batches, read: ReadColumn, rows: SampleRows) -> Iterator[pa.RecordBatch]:
    """Yield rows of `PACKED` with `PACKED_IMAGES` for documents with further columns file, row and `FACTS`.

    `read` reads the pictures of documents. Raises ConfigurationError for a document with more or fewer
    pictures than tokens of pictures.
    """
    for batch in batches:
        first, n_bytes = 0, 0
        contents: list[pa.Array] = []
        for number in range(batch.num_rows):
            contents.append(_contents(batch.slice(number, 1), read))
            n_bytes += contents[-1].nbytes
            if n_bytes >= _BATCH_BYTES or number + 1 == batch.num_rows:
                yield _with_images(batch.slice(first, number + 1 - first), contents, rows)
                first, n_bytes, contents = number + 1, 0, []


def _with_images(documents: pa.RecordBatch, contents: Sequence[pa.Array], rows: SampleRows) -> pa.RecordBatch:
    cuts = _cuts(documents, rows)
    tokens = np.frombuffer(_joined(documents["tokens"]), dtype=token_type(rows.token_bytes))
    places = np.flatnonzero(tokens == rows.image_token)
    ends = np.cumsum(cuts.length)
    row_of_place = np.searchsorted(ends, places, side="right")
    _require_pictures(documents, cuts.document[row_of_place], contents)
    arrays = {
        "position": pa.array(places - (ends - cuts.length)[row_of_place], pa.int32()),
        **{field.name: _values(documents[field.name], field.type) for field in _FACTS},
        "content": pa.concat_arrays(contents),
    }
    kind = PACKED_IMAGES.type.value_type
    images = pa.StructArray.from_arrays([arrays[field.name] for field in kind], fields=list(kind))
    counts = np.bincount(row_of_place, minlength=len(ends))
    offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32())
    columns = {
        **_columns(documents, cuts, rows),
        IMAGES: pa.ListArray.from_arrays(offsets, images, type=PACKED_IMAGES.type),
    }
    return pa.RecordBatch.from_arrays([columns[name] for name in _WITH_IMAGES.names], schema=_WITH_IMAGES)


def _require_pictures(
    documents: pa.RecordBatch, document_of_place: Ints, contents: Sequence[pa.Array]
) -> None:
    """Raise ConfigurationError if a document has more or fewer pictures than placeholders."""
    n_places = np.bincount(document_of_place, minlength=documents.num_rows)
    for doc_id, n, pictures in zip(documents["doc_id"].to_pylist(), n_places, contents, strict=True):
        if n != len(pictures):
            raise ConfigurationError(
                f"Document {doc_id} has {n} tokens of pictures, and its raw table has {len(pictures)} "
                "pictures of the same document. It has changed since: materialize all later tables again."
            )


def _contents(document: pa.RecordBatch, read: ReadColumn) -> pa.Array:
    """Return the pictures of one document, a binary array."""
    (names,) = document[FACTS[0]]
    if not names.is_valid or not len(names.values):
        return pa.array([], pa.binary())
    (content,) = _elements(read(document)).flatten()
    return content.cast(pa.binary())


def _values(lists: pa.ListArray, kind: pa.DataType) -> pa.Array:
    """Return the values of all lists; Spark leaves out the offsets of strings if there are no values."""
    values = _elements(lists)
    return values.cast(kind) if len(values) else pa.array([], kind)


def _elements(lists: pa.ListArray) -> pa.Array:
    first, last = lists.offsets[0].as_py(), lists.offsets[-1].as_py()
    return lists.values.slice(first, last - first)


def _joined(tokens: pa.BinaryArray) -> pa.Buffer:
    """Return the bytes of all values, without a copy."""
    _, offsets, values = tokens.buffers()
    ends = np.frombuffer(offsets, dtype=np.int32)[tokens.offset : tokens.offset + len(tokens) + 1]
    return values.slice(int(ends[0]), int(ends[-1] - ends[0]))


def _cuts(documents: pa.RecordBatch, rows: SampleRows) -> _Cuts:
    lengths = pc.binary_length(documents["tokens"]).to_numpy().astype(np.int64) // rows.token_bytes
    n_rows = -(-lengths // rows.sequence_length)
    document = np.repeat(np.arange(len(lengths)), n_rows)
    number = np.arange(len(document)) - np.repeat(np.cumsum(n_rows) - n_rows, n_rows)
    offset = number * rows.sequence_length
    length = np.minimum(lengths[document] - offset, rows.sequence_length)
    return _Cuts(document, number, offset, length)


def _columns(documents: pa.RecordBatch, cuts: _Cuts, rows: SampleRows) -> dict[str, pa.Array]:
    """Return the columns of `PACKED`; the rows of a document are windows on its tokens, without a copy."""
    n = len(cuts.document)
    document = pa.array(cuts.document)
    ends = np.concatenate([[0], np.cumsum(cuts.length * rows.token_bytes)]).astype(np.int32)
    segments = pa.StructArray.from_arrays(
        [documents["doc_id"].take(document), pa.array(cuts.offset), pa.array(cuts.length)],
        fields=list(_SEGMENTS.value_type),
    )
    return {
        "ordinal": pa.array(documents["ordinal"].to_numpy()[cuts.document] + cuts.number),
        "tokens": pa.BinaryArray.from_buffers(
            pa.binary(), n, [None, pa.py_buffer(ends.tobytes()), _joined(documents["tokens"])]
        ),
        "n_tokens": pa.array(cuts.length),
        "segments": pa.ListArray.from_arrays(
            pa.array(np.arange(n + 1), pa.int32()), segments, type=_SEGMENTS
        ),
        "append": pa.array(np.full(n, rows.append, dtype=np.int64)),
        "shard": documents["shard"].take(document),
        "chunk": pa.array(np.zeros(n, dtype=np.int64)),
        "partition": documents["partition"].take(document),
    }
