"""What the tests of readers have in common."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from blender.global_batches.rank_slice import GlobalBatchSlice
from blender.global_batches.reader import BatchReader
from blender.spec.mesh import Mesh
from blender.spec.step_range import StepRange
from tests.blender.global_batches.written import Lane, batch, new_namespace


def written(folder: Path, n_steps: int, mesh: Mesh | None = None, **options: Any) -> str:
    """A namespace of `n_steps` steps that has ended."""
    uri = new_namespace(folder, mesh, lanes=1, **options)
    lane = Lane(uri)
    lane.put(*(batch(number) for number in range(n_steps)), origin={"from": "a test"})
    lane.close()
    return uri


def fast_reader(uri: str, mesh: Mesh | None = None) -> BatchReader:
    return BatchReader(uri, mesh, longest_pause_s=0.02)


def read(reader: BatchReader, rank: int = 0, offset: int = 0, steps: int | None = None) -> list[int]:
    """The numbers of the batches that were read."""
    return [first_number(step) for step in reader.read(StepRange(offset, steps), rank)]


def first_number(step: GlobalBatchSlice) -> int:
    return int(step.arrays["tokens"].flat[0]) // 1_000_000


def reading_threads() -> list[threading.Thread]:
    return [
        thread
        for thread in threading.enumerate()
        if thread.name.startswith(("blender-prefetch", "batches-read"))
    ]


def ends(threads: list[threading.Thread]) -> bool:
    for thread in threads:
        thread.join(10)
    return not any(thread.is_alive() for thread in threads)
