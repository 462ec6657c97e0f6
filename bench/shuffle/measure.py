"""How well orders mix: the variance of topic counts per batch, for every shuffle and window, and for peers.

262,144 rows form 64 topics of consecutive rows. Orders are computed; no row is read.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from rich.console import Console

from bench.harness import Report, Row, at_most, table
from bench.peers import GRAIN, HUGGING_FACE, TORCH
from blender.costs.shuffle_score import epoch_score
from blender.parquet.buffer_shuffle import BufferOrder
from blender.spec.permutation import keyed
from blender.spec.shuffle import Shuffle, derive_key, permutation

Ints = npt.NDArray[np.int64]

CAVEATS = [
    "A topic is 4,096 consecutive rows; real rows have topics of many sizes.",
    "Rows at hand: rows that must be in memory, or for mosaicml on the local disk, to continue in that "
    "order; 1 if every row is looked up by itself.",
    "Peers' shards have 8,192 rows, 64 MiB of rows of 8 KiB; their order is that of one process.",
]
ROWS, SHARD = 1 << 18, 1 << 13
BATCHES = (8, 64, 256, 1024)
PAGE_SIZES, WINDOWS = (1, 16, 128), (16, 64, 256, 1024, 4096)
BUFFERS = (1_000, 10_000)
SEED = 7
MOST = 1.3
PEERS = {"torch": TORCH, "hugging_face": HUGGING_FACE, "grain": GRAIN}


@dataclass(frozen=True)
class Order:
    """An order of all rows, and the number of rows that must be in memory to continue in it."""

    name: str
    rows_at_hand: int
    rows: Ints


def measure(progress: Console) -> Report:
    """Compute every order, check that it holds every row once, and score it."""
    report = Report(CAVEATS, f"{ROWS:,} rows in 64 topics; {', '.join(map(str, BATCHES))} rows a batch")
    ours, peers = [*_shuffles(), *_buffers()], _peers(progress)
    report.check(f"all {len(ours)} orders of ours hold every row once", all(map(_is_whole, ours)))
    columns = " | ".join(["order | rows at hand", *(f"batch {it}" for it in BATCHES)])
    made = table("Shuffle score (1 is perfect)", columns)
    for order in [*ours, *peers]:
        scores = [epoch_score(order.rows.__getitem__, len(order.rows), batch) for batch in BATCHES]
        whole = "" if _is_whole(order) else f" ({len(order.rows):,} of all rows)"
        made.add_row(order.name + whole, f"{order.rows_at_hand:,}", *(f"{score:,.2f}" for score in scores))
        report.rows += [
            Row(f"shuffle.{order.name}.b{batch}", score, "chi2/df")
            for batch, score in zip(BATCHES, scores, strict=True)
        ]
    report.tables.append(made)
    scored = {row.name: row.value for row in report.rows}
    for name in ("row", "page_window_16x1024"):
        report.rows.append(at_most(f"shuffle.{name}", scored[f"shuffle.{name}.b256"], "chi2/df", MOST))
    return report


def _shuffles() -> list[Order]:
    found = [_order("none", 1, Shuffle()), _order("page_16", 16, Shuffle("page", 16))]
    for rows in PAGE_SIZES:
        for window in WINDOWS:
            if rows * window < ROWS:
                shuffle = Shuffle("page_window", rows, window)
                found.append(_order(f"page_window_{rows}x{window}", rows * window, shuffle))
    return [*found, _order("row", 1, Shuffle("row"))]


def _order(name: str, rows_at_hand: int, shuffle: Shuffle) -> Order:
    order = permutation(shuffle, ROWS, seed=SEED, epoch=0, source=name)
    return Order(name, rows_at_hand, order.forward(np.arange(ROWS)))


def _buffers() -> list[Order]:
    """Youmu's Algorithm 2 over pages of two sizes."""
    found = []
    for rows in (16, 128):
        n_pages = ROWS // rows
        key = derive_key(seed=SEED, epoch=0, level="page", source="")
        turns = keyed(n_pages, key).forward(np.arange(n_pages)).tolist()
        pages = [range(page * rows, (page + 1) * rows) for page in turns]
        for buffer in BUFFERS:
            batches = BufferOrder(pages, batch_rows=8, buffer_rows=buffer, seed=SEED)
            order = np.concatenate([batch for _, batch in batches])
            found.append(Order(f"youmu_{rows}_buffer_{buffer}", buffer, order))
    return found


def _peers(progress: Console) -> list[Order]:
    found = [Order("numpy_permutation", 1, np.random.default_rng(SEED).permutation(ROWS))]
    with tempfile.TemporaryDirectory() as folder:
        for family, peer in PEERS.items():
            progress.print(f"orders of {family}")
            at_hand = peer.answer("bench.shuffle.peers", family, folder, ROWS, SHARD, SEED, console=progress)
            found += [
                Order(name, int(rows), np.load(Path(folder) / f"{name}.npy").astype(np.int64))
                for name, rows in at_hand.items()
            ]
    return found


def _is_whole(order: Order) -> bool:
    return np.array_equal(np.sort(order.rows), np.arange(ROWS))
