"""The metadata of a step's rows and pictures: the input of a plan of one's own.

    summary = loading.summary_buffer(1_000)
    summary.rows.column("n_tokens")             # with `source`, `epoch`, `ordinal` and the other facts
    summary.pictures.column("n_patches")        # with `row`, `number`, `width`, `height` and the other facts

It has no token and no pixel. A trainer imports this module without the lake.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from blender.arrays import as_numpy

PAGE_BYTES = 1 << 20
"""A page of a summary: a message is about as large, unless a single row has more pictures."""


@dataclass(frozen=True)
class BufferSummary:
    """The facts that a plan may use (MegaScale-Data, section 4.2), in the blend's order."""

    blend: str
    offset: int
    sources: tuple[str, ...]
    """The names of the blend's sources, by the number in `source`."""
    rows: pa.RecordBatch
    """A row of the step in each: `source`, `epoch`, `ordinal` (int64) and its facts (uint64)."""
    pictures: pa.RecordBatch | None = None
    """A picture in each: `row`, the place of its row in the step, `number`, its place in the row, `width`,
    `height` (int64) and its facts (uint64); None for a spec that takes none."""

    def pages(self, first: int = 0) -> Iterator[BufferSummary]:
        """The rows from `first` on, with their pictures, as summaries of about PAGE_BYTES."""
        while True:
            page = self._page(first)
            yield page
            first += len(page.rows)
            if first >= len(self.rows):
                return

    def _page(self, first: int) -> BufferSummary:
        n, ends = len(self.rows), self._picture_ends()
        of_row = self.rows.nbytes // max(1, n)
        of_picture = 0 if self.pictures is None else self.pictures.nbytes // max(1, len(self.pictures))
        begin = int(ends[first - 1]) if first else 0
        sizes = of_row * np.arange(1, n - first + 1) + of_picture * (ends[first:] - begin)
        stop = first + max(1, int(np.searchsorted(sizes, PAGE_BYTES, "right")))
        rows = self.rows.slice(first, stop - first)
        if self.pictures is None:
            return replace(self, rows=rows)
        end = int(ends[min(stop, n) - 1]) if n else 0
        return replace(self, rows=rows, pictures=self.pictures.slice(begin, end - begin))

    def _picture_ends(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """The end of the pictures of each row; shape [rows]."""
        n = len(self.rows)
        if self.pictures is None:
            return np.zeros(n, dtype=np.int64)
        return np.searchsorted(as_numpy(self.pictures.column("row")), np.arange(n), "right")

    @classmethod
    def whole(cls, pages: list[BufferSummary]) -> BufferSummary:
        """The summary that has these pages."""
        first = pages[0]
        pictures = [page.pictures for page in pages if page.pictures is not None]
        return replace(
            first,
            rows=pa.concat_batches([page.rows for page in pages]),
            pictures=pa.concat_batches(pictures) if pictures else None,
        )
