"""A blend, open for reading: the rows of any step, without a port and without state.

    step and rank -> rows of the blend           (this file)
    row           -> source, index in the source (mixture)
    index         -> epoch, position, ordinal    (shuffle)
    ordinal       -> row of the table            (sources)

Every arrow is a pure function and has an inverse, which `locate` follows from the bottom to the top.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from blender.arrays import as_arrow
from blender.call_context import CallContext, use_context
from blender.errors import EndOfData, InvalidBlend, InvalidRequest, SourceGone
from blender.opened.schema import batch_schema
from blender.opened.source import OpenedSource
from blender.records import ExplainedRow, Place
from blender.rows.live import LiveReader
from blender.rows.sources import RowRequest, SnapshotReader, gather
from blender.spec.config import BlendConfig
from blender.spec.mixture import MAX_OFFSET, Mixture
from blender.spec.source import PROVENANCE

Ints = npt.NDArray[np.int64]

BLOCK_BYTES = 1 << 20  # where Python gRPC is fastest; smaller messages cost more CPU a byte
_PROBE_ROWS = 16  # read ahead of a fetch to learn how many rows make a block


@dataclass(frozen=True)
class Block:
    """Rows of several small steps, of one step, or of a part of a large one.

    Once the block is taken, every step before `next_offset` is complete: a reader that stops here goes on
    from there.
    """

    offset: int
    next_offset: int
    batch: pa.RecordBatch


class Blend:
    """A blend and the readers of its sources; safe for many threads."""

    def __init__(
        self, config: BlendConfig, mixture: Mixture, readers: Sequence[SnapshotReader | LiveReader]
    ) -> None:
        """`mixture` is that of all ancestors and of `config` itself; `readers` follow its sources."""
        self.id = config.id
        self.config = config
        self.mixture = mixture
        self.sources = tuple(
            OpenedSource(source, self.config.seed, reader)
            for source, reader in zip(self.config.sources, readers, strict=True)
        )
        served = self.mixture.counts(np.array([self.mixture.first_row(MAX_OFFSET)]))[0]
        for source, count in zip(self.sources, served, strict=True):
            if count and not source.reader.n_rows and not source.config.live:
                raise InvalidBlend(
                    f"Source `{source.config.name}` has no rows at snapshot {source.reader.snapshot_id}. "
                    "Give it weight 0 or another snapshot."
                )
        self._live = [
            (number, source.kept)
            for number, source in enumerate(self.sources)
            if isinstance(source.kept, LiveReader)
        ]
        self.schema = batch_schema(self.sources)

    @cached_property
    def ends(self) -> tuple[int | None, ...]:
        """For each source, how many steps its rows last; None where they always do."""
        return tuple(
            None
            if source.config.oversample or source.config.live
            else self.mixture.steps_within(number, source.reader.n_rows)
            for number, source in enumerate(self.sources)
        )

    @property
    def steps(self) -> int | None:
        """The number of steps of the blend; None where it never ends."""
        return min((end for end in self.ends if end is not None), default=None)

    def fetch(
        self,
        offset: int,
        steps: int = 0,
        rank: int = 0,
        ranks: int = 1,
        block_bytes: int = BLOCK_BYTES,
        stride: int = 1,
        call: CallContext | None = None,
    ) -> Iterator[Block]:
        """Blocks of about `block_bytes` of the rows of `steps` steps from `offset`, for one rank.

        `steps` 0 means up to the end of data. Rank r of n takes rows [r w/n, (r+1) w/n) of a step of w rows.
        Of these steps every `stride`-th is read, the first of them included. `caller` bounds every wait, for
        ever by default. Raises InvalidRequest at once, and EndOfData after the last step where more were
        asked for.
        """
        self._check(offset, steps, rank, ranks)
        if not 1 <= stride <= MAX_OFFSET:
            raise InvalidRequest(f"A stride of {stride:,} was asked for. Use 1 to {MAX_OFFSET:,}.")
        end = MAX_OFFSET if self.steps is None else self.steps
        asked = offset + steps if steps else max(offset, end)
        stop = min(asked, end)
        return self._blocks(offset, asked, stop, rank, ranks, block_bytes, stride, caller or CallContext())

    def step(self, offset: int, rank: int = 0, ranks: int = 1) -> pa.RecordBatch:
        """The rows of one step, for one rank; raises InvalidRequest, EndOfData and, where a live source has
        not come to it, Stalled.
        """
        self._check_step(offset, rank, ranks)
        return self.gather(self._rows(offset, 1, rank, ranks))

    def gather(self, rows: Ints) -> pa.RecordBatch:
        """Rows of the blend by their number from its front, in the order asked for."""
        sources, index = self.mixture.place(rows)
        epochs, ordinals = np.empty_like(rows), np.empty_like(rows)
        asked = []
        for number in np.flatnonzero(np.bincount(sources)):
            source = self.sources[number]
            chosen = np.flatnonzero(sources == number)
            epochs[chosen], ordinals[chosen] = source.ordinals(index[chosen])
            asked.append(
                RowRequest(source.reader, ordinals[chosen], chosen, source.config.columns, source.again)
            )
        columns = self._gather(asked, len(rows))
        provenance = [
            as_arrow(self.mixture.step_of(rows)),
            as_arrow(sources.astype(np.int32)),
            as_arrow(ordinals),
            as_arrow(epochs),
        ]
        return pa.RecordBatch.from_arrays([*provenance, *columns], schema=self.schema)

    def _gather(self, asked: Sequence[RowRequest], n: int) -> list[pa.Array]:
        fields = list(self.schema)[len(PROVENANCE) :]
        try:
            return gather(asked, n, fields)
        except SourceGone:
            newer = {reader.now: reader.compacted() for _, reader in self._live}
            if all(now is newest for now, newest in newer.items()):
                raise
            return gather(
                [replace(one, reader=newer.get(one.reader, one.reader)) for one in asked], n, fields
            )

    def explain(self, offset: int) -> list[ExplainedRow]:
        """The documents behind every row of a step; no segments where a table keeps none."""
        self._check_step(offset, 0, 1)
        sources, index = self.mixture.place(self._rows(offset, 1, 0, 1))
        explained: dict[int, ExplainedRow] = {}
        for number in np.unique(sources):
            source = self.sources[number]
            rows = np.flatnonzero(sources == number)
            epochs, ordinals = source.ordinals(index[rows])
            for row, epoch, ordinal, segments in zip(
                rows.tolist(),
                epochs.tolist(),
                ordinals.tolist(),
                source.segments(ordinals),
                strict=True,
            ):
                name, table = source.config.name, source.config.table
                explained[row] = ExplainedRow(row, name, table, ordinal, epoch, segments)
        return [explained[row] for row in range(len(sources))]

    def locate(self, source: str, ordinal: int, epochs: int = 1) -> list[Place]:
        """Where the first `epochs` epochs of `source` serve a row, in closed form; raises InvalidRequest.

        A source that is not oversampled has one epoch; places beyond the end of the blend are left out. A row
        that a live source does not have yet has its place already.
        """
        names = [one.config.name for one in self.sources]
        if source not in names:
            raise InvalidRequest(
                f"Blend {self.id} has no source `{source}`. Its sources: {', '.join(names)}."
            )
        number = names.index(source)
        opened = self.sources[number]
        if ordinal < 0 or (ordinal >= opened.n_rows and not opened.config.live):
            raise InvalidRequest(
                f"Source `{source}` has ordinals 0 to {opened.reader.n_rows - 1:,}; {ordinal:,} is none."
            )
        places = []
        for epoch in range(epochs if opened.config.oversample else min(epochs, 1)):
            index = np.array([opened.index(ordinal, epoch)], dtype=np.int64)
            row = self.mixture.row_of(number, index)
            if row[0] < 0:
                continue
            offset = int(self.mixture.step_of(row)[0])
            if self.steps is None or offset < self.steps:
                places.append(Place(offset, int(row[0]) - self.mixture.first_row(offset), epoch))
        return places

    def _rows(self, offset: int, steps: int, rank: int, ranks: int, stride: int = 1) -> Ints:
        width = self.mixture.rows_per_step(offset)
        share = width // ranks
        first = self.mixture.first_row(offset) + rank * share
        return (first + np.arange(steps)[:, None] * (stride * width) + np.arange(share)).reshape(-1)

    def _blocks(
        self,
        offset: int,
        asked: int,
        stop: int,
        rank: int,
        ranks: int,
        block_bytes: int,
        stride: int,
        call: CallContext,
    ) -> Iterator[Block]:
        if offset < stop:
            self._available(offset, call)
            with use_context(call):
                row_bytes = _row_bytes(self.gather(self._rows(offset, 1, rank, ranks)[:_PROBE_ROWS]))
        while offset < stop:
            share = self.mixture.rows_per_step(offset) // ranks
            fitting = max(1, block_bytes // row_bytes)
            end = min(stop, self.mixture.piece_end(offset), self._available(offset, call))
            left = -(-(end - offset) // stride)
            steps = min(left, max(1, fitting // share))
            end = offset + steps * stride
            rows = self._rows(offset, steps, rank, ranks, stride)
            for first in range(0, len(rows), fitting):  # once, unless a step alone is more than a block
                call.check()
                with use_context(call):
                    made = [self.gather(rows[first : first + fitting])]
                row_bytes = _row_bytes(made[0])  # rows of text vary; the last ones are the best guess
                # A reader may take its time, and what is named here meanwhile is held in memory.
                yield Block(offset, end if first + fitting >= len(rows) else offset, made.pop())
            offset = end
        if asked > stop:
            raise self._end(stop)

    def _check(self, offset: int, steps: int, rank: int, ranks: int) -> None:
        if offset < 0 or steps < 0 or offset + steps > MAX_OFFSET:
            raise InvalidRequest(
                f"Steps {offset:,} to {offset + steps:,} were asked for. A blend has 0 to {MAX_OFFSET:,}."
            )
        if ranks < 1 or not 0 <= rank < ranks:
            raise InvalidRequest(f"Rank {rank} of {ranks} was asked for. Ranks run from 0 to ranks - 1.")
        found = self.mixture.indivisible(offset, offset + steps if steps else MAX_OFFSET, ranks)
        if found is not None:
            start, rows = found
            raise InvalidRequest(
                f"A step of {rows:,} rows (from step {start:,} on) cannot be shared evenly by {ranks:,} "
                "ranks. Use a number of ranks that divides it, or other weights."
            )

    def _check_step(self, offset: int, rank: int, ranks: int) -> None:
        self._check(offset, 1, rank, ranks)
        if self.steps is not None and offset >= self.steps:
            raise self._end(offset)
        self._available(offset, CallContext(0))

    def _available(self, offset: int, call: CallContext) -> int:
        """The step up to which live sources have rows, beyond `offset`; waits for those of this one step."""
        available = MAX_OFFSET
        if self._live:
            needed = self.mixture.counts(np.array([self.mixture.first_row(offset + 1)]))[0]
        for number, reader in self._live:
            reader.wait(int(needed[number]), call)
            steps = self.mixture.steps_within(number, reader.n_rows)
            available = available if steps is None else min(available, steps)
        return available

    def _end(self, step: int) -> EndOfData:
        number = next(number for number, end in enumerate(self.ends) if end is not None and end <= step)
        source = self.sources[number]
        needed = self.mixture.counts(np.array([self.mixture.first_row(step + 1)]))[0][number]
        return EndOfData(
            f"Source `{source.config.name}` has {source.reader.n_rows:,} rows at snapshot "
            f"{source.reader.snapshot_id}, step {step:,} needs {needed:,}: blend {self.id} ends after "
            f"{self.steps:,} steps. Lower its weight by an update, or set `oversample`."
        )


def _row_bytes(batch: pa.RecordBatch) -> int:
    return max(1, batch.nbytes // batch.num_rows)
