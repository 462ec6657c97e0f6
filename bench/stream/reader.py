"""An epoch of the blend, or a part of it, by one reader; for peers in their environment.

Arguments: reader, folder, and one of
    epoch           read all; keep order and half-way state in the folder
    part N          read N batches, counting their cost
    resume          resume from the half-way state for some batches
    ranks R         count the bytes that R ranks read (ours alone)

Prints one JSON line. Every reader gives batches of 8 rows as int32 arrays of shape (8, 2,048), in this
process and without workers, so that the reader alone is counted.
"""

from __future__ import annotations

import importlib
import json
import pickle
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.formats import anonymous_mib, read_counters
from bench.stream import ours, peers
from bench.stream.rows import BATCH, LENGTH, Stream, total

RESUMED = 64  # batches compared after a resume
READERS = {**ours.READERS, **peers.READERS}


def measured(stream: Stream, n_batches: int, opened: float) -> tuple[dict[str, Any], npt.NDArray[np.int32]]:
    """The cost of reading `n_batches`, and the rows read: (rows, 2), a number and a source each."""
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
    """Read according to the arguments."""
    name, home, what = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
    n_batches = -(-total(home) // BATCH)
    half = n_batches // 2
    if what == "ranks":
        print(json.dumps(ours.ranks(home, name, int(sys.argv[4]))))
        return
    reader = READERS[name]
    began = time.perf_counter()
    for module in reader.imports:
        importlib.import_module(module)
    imported = time.perf_counter() - began
    state_path, order_path = home / f"{name}.state", home / f"{name}.order.npy"
    state = pickle.loads(state_path.read_bytes()) if what == "resume" else None
    before = read_counters()["rchar"]
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
    found |= {"import_s": imported, "bytes_read": read_counters()["rchar"] - before}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
