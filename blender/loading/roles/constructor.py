"""The batches of buckets: rows of all loaders in the order of the plan, cut for each rank that reads them.

    constructor = DataConstructor(planner, loaders, encode=lambda rows: rows)
    constructor.make(offset=1_000, bucket=0)    # {View(piece=Piece(0, 2), tokens=True): RecordBatch, ...}
    constructor.rows(offset=1_000, bucket=0)    # RecordBatch: whole rows, to be stored

Ranks of a bucket that read the same view share one copy. The rows have two more columns than a blend's:
`microbatch` (int32), ascending, and `plan` (uint64), the hash of the plan.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
import pyarrow as pa

from blender.arrays import as_arrow
from blender.call_context import current_context
from blender.chunks import Chunking, Piece, cut, without_tokens
from blender.loading.plan import Plan
from blender.loading.roles.source_loader import Taken
from blender.loading.runtime.threads import Mailbox
from blender.loading.step import MICROBATCH, PLAN
from blender.loading.tree import Consumer

Encoded = TypeVar("Encoded")


@dataclass(frozen=True)
class View:
    """A rank's part of a bucket: a piece of every row, or of its lengths alone."""

    piece: Piece
    tokens: bool

    @classmethod
    def of(cls, consumer: Consumer, chunking: Chunking) -> View:
        """The view of a rank."""
        return cls(Piece(consumer.piece, consumer.pieces, chunking), consumer.needs_tokens)

    def cut(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows as this view has them."""
        if not self.tokens:
            return without_tokens(rows, self.piece)
        is_whole = self.piece == Piece()
        return rows if is_whole else cut(rows, self.piece)


class DataConstructor(Generic[Encoded]):
    """Makes the batches of buckets from the rows of loaders; safe for many threads."""

    def __init__(
        self,
        planner: Mailbox,
        loaders: Sequence[Mailbox],
        encode: Callable[[pa.RecordBatch], Encoded],
        chunking: Chunking = "row",
    ) -> None:
        """`encode` makes the output from the rows of a view."""
        self._planner, self._loaders, self._encode = planner, loaders, encode
        self._chunking = chunking

    def make(self, offset: int, bucket: int) -> dict[View, Encoded]:
        """The batch of a bucket by view; raises InvalidRequest, EndOfData and the errors of reading."""
        plan, rows = self._planned(offset, bucket)
        views = {
            View.of(consumer, self._chunking) for consumer in plan.consumers if consumer.bucket == bucket
        }
        return {view: self._encode(view.cut(rows)) for view in views}

    def rows(self, offset: int, bucket: int) -> pa.RecordBatch:
        """The rows of a bucket, before they are cut for its ranks; raises what `make` raises."""
        return self._planned(offset, bucket)[1]

    def _planned(self, offset: int, bucket: int) -> tuple[Plan, pa.RecordBatch]:
        """The plan of a step, and the rows of a bucket in its order."""
        takes = [loader.ask("take", offset, bucket) for loader in self._loaders]
        plan: Plan = self._planner.result("plan", offset)
        call = current_context()
        stalled = f"The rows of step {offset:,} did not arrive in time. Ask again, or raise the call's time."
        parts = [call.result(take, lambda: stalled) for take in takes]
        return plan, _collected(plan, bucket, parts)


def _collected(plan: Plan, bucket: int, parts: Sequence[Taken]) -> pa.RecordBatch:
    """The rows of all loaders in the order of the plan, with their microbatches and the plan's hash."""
    numbers = plan.rows_of_bucket(bucket)
    rows = parts[0].rows
    if len(parts) > 1:
        place = np.empty(len(plan.step), dtype=np.int64)
        place[np.concatenate([part.numbers for part in parts])] = np.arange(len(numbers))
        rows = pa.concat_batches([part.rows for part in parts]).take(as_arrow(place[numbers]))
    columns = [
        *rows.columns,
        as_arrow(plan.bin[numbers].astype(np.int32)),
        as_arrow(np.full(len(numbers), plan.hash, dtype=np.uint64)),
    ]
    schema = rows.schema.append(pa.field(MICROBATCH, pa.int32())).append(pa.field(PLAN, pa.uint64()))
    return pa.RecordBatch.from_arrays(columns, schema=schema)
