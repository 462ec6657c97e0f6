"""Packed rows as text: the pieces of documents in a sequence, decoded by the tokenizer that made them.

    >>> for piece in pieces_of_row(row, Tokenizer.from_str(stored.content), token_bytes=2):
    ...     piece.doc_id, piece.doc_offset, piece.text
    ('0bdb95145ec316b822162682277572db', 0, 'A first document.<|endoftext|>')

The text of a piece includes its special tokens, so that one sees where the sequence separates documents.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from factory.explain.named_state import NamedState
from factory.explain.tables import documents_of
from factory.explain.tokenizers import tokenizer_of_packed
from factory.lake.names import TableName, dataset_of_packed
from factory.lake.schemas.packing import TOKEN_BYTES
from factory.lake.tables import Lake


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


def pieces_of_row(
    row: Mapping[str, Any], tokenizer: Tokenizer, token_bytes: int, names: Mapping[str, str] | None = None
) -> list[PackedPiece]:
    """Return the pieces of a row of PACKED, whose tokens have `token_bytes` bytes, in their order."""
    tokens = np.frombuffer(row["tokens"], f"<u{token_bytes}")
    pieces = []
    start = 0
    for segment in row["segments"]:
        end = start + segment["length"]
        text = tokenizer.decode(tokens[start:end].tolist(), skip_special_tokens=False)
        name = (names or {}).get(segment["doc_id"])
        pieces.append(PackedPiece(segment["doc_id"], name, segment["doc_offset"], segment["length"], text))
        start = end
    return pieces
