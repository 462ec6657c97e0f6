"""A source of a blend with its open reader."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from blender.records import Segment, Source
from blender.rows.live.live_reader import LiveReader
from blender.rows.snapshot_reader import SEGMENTS, SnapshotReader

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class OpenedSource:
    """A source of a blend with its reader; `blender.spec.row_order` says which of its rows are read when."""

    config: Source
    source_reader: SnapshotReader | LiveReader = field(compare=False)

    @property
    def reader(self) -> SnapshotReader:
        """The rows of the pinned snapshot, or of a live source's newest known snapshot."""
        return self.source_reader.now if isinstance(self.source_reader, LiveReader) else self.source_reader

    @property
    def n_rows(self) -> int:
        """Rows that can be read now."""
        return self.source_reader.n_rows

    @property
    def reuses_pages(self) -> bool:
        """Whether rows read one after the other share pages."""
        return self.config.shuffle != "row"

    def segments(self, ordinals: Ints) -> list[tuple[Segment, ...]]:
        """The segments of each row; none if the table has no such column."""
        if SEGMENTS not in self.reader.schema.names:
            return [()] * len(ordinals)
        found = self.reader.read(ordinals, (SEGMENTS,)).column(SEGMENTS).to_pylist()
        return [tuple(Segment(**segment) for segment in segments) for segments in found]
