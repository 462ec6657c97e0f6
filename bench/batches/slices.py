"""A rank's slice of a global batch against the whole batch: the time of each, and the bytes that are read.

A rank reads the footer and its own bytes, in two requests. The whole batch is one request, whose slices are
all decoded. Both check every CRC32 that they read.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median, quantiles
from typing import Any

import numpy as np
from rich.console import Console

from bench.batches.stores import PLACES, Place
from bench.harness import Report, Row, at_most, table
from blender.global_batches.follower import Follower
from blender.global_batches.format.footer import Footer
from blender.global_batches.log.state import Descriptor
from blender.global_batches.namespace import Namespace, create_namespace
from blender.global_batches.rank_slice import read_footer, read_slice
from blender.global_batches.store.namespace_store import NamespaceStore
from blender.global_batches.store.objects import Objects
from blender.global_batches.writer import BatchWriter
from blender.spec.mesh import Mesh

DP, SIZES_KIB = 32, (100, 1_000)
BATCHES, ROUNDS = 8, 120
SLICE_OF_WHOLE, AMPLIFICATION = 0.25, 1.01
DATA = f"`slices`: {BATCHES} batches of {DP} slices of {' and '.join(f'{kib:,}' for kib in SIZES_KIB)} KiB"
CAVEATS = (
    "`slices`: slices and whole batches are read in turn, in one process on the machine of the store. The "
    "files are in the page cache, and no network lies between, on which a whole batch takes longer still.",
    "`slices`: a slice is read with its footer every time; a reader has several steps in flight.",
)


@dataclass
class CountedReads:
    """Objects whose reads of ranges are counted."""

    objects: Objects
    n_bytes: int = 0
    requests: int = 0
    place: str = field(init=False)

    def __post_init__(self) -> None:
        self.place = self.objects.place

    def __getattr__(self, name: str) -> Any:
        return getattr(self.objects, name)

    def read(self, name: str, offset: int, length: int) -> memoryview | None:
        """Count and pass on."""
        data: memoryview | None = self.objects.read(name, offset, length)
        self.requests += 1
        self.n_bytes += 0 if data is None else len(data)
        return data


@dataclass
class Reads:
    """The times of both ways, and what a slice cost."""

    slice_s: list[float] = field(default_factory=list)
    whole_s: list[float] = field(default_factory=list)
    are_right: bool = False
    """Whether every slice and every whole batch was what had been written."""
    amplification: float = 0.0
    requests: float = 0.0


def measure(progress: Console) -> Report:
    """Read slices and whole batches of each size in each store."""
    report = Report(CAVEATS, DATA)
    columns = "store, batch | slice p50 ms | p95 | whole p50 ms | p95 | slice of whole | bytes read of needed"
    shown = table("A rank's slice against the whole batch", columns)
    for place_of in PLACES:
        with place_of() as place:
            for kib in SIZES_KIB:
                progress.print(f"reading batches of {DP} x {kib:,} KiB from {place.name}")
                reads = read_both_ways(place, kib, BATCHES, ROUNDS)
                label = f"{place.name}, {DP} x {kib:,} KiB"
                report.check(f"{label}: every read gives what was written", reads.are_right)
                _add(report, shown, label, place.name, kib, reads)
    report.tables.append(shown)
    return report


def read_both_ways(place: Place, kib: int, n_batches: int, rounds: int) -> Reads:
    """Write batches, compare what is read of them, and time both ways in turn."""
    uri = f"{place.address}/slices-{kib}"
    namespace = create_namespace(uri, Mesh(dp=DP), lanes=1, settings=place.settings)
    dice = np.random.default_rng(kib)
    written = [dice.integers(0, 2**16, (DP, kib << 9), dtype=np.uint16) for _ in range(n_batches)]
    with BatchWriter(uri, settings=place.settings) as writer:
        for number, tokens in enumerate(written):
            writer.put([{"tokens": tokens[dp]} for dp in range(DP)], offset=number)
        writer.finish()
    counted = CountedReads(place.objects(f"slices-{kib}"))
    store = NamespaceStore(uri, counted, 60.0)
    batches = _batches(store, namespace, n_batches)
    are_right = all(
        all(map(np.array_equal, read_whole(store, batch), tokens))
        and all(np.array_equal(_slice(store, namespace, batch, dp), tokens[dp]) for dp in range(DP))
        for batch, tokens in zip(batches, written, strict=True)
    )
    reads = _timed(store, counted, namespace, batches, kib, rounds)
    reads.are_right = are_right
    return reads


def read_whole(store: NamespaceStore, batch: Descriptor) -> list[np.ndarray]:
    """The tokens of all slices, from the whole object."""
    body = store.read(batch.name, 0, batch.n_bytes)
    assert body is not None
    footer = Footer.of_object(body, batch.name)
    arrays = []
    for dp in range(footer.dp):
        offset, length = footer.range_of(dp, 0)
        arrays.append(footer.decode(dp, 0, body[offset : offset + length])["tokens"])
    return arrays


def _timed(
    store: NamespaceStore,
    counted: CountedReads,
    namespace: Namespace,
    batches: Sequence[Descriptor],
    kib: int,
    rounds: int,
) -> Reads:
    dice, reads = random.Random(kib), Reads()
    counted.n_bytes = counted.requests = 0
    for _ in range(rounds):
        batch, dp = dice.choice(batches), dice.randrange(DP)
        began = time.perf_counter()
        _slice(store, namespace, batch, dp)
        reads.slice_s.append(time.perf_counter() - began)
    reads.amplification = counted.n_bytes / (rounds * kib * 1024)
    reads.requests = counted.requests / rounds
    reads.slice_s.clear()
    for _ in range(rounds):
        batch, dp = dice.choice(batches), dice.randrange(DP)
        began = time.perf_counter()
        _slice(store, namespace, batch, dp)
        between = time.perf_counter()
        read_whole(store, batch)
        reads.slice_s.append(between - began)
        reads.whole_s.append(time.perf_counter() - between)
    return reads


def _slice(store: NamespaceStore, namespace: Namespace, batch: Descriptor, dp: int) -> np.ndarray:
    place = namespace.mesh.coordinate(dp)
    footer = read_footer(store, namespace, batch)
    return read_slice(store, namespace, batch, footer, place).arrays["tokens"]


def _batches(store: NamespaceStore, namespace: Namespace, n: int) -> list[Descriptor]:
    follower = Follower(store, namespace.client(), lambda: None)
    follower.poll()
    return [follower.batch(step) for step in range(n)]


def _add(report: Report, shown: Any, label: str, store: str, kib: int, reads: Reads) -> None:
    of_whole = median(reads.slice_s) / median(reads.whole_s)
    shown.add_row(
        label,
        f"{1e3 * median(reads.slice_s):,.2f}",
        f"{1e3 * quantiles(reads.slice_s, n=20)[-1]:,.2f}",
        f"{1e3 * median(reads.whole_s):,.2f}",
        f"{1e3 * quantiles(reads.whole_s, n=20)[-1]:,.2f}",
        f"{of_whole:.3f}",
        f"{reads.amplification:.4f}",
    )
    name = f"batches.slices.{store}.{kib}"
    is_large = kib == SIZES_KIB[-1]
    report.rows += [
        Row(f"{name}.slice_s", round(median(reads.slice_s), 6), "s"),
        Row(f"{name}.whole_s", round(median(reads.whole_s), 6), "s"),
        at_most(f"{name}.slice_of_whole", round(of_whole, 4), "ratio", SLICE_OF_WHOLE)
        if is_large
        else Row(f"{name}.slice_of_whole", round(of_whole, 4), "ratio"),
        Row(f"{name}.bytes_read_of_needed", round(reads.amplification, 5), "ratio")
        if is_large
        else at_most(f"{name}.bytes_read_of_needed", round(reads.amplification, 5), "ratio", AMPLIFICATION),
        Row(f"{name}.requests", reads.requests, "requests"),
    ]
