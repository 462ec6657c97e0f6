"""Packed rows for ranks of another cp, from the chunks that hold their tokens.

    may_be_cut(footer, dp)                          # by the shapes alone, before a chunk is read
    are_cut_evenly(facts, chunks=4, cp=4)           # by the length of the rows
    joined_rows(columns, runs_of(1, 4, 4, "zigzag"))

Where ranks divide rows, and both cps divide them without padding, a chunk for one cp is several neighbors of
the other, or a part of one. Only the token after it changes. Other rows are put together from all chunks
(`stored_rows`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from blender.chunks import Piece
from blender.chunks.cutting import NEXT_TOKENS
from blender.chunks.piece import CHUNK
from blender.global_batches.format.columns import ROW_FACTS, Array
from blender.global_batches.format.cut import ChunkRun
from blender.global_batches.format.footer import Footer
from blender.ipc import from_ipc
from factory.lake.schemas.packing import SEQUENCE_LENGTH

TOKENS = "tokens"


def may_be_cut(footer: Footer, dp: int) -> bool:
    """Whether several ranks divide rows, as the shapes have it, and not documents."""
    shapes = {column.name: column.shape(dp) for column in footer.columns}
    return NEXT_TOKENS in shapes and shapes[NEXT_TOKENS] == (shapes[TOKENS][0], 1)


def are_cut_evenly(facts: Array, chunks: int, cp: int) -> bool:
    """Whether rows in so many chunks are cut for `cp` ranks without padding; `facts` is their column."""
    metadata = from_ipc(facts.data).schema.field(TOKENS).metadata
    piece = Piece.from_text(metadata[CHUNK.encode()].decode())
    length = int(metadata[SEQUENCE_LENGTH.encode()])
    return piece.chunking == "row" and length % chunks == 0 and length % (2 * cp) == 0


def joined_rows(columns: Mapping[int, Mapping[str, Array]], runs: Sequence[ChunkRun]) -> dict[str, Array]:
    """The columns of a rank: its tokens, the token after each run, and the facts of the whole rows."""
    tokens, following = [], []
    for run in runs:
        whole = np.concatenate([columns[chunk][TOKENS] for chunk in range(run.first, run.stop)], axis=1)
        width = whole.shape[1] // run.parts
        begin, end = run.part * width, (run.part + 1) * width
        tokens.append(whole[:, begin:end])
        last = columns[run.stop - 1][NEXT_TOKENS]
        following.append(last if end == whole.shape[1] else whole[:, end : end + 1])
    facts = next(arrays[ROW_FACTS] for arrays in columns.values() if ROW_FACTS in arrays)
    return {
        TOKENS: np.concatenate(tokens, axis=1),
        NEXT_TOKENS: np.concatenate(following, axis=1),
        ROW_FACTS: facts.copy(),
    }
