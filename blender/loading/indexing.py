"""Cost indexes made ahead of a run, so that no constructor reads every row before its first step.

    work = Indexing(open_blends(settings).open(blend_id))
    work.rows                                   # 2_000_000, in snapshots without an index
    [source.seconds for source in work.run()]   # [0.4, 0.0]

A snapshot has one index for all blends and sources that read it. After a kill, another run begins with the
snapshot that was not done.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from blender.loading.columns import require_snapshots
from blender.loading.cost_index import CostIndex, is_made
from blender.opened.blend import Blend


@dataclass(frozen=True)
class IndexedSource:
    """The cost index of a source: its size, and the seconds that it took, 0 if it was made before."""

    source: str
    rows: int
    bytes: int
    seconds: float


class Indexing:
    """The indexes of a blend that are missing on this machine."""

    def __init__(self, blend: Blend) -> None:
        """Raises InvalidRequest for a live source."""
        require_snapshots(blend)
        self._sources = blend.sources
        missing = [source.reader for source in blend.sources if not is_made(source.reader)]
        by_snapshot = {reader.facts.key: reader.n_rows for reader in missing}
        self.rows = sum(by_snapshot.values())
        """The rows that `run` reads."""

    def run(self, advance: Callable[[int], object] | None = None) -> Iterator[IndexedSource]:
        """Each source of the blend once its index is there; `advance` is called with the rows that were read.

        Raises the errors of `CostIndex`.
        """
        for source in self._sources:
            before, began = is_made(source.reader), time.perf_counter()
            index = CostIndex(source.reader, advance)
            seconds = 0.0 if before else time.perf_counter() - began
            yield IndexedSource(source.config.name, len(index.records), index.records.nbytes, seconds)
