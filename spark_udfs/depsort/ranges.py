"""Lookup of the nested byte ranges around a byte: scopes, classes, guarded blocks.

A lookup takes a binary search and a step per enclosing range; `spark_udfs.depsort.syntax` bounds their
number. Scanning all ranges for every name took minutes on a megabyte of `use` declarations.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator

from tree_sitter import Node


class Ranges:
    """The ranges of `nodes` by (start, -end); a range is identified by its index in `nodes`."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        spans = sorted(((node.start_byte, -node.end_byte, i, node) for i, node in enumerate(nodes)))
        self.nodes = [span[3] for span in spans]
        self._starts = [span[0] for span in spans]
        self._ends = [-span[1] for span in spans]
        self.parents: list[int] = []  # the innermost range around each, -1 for none
        around: list[int] = []
        for index, start in enumerate(self._starts):
            while around and self._ends[around[-1]] <= start:
                around.pop()
            self.parents.append(around[-1] if around else -1)
            around.append(index)

    def innermost(self, position: int) -> int:
        """The innermost range around a byte, -1 for none."""
        index = bisect_right(self._starts, position) - 1
        while index >= 0 and self._ends[index] <= position:
            index = self.parents[index]
        return index

    def around(self, position: int) -> Iterator[int]:
        """The ranges around a byte, innermost first."""
        index = self.innermost(position)
        while index >= 0:
            yield index
            index = self.parents[index]
