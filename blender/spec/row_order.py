"""The rows of every step of a blend, from its config and the sizes of its sources; no table is opened.

    offset, rank slice  ->  row numbers from the front of the blend    `row_numbers`
    row number          ->  source, index in the source                `origins`, by the mixture
    index               ->  epoch, ordinal                             `origins`, by the shuffle

Every arrow is a pure function over numpy columns and has an inverse, which `locate` follows from the bottom
up. `blender.opened.blend` reads the rows that this module names; a planner stops here.

A live source grows, so its order must not depend on its size, which is None here. An ordinal may therefore
name a row that the table does not have yet: `rows_needed` says how many rows to wait for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from blender.errors import InvalidRequest
from blender.records import RowPosition, Source
from blender.spec.config import BlendConfig
from blender.spec.groups import narrow, positions_by_number
from blender.spec.mixture import MAX_OFFSET, Mixture
from blender.spec.permutation import Permutation, forward_each
from blender.spec.ranks import WHOLE_STEP, RankSlice
from blender.spec.shuffle import Shuffle, permutation
from blender.spec.source import shuffle_of
from blender.spec.step_range import StepRange

Ints = npt.NDArray[np.int64]

_ENDLESS = 1 << 62  # stands for the rows of a live source


class Origins(NamedTuple):
    """The origins of rows, one column per field; shape [n]."""

    source: Ints
    """Number of the source in the blend."""
    epoch: Ints
    ordinal: Ints

    def by_source(self) -> Iterator[tuple[int, Ints]]:
        """Every source among the rows, with the positions of its rows."""
        return positions_by_number(self.source)


@dataclass(frozen=True)
class SourceOrder:
    """The order in which a blend reads one source: index in the source <-> epoch and ordinal."""

    config: Source
    seed: int
    n_rows: int | None
    """Rows of an epoch; None for a live source, whose only epoch has no end."""

    @property
    def epoch_rows(self) -> int:
        """Rows of an epoch; for a live source more than any blend reads."""
        return _ENDLESS if self.n_rows is None else self.n_rows

    def permutation(self, epoch: int) -> Permutation:
        """The ordinal at each position of an epoch."""
        return permutation(
            self._shuffle, self.epoch_rows, seed=self.seed, epoch=epoch, source=self.config.name
        )

    def index(self, ordinal: int, epoch: int) -> int:
        """When `epoch` reads `ordinal`: the index of the row over all epochs."""
        position = self.permutation(epoch).inverse(np.array([ordinal], dtype=np.int64))[0]
        return epoch * (self.n_rows or 0) + int(position)

    @cached_property
    def _shuffle(self) -> Shuffle:
        return shuffle_of(self.config)


class BlendOrder:
    """The order of a blend; immutable."""

    def __init__(self, config: BlendConfig, mixture: Mixture, n_rows: Sequence[int | None]) -> None:
        """`mixture` covers all ancestors and `config`; `n_rows` follows the sources, None for a live one."""
        self.mixture = mixture
        self.sources = tuple(
            SourceOrder(source, config.seed, rows)
            for source, rows in zip(config.sources, n_rows, strict=True)
        )
        self._config = config
        self._epoch_rows = np.array([source.epoch_rows for source in self.sources], dtype=np.int64)

    @cached_property
    def ends(self) -> tuple[int | None, ...]:
        """How many steps the rows of each source last; None if they never run out."""
        return tuple(
            None
            if source.n_rows is None or source.config.oversample
            else self.steps_within(number, source.n_rows)
            for number, source in enumerate(self.sources)
        )

    @cached_property
    def steps(self) -> int | None:
        """The number of steps of the blend; None if it never ends."""
        return min((end for end in self.ends if end is not None), default=None)

    def check(self, steps: StepRange, share: RankSlice) -> None:
        """Raise InvalidRequest unless the blend has `share` of these steps."""
        offset, stop = steps.offset, steps.offset if steps.stop is None else steps.stop
        if not 0 <= offset <= stop <= MAX_OFFSET:
            raise InvalidRequest(
                f"Steps {offset:,} to {stop:,} were asked for. A blend has 0 to {MAX_OFFSET:,}."
            )
        uneven = self.mixture.indivisible(offset, MAX_OFFSET if steps.stop is None else stop, share.ranks)
        if uneven is not None:
            start, rows = uneven
            raise InvalidRequest(
                f"A step of {rows:,} rows (from step {start:,} on) cannot be shared evenly by "
                f"{share.ranks:,} ranks. Use a number of ranks that divides it, or other weights."
            )
        if not 1 <= steps.stride <= MAX_OFFSET:
            raise InvalidRequest(f"A stride of {steps.stride:,} was asked for. Use 1 to {MAX_OFFSET:,}.")

    def row_numbers(self, offset: int, share: RankSlice = WHOLE_STEP) -> Ints:
        """Rows of a step, counted from the front of the blend."""
        rows = share.rows_of(self.mixture.rows_per_step(offset))
        return self.mixture.first_row(offset) + np.arange(rows.start, rows.stop)

    def rows_of_steps(self, steps: StepRange, share: RankSlice = WHOLE_STEP) -> Ints:
        """Rows of a range of steps with an end, one step after the other, counted as by `row_numbers`."""
        offset, stride = steps.offset, steps.stride
        parts, n_left = [np.empty(0, dtype=np.int64)], -(-(steps.steps or 0) // stride)
        while n_left > 0:
            width = self.mixture.rows_per_step(offset)
            n_equal = min(n_left, max(1, -(-(self.mixture.piece_end(offset) - offset) // stride)))
            starts = self.mixture.first_row(offset) + np.arange(n_equal)[:, None] * (stride * width)
            rows = share.rows_of(width)
            parts.append((starts + np.arange(rows.start, rows.stop)).reshape(-1))
            offset, n_left = offset + n_equal * stride, n_left - n_equal
        return parts[1] if len(parts) == 2 else np.concatenate(parts)

    def origins(self, rows: Ints) -> Origins:
        """Source, epoch and ordinal of each row number."""
        sources, index = self.mixture.place(rows)
        by_source = np.argsort(narrow(sources), kind="stable")
        source = sources[by_source]
        epoch, position = np.divmod(index[by_source], self._epoch_rows[source])
        changes = (source[1:] != source[:-1]) | (epoch[1:] != epoch[:-1])
        begins = np.flatnonzero(np.concatenate([[len(rows) > 0], changes]))
        orders = [
            self.sources[number].permutation(of_epoch)
            for number, of_epoch in zip(source[begins].tolist(), epoch[begins].tolist(), strict=True)
        ]
        ordinal = forward_each(orders, position, [*begins[1:].tolist(), len(rows)])
        origins = Origins(sources, np.empty_like(rows), np.empty_like(rows))
        origins.epoch[by_source], origins.ordinal[by_source] = epoch, ordinal
        return origins

    def locate(self, source: str, ordinal: int, epochs: int = 1) -> list[RowPosition]:
        """The positions at which the first `epochs` epochs of `source` serve a row; raises InvalidRequest.

        Only an oversampled source has more than one epoch. Positions beyond the end of the blend are left
        out; a row that a live source does not have yet already has a position.
        """
        names = [source.config.name for source in self.sources]
        if source not in names:
            raise InvalidRequest(
                f"Blend {self._config.id} has no source `{source}`. Its sources: {', '.join(names)}."
            )
        number = names.index(source)
        order = self.sources[number]
        if ordinal < 0 or (order.n_rows is not None and ordinal >= order.n_rows):
            last = "any later one" if order.n_rows is None else f"{order.n_rows - 1:,}"
            raise InvalidRequest(f"Source `{source}` has ordinals 0 to {last}; {ordinal:,} is outside.")
        positions = []
        for epoch in range(epochs if order.config.oversample else min(epochs, 1)):
            row = self.mixture.row_of(number, np.array([order.index(ordinal, epoch)], dtype=np.int64))
            if row[0] < 0:
                continue
            offset = int(self.mixture.step_of(row)[0])
            if self.steps is None or offset < self.steps:
                positions.append(RowPosition(offset, int(row[0]) - self.mixture.first_row(offset), epoch))
        return positions

    def rows_needed(self, step: int) -> Ints:
        """Rows of each source in steps 0 .. `step`; shape [sources]."""
        return self.mixture.counts(np.array([self.mixture.first_row(step + 1)]))[0]

    def steps_within(self, source: int, n_rows: int) -> int | None:
        """Whole steps from the front that `n_rows` rows of a source are enough for; None for all steps."""
        return self.mixture.steps_within(source, n_rows)
