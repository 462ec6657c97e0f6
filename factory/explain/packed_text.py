"""Packed rows as text: the pieces of documents in a sequence, decoded by the tokenizer that made them.

    >>> for piece in pieces_of_row(row, Tokenizer.from_str(stored.content), token_bytes=2):
    ...     piece.doc_id, piece.doc_offset, piece.text
    ('0bdb95145ec316b822162682277572db', 0, 'A first document.<|endoftext|>')

The text of a piece includes its special tokens, so that one sees where the sequence separates documents. A
picture is a phrase of its size and name, in place of its token.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from blender.catalog.blends import open_blends
from blender.records import ExplainedRow
from factory.explain.named_state import NamedState
from factory.explain.pictures import picture_phrase, without_bytes
from factory.explain.tables import documents_of
from factory.explain.tokenizers import tokenizer_of_packed
from factory.lake.names import TableName, dataset_of_packed
from factory.lake.schemas.images import IMAGES
from factory.lake.schemas.packing import TOKEN_BYTES
from factory.lake.tables import Lake
from factory.settings import Settings


@dataclass(frozen=True)
class PackedPiece:
    """The tokens of one document in a sequence; `name` is its source and key, if a raw table has it."""

    doc_id: str
    name: str | None
    doc_offset: int
    length: int
    text: str


def pieces_of(
    lake: Lake, state: NamedState, rows: Sequence[Mapping[str, Any]]
) -> list[list[PackedPiece]] | None:
    """Return the pieces of each row of a packed table; None if the lake lacks the tokenizer of its tokens."""
    tokenizer = tokenizer_of_packed(lake, state.table, state.snapshot_id)
    if tokenizer is None:
        return None
    token_bytes = int(lake.table(state.table).properties[TOKEN_BYTES])
    ids = sorted({segment["doc_id"] for row in rows for segment in row["segments"]})
    dataset = TableName(state.table.namespace, dataset_of_packed(state.table))
    documents = documents_of(lake, dataset, ids, ["source", "key"])
    names = {doc_id: f"{document['source']} / {document['key']}" for doc_id, document in documents.items()}
    decoder = Tokenizer.from_str(tokenizer.content)
    return [pieces_of_row(row, decoder, token_bytes, names) for row in rows]


def pieces_of_step(
    settings: Settings, blend: str, rows: Sequence[ExplainedRow]
) -> dict[int, list[PackedPiece]]:
    """Return the pieces of rows of a step of a blend, by their positions in the step.

    Omits rows of a table that does not say which documents they hold, and rows of a tokenizer that the lake
    lacks. Reads only the pages of these rows.
    """
    lake, pieces = Lake(settings), {}
    for source in open_blends(settings).open(blend).sources:
        of_source = [row for row in rows if row.source == source.config.name and row.segments]
        table, snapshot_id = TableName.parse(source.config.table), source.reader.snapshot_id
        tokenizer = tokenizer_of_packed(lake, table, snapshot_id) if of_source else None
        if tokenizer is None:
            continue
        decoder, token_bytes = (
            Tokenizer.from_str(tokenizer.content),
            int(source.reader.facts.token_bytes or 0),
        )
        ordinals = np.array([row.ordinal for row in of_source], np.int64)
        columns = [name for name in ("tokens", IMAGES) if name in source.reader.schema.names]
        sequences = source.reader.read(ordinals, tuple(columns)).select(columns).to_pylist()
        for row, sequence in zip(of_source, sequences, strict=True):
            segments = [asdict(segment) for segment in row.segments]
            pieces[row.row] = pieces_of_row({**sequence, "segments": segments}, decoder, token_bytes)
    return pieces


def pieces_of_row(
    row: Mapping[str, Any], tokenizer: Tokenizer, token_bytes: int, names: Mapping[str, str] | None = None
) -> list[PackedPiece]:
    """Return the pieces of a row of PACKED, in order, with or without pictures; a token has `token_bytes`."""
    tokens = np.frombuffer(row["tokens"], f"<u{token_bytes}")
    pictures = {image["position"]: picture_phrase(image) for image in without_bytes(row).get(IMAGES) or ()}
    pieces = []
    start = 0
    for segment in row["segments"]:
        end = start + segment["length"]
        text = _text(tokens, start, end, pictures, tokenizer)
        name = (names or {}).get(segment["doc_id"])
        pieces.append(PackedPiece(segment["doc_id"], name, segment["doc_offset"], segment["length"], text))
        start = end
    return pieces


def _text(tokens: np.ndarray, start: int, end: int, pictures: Mapping[int, str], tokenizer: Tokenizer) -> str:
    """Decode the tokens from `start` to `end`, with the phrases of `pictures` by their positions."""
    places = sorted(place for place in pictures if start <= place < end)
    phrases = ["", *(pictures[place] for place in places)]
    begins, ends = [start, *(place + 1 for place in places)], [*places, end]
    return "".join(
        phrase + tokenizer.decode(tokens[first:last].tolist(), skip_special_tokens=False)
        for phrase, first, last in zip(phrases, begins, ends, strict=True)
    )
