"""A rank in a process of its own: it reads steps as a trainer does, and says how long it waited for each.

Argument: a JSON object with the fields of `Reading` and, under `reader`, a name of `READERS`. The program
prints a line when it is warm, waits for a line, reads the timed steps, prints their cost as JSON, and waits
for the end of its standard input, so that the memory of ranks can be read while all of them live.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Reading:
    """What a rank reads: `warm` steps, then `steps` timed ones, each followed by a trainer's `step_s`."""

    warm: int
    steps: int
    step_s: float
    kept: str | None = None
    """A file for the warm steps: their rows as an Arrow stream, of tensors their tokens as numpy's array, or
    the sum of the colors of each step."""
    address: str = ""
    blend: str = ""
    rank: int = 0
    end: int | None = None
    """The step after the last one of the stream; by default it has no end."""
    spec: str = ""
    """The JSON of a loading spec, which a rank without a server plans by itself."""
    ahead: int | None = None
    """Steps that are prepared ahead of the trainer; None for the defaults."""
    step_mib: int = 1
    """The size of a step, where it is not 1 MiB."""
    ranks: int = 1
    files: tuple[str, ...] = ()
    weights: tuple[int, ...] = ()
    """Rows of each file in a step, for a rank that reads files by itself."""


def constructor(reading: Reading) -> Iterator[Any]:
    """Steps from the constructor of the rank's bucket."""
    from blender.loading.client import LoadingClient
    from blender.spec.step_range import StepRange

    return LoadingClient(reading.address).open().read(StepRange(0, reading.end), reading.rank)


def blender(reading: Reading) -> Iterator[Any]:
    """Whole steps from a Blender, as a rank reads them that knows of no other rank of its bucket."""
    from blender.trainer.client import BlenderClient

    return BlenderClient(reading.address).open(reading.blend).fetch(0, reading.end)


def tensors_of_constructor(reading: Reading) -> Iterator[Any]:
    """Tensors of the steps from the constructor of the rank's bucket."""
    from blender.loading.client import LoadingClient

    step_bytes = reading.step_mib << 20
    options: dict[str, Any] = {} if reading.ahead is None else {"prefetch_bytes": reading.ahead * step_bytes}
    return _tensors(LoadingClient(reading.address, **options).open(), reading)


def tensors_of_embedded(reading: Reading) -> Iterator[Any]:
    """Tensors of the steps that this process plans and reads by itself, of the lake in its settings."""
    from blender.loading.embedded import open_loading
    from blender.loading.spec import LoadingSpec

    options: dict[str, Any] = {} if reading.ahead is None else {"ahead": reading.ahead}
    return _tensors(open_loading(LoadingSpec.from_json(reading.spec.encode()), **options), reading)


def _tensors(loading: Any, reading: Reading) -> Iterator[Any]:
    from blender.loading.torch import LoadingDataset
    from blender.trainer.torch import BlendLoader

    dataset = LoadingDataset(loading, rank=reading.rank)
    if reading.ahead == 0:
        return iter(dataset)
    options: dict[str, Any] = {} if reading.ahead is None else {"prefetch": reading.ahead}
    return iter(BlendLoader(dataset, **options))


def open_blend(reading: Reading) -> Iterator[Any]:
    """A rank's rows of a blend that it opens by itself, of the lake in its settings."""
    from blender.trainer.local import open_blend

    return open_blend(reading.blend).fetch(rank=reading.rank, ranks=reading.ranks)


def pyarrow(reading: Reading) -> Iterator[Any]:
    """A rank's rows of the files, all open in this process."""
    from bench.loading.sources import steps_of_files

    return steps_of_files(_paths(reading), reading.weights, reading.rank, reading.ranks)


def torch_workers(reading: Reading) -> Iterator[Any]:
    """A rank's rows of the files, all open in each of two workers."""
    from bench.loading.sources import steps_of_workers

    return steps_of_workers(_paths(reading), reading.weights, reading.rank, reading.ranks)


def _paths(reading: Reading) -> list[Path]:
    return [Path(file) for file in reading.files]


READERS: dict[str, Callable[[Reading], Iterator[Any]]] = {
    "constructor": constructor,
    "blender": blender,
    "tensors_of_constructor": tensors_of_constructor,
    "tensors_of_embedded": tensors_of_embedded,
    "open_blend": open_blend,
    "pyarrow": pyarrow,
    "torch_workers": torch_workers,
}


def timed(steps: Iterator[Any], reading: Reading) -> dict[str, object]:
    """The milliseconds of each wait, and the CPU and wall seconds of all timed steps."""
    waits_ms = []
    cpu, began = time.process_time(), time.perf_counter()
    for _ in range(reading.steps):
        asked = time.perf_counter()
        next(steps)
        waits_ms.append(1e3 * (time.perf_counter() - asked))
        time.sleep(reading.step_s)
    cpu_s, wall_s = time.process_time() - cpu, time.perf_counter() - began
    return {"waits_ms": waits_ms, "cpu_s": cpu_s, "wall_s": wall_s}


def main() -> None:
    """Read according to the argument."""
    fields = json.loads(sys.argv[1])
    reader = READERS[fields.pop("reader")]
    reading = Reading(**fields)
    steps = reader(reading)
    warm = [next(steps) for _ in range(reading.warm)]
    if reading.kept is not None:
        _keep(reading.kept, warm)
    warm.clear()
    print("warm", flush=True)
    sys.stdin.readline()
    print(json.dumps(timed(steps, reading)), flush=True)
    sys.stdin.read()
    os._exit(0)  # some streams never end


def _keep(path: str, steps: list[Any]) -> None:
    import numpy as np
    import pyarrow as pa

    if hasattr(steps[0], "shape"):  # of files
        np.save(path, np.stack([np.asarray(step) for step in steps]))
        return
    if isinstance(steps[0], dict) and "images" in steps[0]:  # the sum of all colors of each step
        np.save(path, [sum(int(images["patches"].sum()) for images in step["images"]) for step in steps])
        return
    if isinstance(steps[0], dict):
        microbatches = [[one["tokens"].numpy() for one in step["microbatches"]] for step in steps]
        np.save(path, np.stack([np.concatenate(step) for step in microbatches]))
        return
    with pa.OSFile(path, "wb") as sink, pa.ipc.new_stream(sink, steps[0].arrow.schema) as writer:
        for step in steps:
            writer.write_batch(step.arrow)


if __name__ == "__main__":
    main()
