"""Reads a blend as a trainer does, in a process of its own; run by `bench.client`.

Arguments: one of
    constant WORKERS N          items of one tensor that is already there, from torch's DataLoader
    server ADDRESS BLEND WORKERS N
    direct HOME BLEND WORKERS N

Reads N steps once it is warm and prints one JSON line: CPU seconds of this process and its workers, bytes of
tokens, and a hash of every hundredth step.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import torch
from torch.utils.data import DataLoader, IterableDataset

from blender.client import BlenderClient
from blender.local import open_blend
from blender.reader import OpenBlend
from blender.torch import BlendDataset, BlendLoader, tensors
from factory.settings import Settings

WARM, HASHED = 64, 100
ROWS, LENGTH = 8, 2_048
RANKS = 10  # of a step of 80 rows: a batch is 8


class Constant(IterableDataset[torch.Tensor]):
    """One tensor, for ever."""

    def __iter__(self) -> Iterator[torch.Tensor]:
        one = torch.zeros((ROWS, LENGTH), dtype=torch.int32)
        while True:
            yield one


def constant(workers: int) -> Iterator[torch.Tensor]:
    """What torch's loader costs without any data."""
    context = "spawn" if workers else None
    yield from DataLoader(Constant(), batch_size=None, num_workers=workers, multiprocessing_context=context)


def read(blend: OpenBlend, workers: int) -> Iterator[torch.Tensor]:
    """Tokens of rank 0."""
    only_tokens = partial(tensors, fields=("tokens",))
    dataset = BlendDataset(blend, rank=0, ranks=RANKS, transform=only_tokens)
    for item in BlendLoader(dataset, workers=workers):
        yield item["tokens"]


def cpu_s() -> float:
    """User and system time of this process and its workers."""
    own = psutil.Process()
    times = [process.cpu_times() for process in (own, *own.children(recursive=True))]
    return sum(one.user + one.system for one in times)


def timed(steps: Iterator[torch.Tensor], n: int) -> dict[str, Any]:
    """What `n` steps cost, once it is warm."""
    for _ in range(WARM):
        next(steps)
    cpu, began, kept, read_bytes = cpu_s(), time.perf_counter(), [], 0
    for number in range(n):
        step = next(steps)
        read_bytes += step.nbytes
        if number % HASHED == 0:
            kept.append(step)
    found = {"cpu_s": cpu_s() - cpu, "wall_s": time.perf_counter() - began, "bytes": read_bytes}
    sums = hashlib.blake2b(digest_size=16)
    for step in kept:
        sums.update(step.numpy().tobytes())
    return {**found, "hash": sums.hexdigest()}


def main() -> None:
    """Read as the arguments say."""
    what, *rest, workers, n = sys.argv[1:]
    if what == "constant":
        steps = constant(int(workers))
    elif what == "server":
        address, blend = rest
        steps = read(BlenderClient(address).open(blend), int(workers))
    else:
        home, blend = rest
        steps = read(open_blend(blend, Settings(home=Path(home), cache=Path(home))), int(workers))
    print(json.dumps(timed(steps, int(n))), flush=True)
    os._exit(0)  # streams that never end are left behind


if __name__ == "__main__":
    main()
