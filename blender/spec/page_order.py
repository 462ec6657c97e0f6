"""Orders that read a source page by page, so that a batch touches few pages.

A logical page is a fixed number of consecutive ordinals; the last one may be short. A keyed permutation
orders the pages, and the position at which each begins has a closed form, because at most one is short. A
window is a fixed number of pages read one after the other, with their rows permuted together: the stateless
form of Youmu's two shuffles (page shuffle, then buffer shuffle). An epoch reads each page once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

import numpy as np

from blender.spec.permutation import Ints, Permutation

_KEPT_WINDOWS = 64  # permutations of windows in the cache


class PageOrder:
    """`n` items in pages of `page_rows`: the pages in the given order, the rows of each in their own."""

    def __init__(self, n: int, page_rows: int, pages: Permutation) -> None:
        self.n_pages = -(-n // page_rows)
        self._page_rows, self._pages = page_rows, pages
        self._missing = self.n_pages * page_rows - n  # rows missing from the last page
        self._short = int(pages.inverse(np.array([self.n_pages - 1]))[0])  # when the last page is read

    def start(self, turn: Ints) -> Ints:
        """The position at which the `turn`-th page that is read begins; `n` for turn `n_pages`."""
        return turn * self._page_rows - self._missing * (turn > self._short)

    def first(self, turn: int) -> int:
        """`start` of one turn."""
        return turn * self._page_rows - self._missing * (turn > self._short)

    def turn(self, positions: Ints) -> Ints:
        """The turn, in order of reading, of the page that holds each position."""
        after_short = positions >= (self._short + 1) * self._page_rows - self._missing
        return (positions + self._missing * after_short) // self._page_rows

    def forward(self, positions: Ints) -> Ints:
        """The item read at each position."""
        turn = self.turn(positions)
        return self._pages.forward(turn) * self._page_rows + positions - self.start(turn)

    def inverse(self, items: Ints) -> Ints:
        """The position at which each item is read."""
        page, row = np.divmod(items, self._page_rows)
        return self.start(self._pages.inverse(page)) + row


class WindowOrder:
    """The order of `pages`, with the rows of every `window_pages` pages permuted together.

    `within(window, rows)` returns the permutation of one window.
    """

    def __init__(
        self, pages: PageOrder, window_pages: int, within: Callable[[int, int], Permutation]
    ) -> None:
        self._pages, self._window_pages = pages, window_pages
        self._within = lru_cache(maxsize=_KEPT_WINDOWS)(within)

    def forward(self, positions: Ints) -> Ints:
        """The item read at each position."""
        shuffled = np.empty_like(positions)
        for chosen, first, order in self._windows(positions):
            shuffled[chosen] = first + order.forward(positions[chosen] - first)
        return self._pages.forward(shuffled)

    def inverse(self, items: Ints) -> Ints:
        """The position at which each item is read."""
        shuffled = self._pages.inverse(items)
        positions = np.empty_like(shuffled)
        for chosen, first, order in self._windows(shuffled):
            positions[chosen] = first + order.inverse(shuffled[chosen] - first)
        return positions

    def turn(self, positions: Ints) -> Ints:
        """The number of the window that holds each position."""
        return self._pages.turn(positions) // self._window_pages

    def _windows(self, positions: Ints) -> Iterator[tuple[np.ndarray | slice, int, Permutation]]:
        """For each window: the positions it holds, its first position, the order of its rows."""
        windows = self.turn(positions)
        if len(windows) and windows.min() == windows.max():  # as nearly always in a step
            yield slice(None), *self._window(int(windows[0]))
            return
        for window in np.unique(windows).tolist():
            yield windows == window, *self._window(window)

    def _window(self, window: int) -> tuple[int, Permutation]:
        """The first position of a window and the order of its rows."""
        first = self._pages.first(window * self._window_pages)
        end = self._pages.first(min((window + 1) * self._window_pages, self._pages.n_pages))
        return first, self._within(window, end - first)
