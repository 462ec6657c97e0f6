"""The order in which an epoch reads a source: `none`, `window`, `page`, `page_window` or `row`.

Each order is a pure function of (seed, epoch, source) with an inverse; nothing is stored. A key is a hash of
(seed, epoch, level, source). Never add to a seed instead: with `seed + epoch`, the second epoch of seed 7
would equal the first of seed 8.
"""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from typing import NamedTuple

from blender.records import ShuffleKind
from blender.spec.page_order import PageOrder, WindowOrder
from blender.spec.permutation import Identity, Permutation, keyed


class Shuffle(NamedTuple):
    """A kind of order and its sizes.

    `page` and `page_window` use pages of `page_rows`, and `page_window` windows of `window_pages` pages.
    `window` uses windows of `window_rows` consecutive rows; the windows themselves stay in order.
    """

    kind: ShuffleKind = "none"
    page_rows: int = 0
    window_pages: int = 0
    window_rows: int = 0


@lru_cache(maxsize=4096)
def permutation(shuffle: Shuffle, n: int, *, seed: int, epoch: int, source: str) -> Permutation:
    """The order of one epoch of a source of `n` rows."""
    if shuffle.kind == "none" or n < 2:
        return Identity()

    def key(level: str) -> bytes:
        return derive_key(seed=seed, epoch=epoch, level=level, source=source)

    if shuffle.kind == "row":
        return keyed(n, key("row"))
    if shuffle.kind == "window":
        windows = PageOrder(n, shuffle.window_rows, Identity())
        return WindowOrder(windows, 1, lambda window, rows: keyed(rows, key(f"window {window}")))
    n_pages = -(-n // shuffle.page_rows)
    pages = PageOrder(n, shuffle.page_rows, keyed(n_pages, key("page")))
    if shuffle.kind == "page":
        return pages
    return WindowOrder(pages, shuffle.window_pages, lambda window, rows: keyed(rows, key(f"window {window}")))


def derive_key(*, seed: int, epoch: int, level: str, source: str) -> bytes:
    """A 32-byte key, independent for every combination of its arguments."""
    return hashlib.blake2b(json.dumps([seed, epoch, level, source]).encode(), digest_size=32).digest()
