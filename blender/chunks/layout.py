"""The places of the tokens of a piece: in their rows, in their documents, and in the chunk.

A run is one part of a row (or document) that the rank computes. A stretch is the longest part of a run within
one document, or within the padding of one row. All arrays have one entry a stretch, run or document, so their
size does not grow with the number of tokens.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from blender.arrays import as_numpy
from blender.chunks.piece import Piece

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Documents:
    """The documents of all rows that have a token, in order."""

    rows: Integers
    """The row of each document."""
    numbers: Integers
    """The number of each document in its row."""
    starts: Integers
    """The place of each document in its row."""
    lengths: Integers
    """Tokens of each document."""
    row_starts: Integers
    """The index of each row's first document, and the number of documents; shape [rows + 1]."""
    n_tokens: Integers
    """Tokens of each row."""

    @classmethod
    def of_column(cls, segment_lengths: pa.ListArray) -> Documents:
        """The documents of rows by their lengths; a length of 0 is no document."""
        offsets, lengths = list_values(segment_lengths)
        if not (lengths > 0).all():
            offsets = ends_of(lengths > 0)[offsets]
            lengths = lengths[lengths > 0]
        rows = np.repeat(np.arange(len(segment_lengths)), np.diff(offsets))
        ends = ends_of(lengths)
        return cls(
            rows=rows,
            numbers=np.arange(len(lengths)) - offsets[rows],
            starts=ends[:-1] - ends[offsets[rows]],
            lengths=lengths,
            row_starts=offsets,
            n_tokens=np.diff(ends[offsets]),
        )


@dataclass(frozen=True)
class Layout:
    """The stretches and runs of a chunk, in order."""

    begins: Integers
    """The index in the chunk of each stretch's first token."""
    lengths: Integers
    """Tokens of each stretch, with padding."""
    n_tokens: Integers
    """Tokens of each stretch, without padding, which follows them."""
    rows: Integers
    """The row of each stretch."""
    numbers: Integers
    """The number in its row of each stretch's document, or of the padding after the documents."""
    positions: Integers
    """The position in its document of each stretch's first token."""
    places: Integers
    """The place in its row of each stretch's first token."""
    is_end: npt.NDArray[np.bool_]
    """Whether the last token of a document lies in the stretch."""
    run_rows: Integers
    """The row of each run."""
    run_stops: Integers
    """The index in the chunk behind each run."""
    next_places: Integers
    """The place in its row of the token behind each run, or -1 if the row or document ends before it."""
    row_begins: Integers
    """The index in the chunk of each row's first token, and the size of the chunk; shape [rows + 1]."""

    @property
    def size(self) -> int:
        """Tokens of the chunk, with padding."""
        return int(self.row_begins[-1])

    @property
    def is_full(self) -> bool:
        """Whether the chunk has no padding."""
        return bool((self.n_tokens == self.lengths).all())

    def is_token(self) -> npt.NDArray[np.bool_]:
        """Whether each place of the chunk holds a token rather than padding; shape [size]."""
        counts = np.stack([self.n_tokens, self.lengths - self.n_tokens], axis=1).reshape(-1)
        return np.repeat(np.arange(len(counts)) % 2 == 0, counts)

    def counted_from(self, firsts: Integers) -> npt.NDArray[np.int32]:
        """Integers that count up from `firsts` in every stretch; shape [size]."""
        behind = (self.begins - firsts).astype(np.int32)
        return np.arange(self.size, dtype=np.int32) - np.repeat(behind, self.lengths)


def padded_length(sequence_length: int, piece: Piece) -> int:
    """Tokens of a row that `piece.of` ranks divide."""
    return -(-sequence_length // piece.n_parts) * piece.n_parts


def layout_of(documents: Documents, sequence_length: int, piece: Piece) -> Layout:
    """The layout of a piece of rows."""
    if piece.chunking == "row":
        return _layout_of_rows(documents, padded_length(sequence_length, piece), piece)
    return _layout_of_documents(documents, piece)


def _layout_of_rows(documents: Documents, length: int, piece: Piece) -> Layout:
    n_rows, width = len(documents.n_tokens), length // piece.n_parts
    runs = np.array(piece.parts) * width
    is_short = documents.n_tokens < length
    n_documents = np.diff(documents.row_starts)
    # Sections: the documents, then the paddings of short rows.
    rows = np.concatenate([documents.rows, np.flatnonzero(is_short)])
    numbers = np.concatenate([documents.numbers, n_documents[is_short]])
    starts = np.concatenate([documents.starts, documents.n_tokens[is_short]])
    stops = np.concatenate([documents.starts + documents.lengths, np.full(is_short.sum(), length)])
    is_document = np.arange(len(rows)) < len(documents.rows)
    # Their stretches in each run; shape [runs, sections].
    first = np.maximum(starts, runs[:, None])
    stop = np.minimum(stops, runs[:, None] + width)
    begin = (rows * len(runs) + np.arange(len(runs))[:, None]) * width + first - runs[:, None]
    run, section = np.nonzero(first < stop)
    order = np.argsort(begin[run, section])
    run, section = run[order], section[order]
    first, stop = first[run, section], stop[run, section]
    after = runs + width  # the places behind the runs of a row
    return Layout(
        begins=begin[run, section],
        lengths=stop - first,
        n_tokens=np.where(is_document[section], stop - first, 0),
        rows=rows[section],
        numbers=numbers[section],
        positions=first - starts[section],
        places=first,
        is_end=is_document[section] & (stop == stops[section]),
        run_rows=np.repeat(np.arange(n_rows), len(runs)),
        run_stops=np.arange(1, n_rows * len(runs) + 1) * width,
        next_places=np.where(after < documents.n_tokens[:, None], after, -1).reshape(-1),
        row_begins=np.arange(n_rows + 1) * width * len(runs),
    )


def _layout_of_documents(documents: Documents, piece: Piece) -> Layout:
    """Every run is a stretch; its padding belongs to its document."""
    parts, lengths = np.array(piece.parts), documents.lengths[:, None]
    widths = -(-lengths // piece.n_parts)
    first = widths * parts  # the positions of the runs in each document; shape [documents, runs]
    n_tokens = np.clip(lengths - first, 0, widths)
    places = documents.starts[:, None] + first
    run_lengths = np.repeat(widths, len(parts))
    run_ends = ends_of(run_lengths)
    run_rows = np.repeat(documents.rows, len(parts))
    return Layout(
        begins=run_ends[:-1],
        lengths=run_lengths,
        n_tokens=n_tokens.reshape(-1),
        rows=run_rows,
        numbers=np.repeat(documents.numbers, len(parts)),
        positions=first.reshape(-1),
        places=places.reshape(-1),
        is_end=((n_tokens > 0) & (first + n_tokens == lengths)).reshape(-1),
        run_rows=run_rows,
        run_stops=run_ends[1:],
        next_places=np.where(first + widths < lengths, places + widths, -1).reshape(-1),
        row_begins=run_ends[documents.row_starts * len(parts)],
    )


def list_values(lists: pa.ListArray) -> tuple[Integers, Integers]:
    """The index of each list's first value, and the number of values; and the values of all lists."""
    offsets = as_numpy(lists.offsets).astype(np.int64)
    values = as_numpy(lists.values)[offsets[0] : offsets[-1]].astype(np.int64)
    return offsets - offsets[0], values


def ends_of(lengths: npt.NDArray[Any]) -> Integers:
    """0 and the sums of the first lengths; shape [lengths + 1]."""
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
