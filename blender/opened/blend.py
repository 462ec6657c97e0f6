"""An open blend: the rows of any step, without a port and without state.

    step, rank slice -> source, epoch, ordinal of every row    `blender.spec.row_order`
    ordinal          -> row of the table                       `blender.rows.snapshot_reader`

A live source may lack rows of a step; a read then waits for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from blender.arrays import as_arrow
from blender.call_context import CallContext, use_context
from blender.errors import EndOfData, InvalidBlend, SourceGone
from blender.opened.schema import batch_schema
from blender.opened.source import OpenedSource
from blender.records import ExplainedRow
from blender.rows.live.live_reader import LiveReader
from blender.rows.snapshot_reader import RowRequest, SnapshotReader, gather
from blender.spec.config import BlendConfig
from blender.spec.mixture import MAX_OFFSET, Mixture
from blender.spec.ranks import WHOLE_STEP, RankSlice
from blender.spec.row_order import BlendOrder, Origins
from blender.spec.source import PROVENANCE
from blender.spec.step_range import StepRange
from factory.lake.schemas.images import IMAGES

Ints = npt.NDArray[np.int64]

BLOCK_BYTES = 1 << 20  # fastest with Python gRPC; smaller messages cost more CPU per byte
_PROBE_ROWS = 16  # read before a fetch to learn the bytes of a row
_MOST_ROWS = 1 << 20  # of a block
_MOST_ROWS_WITH_IMAGES = 16  # a row has up to many megabytes, and the row before it says nothing about that


@dataclass(frozen=True)
class StepBlock:
    """Rows of several small steps, of one step, or of a part of a large one.

    The block completes every step before `next_offset`: a reader that stops here continues from there.
    """

    offset: int
    next_offset: int
    batch: pa.RecordBatch


class Blend:
    """A blend and the readers of its sources; safe for many threads."""

    def __init__(
        self, config: BlendConfig, mixture: Mixture, readers: Sequence[SnapshotReader | LiveReader]
    ) -> None:
        """`mixture` covers all ancestors and `config`; `readers` are in the order of its sources."""
        self.id = config.id
        self.config = config
        self.sources = tuple(
            OpenedSource(source, reader) for source, reader in zip(config.sources, readers, strict=True)
        )
        sizes = [None if source.config.live else source.n_rows for source in self.sources]
        self.order = BlendOrder(config, mixture, sizes)
        for source, rows in zip(self.sources, self.order.rows_needed(MAX_OFFSET - 1), strict=True):
            if rows and not source.n_rows and not source.config.live:
                raise InvalidBlend(
                    f"Source `{source.config.name}` has no rows at snapshot {source.reader.snapshot_id}. "
                    "Give it weight 0 or another snapshot."
                )
        self._live = [
            (number, source.source_reader)
            for number, source in enumerate(self.sources)
            if isinstance(source.source_reader, LiveReader)
        ]
        self.schema = batch_schema(config.sources, [source.reader for source in self.sources])

    @property
    def steps(self) -> int | None:
        """The number of steps of the blend; None if it never ends."""
        return self.order.steps

    def require_steps(self) -> None:
        """Raise InvalidBlend for a blend without a step, and for an update without a step of its own."""
        steps, first = self.steps, self.config.offset
        if steps is None or steps > first:
            return
        ending = self.order.ends.index(steps)
        source = self.sources[ending]
        n_needed = int(self.order.rows_needed(steps)[ending])
        if first:
            n_served = int(self.order.rows_needed(steps - 1)[ending]) if steps else 0
            raise InvalidBlend(
                f"The blend ends at step {steps:,}, which needs {n_needed - n_served:,} rows of source "
                f"`{source.config.name}` and has {source.n_rows - n_served:,} left, so an update from step "
                f"{first:,} on changes nothing. Update it from an earlier step, or take fewer of these rows."
            )
        raise InvalidBlend(
            f"The blend has no step: source `{source.config.name}` has {source.n_rows:,} rows, and the first "
            f"step needs {n_needed:,}. Take fewer rows a step, or say `oversample: true` of the source."
        )

    def fetch(
        self,
        steps: StepRange,
        share: RankSlice = WHOLE_STEP,
        block_bytes: int = BLOCK_BYTES,
        call: CallContext | None = None,
    ) -> Iterator[StepBlock]:
        """Blocks of about `block_bytes` of the rows of a range of steps, for one rank.

        `call` bounds every wait; without it, waits have no end. Raises InvalidRequest at once, and EndOfData
        after the last step if more steps were asked for.
        """
        self.order.check(steps, share)
        return self._blocks(steps, share, block_bytes, call or CallContext())

    def step(self, offset: int, share: RankSlice = WHOLE_STEP) -> pa.RecordBatch:
        """The rows of one step, for one rank.

        Raises InvalidRequest, EndOfData and, where a live source lacks rows of the step, Stalled.
        """
        self.check_step(offset, share)
        return self.gather(self.order.row_numbers(offset, share))

    def gather(self, rows: Ints) -> pa.RecordBatch:
        """Rows of the blend by their number from its front, in the order given."""
        return self.read(self.order.origins(rows), self.order.mixture.step_of(rows))

    def read(self, origins: Origins, steps: Ints, without: str = "") -> pa.RecordBatch:
        """Rows of the sources by their origins, in the order given, and the step of each; shapes [n].

        The column `without` is not read.
        """
        schema = pa.schema([field for field in self.schema if field.name != without])
        requests = [
            RowRequest(
                self.sources[number].reader,
                origins.ordinal[chosen],
                chosen,
                self.sources[number].config.columns,
                self.sources[number].reuses_pages,
            )
            for number, chosen in origins.by_source()
        ]
        columns = self._gather(requests, len(steps), list(schema)[len(PROVENANCE) :])
        provenance = [
            as_arrow(steps),
            as_arrow(origins.source.astype(np.int32)),
            as_arrow(origins.ordinal),
            as_arrow(origins.epoch),
        ]
        return pa.RecordBatch.from_arrays([*provenance, *columns], schema=schema)

    def _gather(self, requests: Sequence[RowRequest], n: int, fields: Sequence[pa.Field]) -> list[pa.Array]:
        try:
            return gather(requests, n, fields)
        except SourceGone:
            newer = {reader.now: reader.compacted() for _, reader in self._live}
            if all(now is newest for now, newest in newer.items()):
                raise
            return gather(
                [replace(request, reader=newer.get(request.reader, request.reader)) for request in requests],
                n,
                fields,
            )

    def explain(self, offset: int) -> list[ExplainedRow]:
        """The documents behind every row of a step; no segments for a table without them."""
        self.check_step(offset, WHOLE_STEP)
        origins = self.order.origins(self.order.row_numbers(offset))
        explained: dict[int, ExplainedRow] = {}
        for number, rows in origins.by_source():
            source, ordinals = self.sources[number], origins.ordinal[rows]
            name, table = source.config.name, source.config.table
            columns = (rows, ordinals, origins.epoch[rows], source.segments(ordinals))
            for row, ordinal, epoch, segments in zip(*columns, strict=True):
                explained[int(row)] = ExplainedRow(int(row), name, table, int(ordinal), int(epoch), segments)
        return [explained[row] for row in range(len(explained))]

    def _blocks(
        self, steps: StepRange, share: RankSlice, block_bytes: int, call: CallContext
    ) -> Iterator[StepBlock]:
        offset, stride = steps.offset, steps.stride
        most_rows = _MOST_ROWS_WITH_IMAGES if IMAGES in self.schema.names else _MOST_ROWS
        last = MAX_OFFSET if self.steps is None else self.steps
        requested = max(offset, last) if steps.stop is None else steps.stop
        stop = min(requested, last)
        if offset < stop:
            self._available(offset, call)
            with use_context(call):
                row_bytes = _row_bytes(self.gather(self.order.row_numbers(offset, share)[:_PROBE_ROWS]))
        while offset < stop:
            width = len(share.rows_of(self.order.mixture.rows_per_step(offset)))
            fitting = max(1, min(most_rows, block_bytes // row_bytes))
            end = min(stop, self.order.mixture.piece_end(offset), self._available(offset, call))
            left = -(-(end - offset) // stride)
            end = offset + min(left, max(1, fitting // width)) * stride
            rows = self.order.rows_of_steps(StepRange(offset, end - offset, stride), share)
            for first in range(0, len(rows), fitting):  # once, unless a step alone is more than a block
                call.check()
                with use_context(call):
                    block = [self.gather(rows[first : first + fitting])]
                row_bytes = _row_bytes(block[0])  # rows of text vary; the last ones are the best guess
                # A reader may be slow, and every name here keeps memory meanwhile.
                yield StepBlock(offset, end if first + fitting >= len(rows) else offset, block.pop())
            offset = end
        if requested > stop:
            raise self._end(stop)

    def check_step(self, offset: int, share: RankSlice = WHOLE_STEP) -> None:
        """Raise InvalidRequest, EndOfData or Stalled unless a step can be read now."""
        self.order.check(StepRange(offset, 1), share)
        if self.steps is not None and offset >= self.steps:
            raise self._end(offset)
        self._available(offset, CallContext(0))

    def _available(self, offset: int, call: CallContext) -> int:
        """The step beyond `offset` up to which live sources have rows; waits for the rows of `offset`."""
        if not self._live:
            return MAX_OFFSET
        needed = self.order.rows_needed(offset)
        available = [MAX_OFFSET]
        for number, reader in self._live:
            reader.wait(int(needed[number]), call)
            steps = self.order.steps_within(number, reader.n_rows)
            available += [] if steps is None else [steps]
        return min(available)

    def _end(self, step: int) -> EndOfData:
        number = next(it for it, end in enumerate(self.order.ends) if end is not None and end <= step)
        source, needed = self.sources[number], self.order.rows_needed(step)[number]
        return EndOfData(
            f"Source `{source.config.name}` has {source.reader.n_rows:,} rows at snapshot "
            f"{source.reader.snapshot_id}, step {step:,} needs {needed:,}: blend {self.id} ends after "
            f"{self.steps:,} steps. Lower its weight by an update, or set `oversample`."
        )


def _row_bytes(batch: pa.RecordBatch) -> int:
    return max(1, batch.nbytes // batch.num_rows)
