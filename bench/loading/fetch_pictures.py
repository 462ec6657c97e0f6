"""How long a trainer waits for a step of real pictures, decoded and resized in the loader, by where it reads.

One rank reads steps of 16 stamps with their captions, joined into rows of 4,096 tokens, in its own process or
from a constructor. Steps are prepared ahead as in `fetch`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console

from bench.cache import cached
from bench.harness import Report, Row, at_most, table
from bench.lakes import add_packed, own_lake
from bench.loading.fetch import AIMED, MOST_WAIT_MS, PLACES
from bench.loading.processes import ranks, served
from bench.loading.real_pictures import Sample, samples
from blender.catalog.blends import open_blends
from blender.loading.options import spec_of
from blender.loading.pictures.decode import PlannedSize, pixels_of
from blender.loading.planner import open_planner
from blender.loading.spec import LoadingSpec
from blender.records import Source
from factory.lake.schemas.images import IMAGE_TOKEN, PACKED_IMAGES, PATCH, with_images
from factory.lake.schemas.packing import PACKED

STAMPS, STEP_SAMPLES, STEP_S = "stamps", 16, 0.25
WARM, STEPS, ROUNDS = 4, 60, 3
AHEAD: tuple[int, ...] = (0, 1, 2)
STEP_MIB = 24  # of most steps of patches, which a client holds ahead
LENGTH, TOKEN = 64, 1
WHITE = (255, 255, 255)
SPEC = """
images: {patch: 14, merge: 2, most_patches: 4096}
row_tokens: 4096
"""
DATA = f"`pictures`: the stamps of `images` with their captions, {STEP_SAMPLES} a step"
CAVEATS = (
    f"`pictures`: one rank, and its trainer sleeps {1e3 * STEP_S:.0f} ms a step, files in the page cache. "
    f"Waits of {ROUNDS} runs of {STEPS} steps; patches come as bytes. A client holds {STEP_MIB} MiB a step.",
)


def measure(progress: Console) -> Report:
    """Compare the pixels of the first steps with the files, then time each way."""
    report = Report(CAVEATS, DATA)
    stamps = samples()[STAMPS]
    home = cached(f"loading/pictures-{len(stamps)}", lambda folder: write(folder, stamps))
    spec_file = home / "spec.yaml"
    blend = open_blends(own_lake(home / "lake")).open((home / "blend").read_text())
    spec = spec_of(blend, equal_counts=False, file=str(spec_file))
    columns = "place | steps ahead | p50 | p99 | longest | CPU ms of the rank a step"
    figures = table("Wait for a step of pictures, ms", columns)
    sums = planned_sums(home, spec, stamps, WARM)
    for place in PLACES:
        for ahead in AHEAD:
            progress.print(f"reading pictures {place}, {ahead} ahead, {ROUNDS} runs")
            runs = [read(home, spec, place, ahead) for _ in range(ROUNDS)]
            report.check(
                f"pictures {place}, {ahead} ahead: the first steps have the pixels of their files",
                all(run["sums"] == sums for run in runs),
            )
            waits_ms = np.concatenate([run["waits_ms"] for run in runs])
            p50, p99 = (float(np.quantile(waits_ms, share)) for share in (0.5, 0.99))
            cpu_ms = 1e3 * sum(run["cpu_s"] for run in runs) / len(waits_ms)
            figures.add_row(
                place, str(ahead), f"{p50:.2f}", f"{p99:.2f}", f"{waits_ms.max():.1f}", f"{cpu_ms:.1f}"
            )
            label = f"loading.pictures.{place}.{ahead}"
            p50_row = (f"{label}.p50", round(p50, 3), "ms")
            report.rows += [
                at_most(*p50_row, MOST_WAIT_MS) if ahead == AIMED else Row(*p50_row),
                Row(f"{label}.p99", round(p99, 3), "ms"),
            ]
    report.tables.append(figures)
    return report


def write(home: Path, stamps: list[Sample]) -> None:
    """Write a packed table of samples, a picture and the bytes of a caption each, and a blend of it."""
    lake = own_lake(home / "lake")
    lake.home.mkdir(parents=True)
    rows = [_row(ordinal, sample) for ordinal, sample in enumerate(stamps)]
    schema = with_images(PACKED, PACKED_IMAGES).columns
    path = home / "packed.stamps.parquet"
    pq.write_table(
        pa.Table.from_pylist(rows, schema=schema),
        path,
        compression="zstd",
        max_rows_per_page=1,
        write_page_index=True,
        store_schema=False,
        use_dictionary=False,
    )
    add_packed(
        lake, STAMPS, [path], f"stamps-{path.stat().st_size}", 2, LENGTH, schema, {IMAGE_TOKEN: str(TOKEN)}
    )
    source = Source(
        f"packed.{STAMPS}", STEP_SAMPLES, columns=("tokens", "images"), shuffle="row", oversample=True
    )
    (home / "blend").write_text(open_blends(lake).create([source], seed=0).id)
    (home / "spec.yaml").write_text(SPEC)


def read(
    home: Path, spec: LoadingSpec, place: str, ahead: int, warm: int = WARM, steps: int = STEPS
) -> Mapping[str, Any]:
    """The waits and CPU seconds of a rank, and the `sums` of the pixels of its warm steps."""
    lake = own_lake(home / "lake")
    with tempfile.TemporaryDirectory() as folder:
        sums_file = f"{folder}/sums.npy"
        reading = {
            "reader": f"tensors_of_{place}",
            "warm": warm,
            "steps": steps,
            "step_s": STEP_S,
            "kept": sums_file,
            "spec": spec.canonical_json().decode(),
            "ahead": ahead,
            "step_mib": STEP_MIB,
        }
        if place == "embedded":
            with ranks(lake, [reading]) as processes:
                (costs,) = processes.read()
        else:
            options = [spec.blend, "--ragged", "--spec", str(home / "spec.yaml")]
            with (
                served(lake, "blender.loading", *options) as server,
                ranks(lake, [reading | {"address": server.address}]) as processes,
            ):
                (costs,) = processes.read()
        return costs | {"sums": np.load(sums_file).tolist()}


def planned_sums(home: Path, spec: LoadingSpec, stamps: list[Sample], steps: int) -> list[int]:
    """The sum of all values of the pixels of each of the first steps, from the files."""
    planner = open_planner(spec, own_lake(home / "lake"))
    return [
        sum(_sum_of(spec, stamps[ordinal]) for ordinal in planner.plan(offset).step.ordinal.tolist())
        for offset in range(steps)
    ]


def _sum_of(spec: LoadingSpec, sample: Sample) -> int:
    assert spec.images is not None
    total = 0
    for picture in sample.pictures:
        width, height = picture.size
        across, down = (int(side[0]) * spec.images.patch for side in spec.images.grid([width], [height]))
        size = PlannedSize(across, down, width, height)
        total += int(pixels_of(picture.path.read_bytes(), size, WHITE).sum(dtype=np.int64))
    return total


def _row(ordinal: int, sample: Sample) -> dict[str, Any]:
    tokens = np.array([TOKEN, *range(2, 2 + min(sample.n_tokens, LENGTH - 2)), 0], dtype="<u2")
    (picture,) = sample.pictures
    width, height = picture.size
    image = {
        "position": 0,
        "name": picture.path.name,
        "media_type": "image/png",
        "width": width,
        "height": height,
        "patches": -(-width // PATCH) * -(-height // PATCH),
        "content_hash": "",
        "content": picture.path.read_bytes(),
    }
    return {
        "ordinal": ordinal,
        "tokens": tokens.tobytes(),
        "n_tokens": len(tokens),
        "segments": [{"doc_id": f"stamp-{ordinal}", "doc_offset": 0, "length": len(tokens)}],
        "append": 0,
        "shard": 0,
        "chunk": 0,
        "images": [image],
    }
