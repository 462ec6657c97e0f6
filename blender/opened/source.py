"""A source of a blend, open for reading: which row of its table is read k-th, and when a row is read."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from blender.records import Segment, Source
from blender.rows.live import LiveReader
from blender.rows.sources import SEGMENTS, SnapshotReader
from blender.spec.permutation import Permutation
from blender.spec.shuffle import permutation
from blender.spec.source import shuffle_of

Ints = npt.NDArray[np.int64]

_ENDLESS = 1 << 62  # rows of a source that grows


@dataclass(frozen=True)
class OpenedSource:
    """A source of a blend with its reader: index in the source <-> epoch and ordinal."""

    config: Source
    seed: int
    kept: SnapshotReader | LiveReader = field(compare=False)

    @property
    def reader(self) -> SnapshotReader:
        """The rows, of a live source as far as they were seen."""
        return self.kept.now if isinstance(self.kept, LiveReader) else self.kept

    @property
    def n_rows(self) -> int:
        """Rows that can be read now."""
        return self.kept.n_rows

    def ordinals(self, index: Ints) -> tuple[Ints, Ints]:
        """Epoch and ordinal of the `index`-th rows read."""
        if self.config.live:
            return np.zeros_like(index), self._order(0).forward(index)
        epochs, positions = np.divmod(index, self.reader.n_rows)
        found = set(epochs.tolist())
        if len(found) == 1:
            return epochs, self._order(*found).forward(positions)
        ordinals = np.empty_like(positions)
        for epoch in found:
            chosen = epochs == epoch
            ordinals[chosen] = self._order(epoch).forward(positions[chosen])
        return epochs, ordinals

    @property
    def again(self) -> bool:
        """Whether rows that are read after each other share pages."""
        return self.config.shuffle != "row"

    def index(self, ordinal: int, epoch: int) -> int:
        """Which row read is `ordinal` in `epoch`: the inverse of `ordinals`."""
        position = self._order(epoch).inverse(np.array([ordinal], dtype=np.int64))[0]
        return epoch * self.reader.n_rows + int(position)

    def segments(self, ordinals: Ints) -> list[tuple[Segment, ...]]:
        """The segments of each row; none where the table keeps none."""
        if SEGMENTS not in self.reader.schema.names:
            return [()] * len(ordinals)
        found = self.reader.read(ordinals, (SEGMENTS,)).column(SEGMENTS).to_pylist()
        return [tuple(Segment(**segment) for segment in segments) for segments in found]

    def _order(self, epoch: int) -> Permutation:
        n_rows = _ENDLESS if self.config.live else self.reader.n_rows
        return permutation(
            shuffle_of(self.config), n_rows, seed=self.seed, epoch=epoch, source=self.config.name
        )
