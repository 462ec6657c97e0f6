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

from blender.loading import cost_index, image_index
from blender.loading.columns import delivers_images, require_snapshots
from blender.loading.cost_index import CostIndex
from blender.loading.image_index import ImageIndex
from blender.opened.blend import Blend
from blender.opened.source import OpenedSource


@dataclass(frozen=True)
class IndexedSource:
    """The indexes of a source: their size, and the seconds that they took, 0 if they were made before."""

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
        by_snapshot = {source.reader.facts.key: _n_missing(source) for source in blend.sources}
        for source in blend.sources:  # of a snapshot may deliver its pictures, and another one not
            key = source.reader.facts.key
            by_snapshot[key] = max(by_snapshot[key], _n_missing(source))
        self.rows = sum(by_snapshot.values())
        """The rows that `run` reads, once for lengths and once for pictures."""

    def run(self, advance: Callable[[int], object] | None = None) -> Iterator[IndexedSource]:
        """Each source of the blend once its indexes are there; `advance` is called with the rows read.

        Raises the errors of `CostIndex` and `ImageIndex`.
        """
        for source in self._sources:
            missing, began = _n_missing(source), time.perf_counter()
            index = CostIndex(source.reader, advance)
            n_bytes = index.records.nbytes
            if delivers_images(source):
                n_bytes += ImageIndex(source.reader, advance).bytes
            seconds = time.perf_counter() - began if missing else 0.0
            yield IndexedSource(source.config.name, len(index.records), n_bytes, seconds)


def _n_missing(source: OpenedSource) -> int:
    """The rows to read for the indexes of a source that are missing."""
    reader = source.reader
    missing = [not cost_index.is_made(reader)]
    if delivers_images(source):
        missing.append(not image_index.is_made(reader))
    return sum(missing) * int(reader.n_rows)
