"""The batches of buckets: rows of all loaders in the order of the plan, cut for each rank that reads them.

    constructor = DataConstructor(planner, loaders, encode=lambda rows: rows)
    constructor.make(offset=1_000, bucket=0)    # {View(piece=Piece(0, 2), tokens=True): RecordBatch, ...}
    constructor.rows(offset=1_000, bucket=0)    # RecordBatch: whole rows, to be stored

Ranks of a bucket that read the same view share one copy. The rows have two more columns than a blend's:
`microbatch` (int32), ascending, and `plan` (uint64), the hash of the plan.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import pyarrow as pa

from blender.arrays import as_arrow
from blender.call_context import current_context
from blender.chunks import Chunking, Piece, cut, without_tokens
from blender.loading.pictures.encoders import EncoderPlaces
from blender.loading.pictures.handover import PictureHandover
from blender.loading.plan import Plan
from blender.loading.roles.assembly import Assembled, Assembly
from blender.loading.roles.picture_loader import Prepare
from blender.loading.roles.plan_programs import PlanProgram
from blender.loading.roles.source_loader import Taken
from blender.loading.runtime.threads import Mailbox
from blender.loading.step import MICROBATCH, PLAN
from blender.loading.tree import Consumer

Encoded = TypeVar("Encoded")


@dataclass(frozen=True)
class View:
    """A rank's part of a bucket: a piece of every row, or of its lengths alone, and pictures to encode."""

    piece: Piece
    tokens: bool
    nodes: tuple[int, ...] = ()
    """The nodes of the encoder whose pictures it has."""

    @classmethod
    def of(cls, consumer: Consumer, chunking: Chunking, nodes: tuple[int, ...] = ()) -> View:
        """The view of a rank that encodes for `nodes`."""
        return cls(Piece(consumer.piece, consumer.pieces, chunking), consumer.needs_tokens, nodes)

    def cut(self, whole: Assembled) -> pa.RecordBatch:
        """The rows of a bucket as this view has them."""
        rows = whole.rows
        if not self.tokens:
            rows = without_tokens(rows, self.piece)
        elif self.piece != Piece():
            rows = cut(rows, self.piece)
        return whole.with_pictures(rows, self.nodes)


class DataConstructor(Generic[Encoded]):
    """Makes the batches of buckets from the rows of loaders; safe for many threads."""

    def __init__(
        self,
        planner: Mailbox,
        loaders: Sequence[Mailbox],
        encode: Callable[[pa.RecordBatch], Encoded],
        chunking: Chunking = "row",
        *,
        assembly: Assembly | None = None,
        places: EncoderPlaces | None = None,
        prepare: Prepare | None = None,
        program: str = "",
    ) -> None:
        """`encode` makes the output from the rows of a view; `program` is the spec's `constructor_do_plan`.

        With `places` of an encoder it takes pictures, too, and makes files into patches by `prepare`.
        """
        self._planner, self._loaders, self._encode = planner, loaders, encode
        self._chunking, self._assembly, self._places, self._prepare = chunking, assembly, places, prepare
        self._program = PlanProgram(program, "constructor_do_plan")
        self._lock = threading.Lock()
        self.taken_bytes = 0
        """Bytes that loaders have handed over."""

    def make(self, offset: int, bucket: int) -> dict[View, Encoded]:
        """The batch of a bucket by view; raises InvalidRequest, EndOfData and the errors of reading."""
        plan, whole = self._planned(offset, bucket)
        nodes = {} if self._places is None else self._places.of_rank
        views = {
            View.of(consumer, self._chunking, nodes.get(consumer.rank, ()))
            for consumer in plan.consumers
            if consumer.bucket == bucket
        }
        return {view: self._encode(view.cut(whole)) for view in views}

    def rows(self, offset: int, bucket: int) -> pa.RecordBatch:
        """The rows of a bucket, before they are cut for its ranks, with all that these encode.

        Raises what `make` raises.
        """
        _, whole = self._planned(offset, bucket)
        return whole.with_pictures(whole.rows, () if self._places is None else self._places.of_bucket[bucket])

    def _planned(self, offset: int, bucket: int) -> tuple[Plan, Assembled]:
        """The plan of a step, and the rows of a bucket in its order."""
        takes = [loader.ask("take", offset, bucket) for loader in self._loaders]
        of_pictures = []
        if self._places is not None:
            of_pictures = [loader.ask("take_pictures", offset, bucket) for loader in self._loaders]
        plan: Plan = self._planner.result("plan", offset)
        parts: list[Taken] = [self._awaited(take, offset) for take in takes]
        pictures: list[PictureHandover] = [self._awaited(take, offset) for take in of_pictures]
        with self._lock:
            self.taken_bytes += sum(part.rows.nbytes for part in parts) + sum(
                part.n_bytes for part in pictures
            )
        rows = self._program.run(plan, plan.rows_of_bucket(bucket), _collected(plan, bucket, parts))
        if self._assembly is None:
            return plan, Assembled(rows)
        handover = PictureHandover.join_samples(pictures) if pictures else None
        if handover is not None and self._prepare is not None:
            handover = PictureHandover(handover.sizes, self._prepare(plan.step, handover.pictures))
        return plan, self._assembly.assemble(plan, bucket, rows, handover)

    @staticmethod
    def _awaited(answer: Future[Any], offset: int) -> Any:
        stalled = f"The rows of step {offset:,} did not arrive in time. Ask again, or raise the call's time."
        return current_context().result(answer, lambda: stalled)


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
