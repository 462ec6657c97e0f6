"""An epoch of the blend, or a part of it, by one reader; run by `bench.stream`, peers in their environment.

Arguments: reader, folder, and one of
    epoch           read all; keep order and half-way state in the folder
    part N          read N batches, counting what they cost
    resume          go on from the half-way state for some batches
    ranks R         count what R ranks read (ours alone)
    write           write the peer's files

Prints one JSON line. Every reader gives batches of 8 rows as int32 arrays of shape (8, 2,048), in this
process and without workers, so that nothing but the reader is counted.
"""

from __future__ import annotations

import importlib
import json
import os
import pickle
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Tokens = npt.NDArray[np.int32]

LENGTH, BATCH = 2_048, 8
SHARES = (60, 30, 10)  # per cent of the rows, by source
STEP_ROWS = 80  # of a step of ours: ten ranks of 8 rows
RESUMED = 64  # batches compared after a resume


@dataclass(frozen=True)
class Stream:
    """Batches, and the state to go on from after the last one."""

    batches: Iterator[Tokens]
    state: Callable[[], Any]


@dataclass(frozen=True)
class Reader:
    """How the rows of a folder are opened, at the front or at a state, and what is imported for it."""

    imports: tuple[str, ...]
    opened: Callable[[Path, Any], Stream]


def array(home: Path, source: int) -> Tokens:
    """The rows of a source, mapped."""
    rows: Tokens = np.load(home / f"rows-{source}.npy", mmap_mode="r")
    return rows


def n_rows_of(source: int, rows: int) -> int:
    """Rows of a source where there are `rows` in all: whole steps of them."""
    return rows // STEP_ROWS * STEP_ROWS * SHARES[source] // 100


def total(home: Path) -> int:
    """Rows of all sources."""
    return sum(len(array(home, source)) for source in range(len(SHARES)))


def anonymous_mib() -> float:
    """MiB of this process that no file backs."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("This system does not say how much memory is anonymous.")


def bytes_read() -> int:
    """Bytes that this process has asked the system for; what is mapped is not among them."""
    fields = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(fields["rchar"])


def readers() -> dict[str, Reader]:
    """Every reader by its name."""
    from bench import stream_ours, stream_peers

    return {**stream_ours.READERS, **stream_peers.READERS}


def measured(stream: Stream, n_batches: int, opened: float) -> tuple[dict[str, Any], npt.NDArray[np.int32]]:
    """What reading so many batches costs, and which rows they were: (rows, 2) of number and source."""
    seen = np.empty((n_batches * BATCH, 2), dtype=np.int32)
    latencies, peak, n = [], 0.0, 0
    first = cpu = began = 0.0
    for number, batch in enumerate(stream.batches):
        now = time.perf_counter()
        assert batch.shape[1] == LENGTH, batch.shape
        assert batch.dtype == np.int32, batch.dtype
        seen[n : n + len(batch)] = batch[:, :2]
        n += len(batch)
        if number == 0:
            first, cpu = now - opened, time.process_time()
            began = last = time.perf_counter()
        else:
            latencies.append(now - last)
            last = now
        if number % 256 == 0:
            peak = max(peak, anonymous_mib())
        if number + 1 == n_batches:
            break
    cpu_s, wall_s = time.process_time() - cpu, time.perf_counter() - began
    rows = max(1, n - BATCH)
    found = {
        "rows": n,
        "first_s": first,
        "cpu_s_per_gib": cpu_s / (rows * LENGTH * 4 / 2**30),
        "rows_per_s": rows / wall_s,
        "p50_us": float(np.quantile(latencies, 0.5)) * 1e6,
        "p99_us": float(np.quantile(latencies, 0.99)) * 1e6,
        "anonymous_mib": max(peak, anonymous_mib()),
    }
    return found, seen[:n]


def main() -> None:
    """Read as the arguments say."""
    name, home, what = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
    n_batches = -(-total(home) // BATCH)
    half = n_batches // 2
    if what == "write":
        from bench.stream_write import WRITERS

        WRITERS[name](home)
        print("{}")
        return
    reader = readers()[name]
    if what == "ranks":
        from bench.stream_ours import ranks

        print(json.dumps(ranks(home, name, int(sys.argv[4]))))
        return
    began = time.perf_counter()
    for module in reader.imports:
        importlib.import_module(module)
    imported = time.perf_counter() - began
    state_path, order_path = home / f"{name}.state", home / f"{name}.order.npy"
    state = pickle.loads(state_path.read_bytes()) if what == "resume" else None
    before = bytes_read()
    opened = time.perf_counter()
    stream = reader.opened(home, state)
    if what == "epoch":
        first, seen = measured(stream, half, opened)
        state_path.write_bytes(pickle.dumps(stream.state()))
        rest, more = measured(stream, n_batches - half + 1, opened)
        order = np.concatenate([seen, more])
        np.save(order_path, order)
        found = {**rest, "first_s": first["first_s"], "rows": len(order)}
    else:
        n = RESUMED if what == "resume" else int(sys.argv[4])
        found, seen = measured(stream, n, opened)
        begin = half * BATCH if what == "resume" else 0
        order = np.load(order_path)[begin : begin + len(seen)]
        found["same"] = bool(np.array_equal(order, seen))
    found |= {"import_s": imported, "bytes_read": bytes_read() - before}
    print(json.dumps(found))


if __name__ == "__main__":
    sys.path.insert(0, os.environ["PYTHONPATH"])
    main()
