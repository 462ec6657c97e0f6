"""How long a trainer waits for the tensors of a step, by where it is read and by the steps prepared ahead.

One rank reads steps of 64 rows of 8,192 tokens in eight microbatches, in its own process or from a
constructor. With nothing ahead it iterates over the dataset itself, with n steps ahead over
`BlendLoader(dataset, prefetch=n)` of `open_loading(ahead=n)` or of a client that holds n steps. A constructor
makes a step ahead in any case, and the thread of its client receives one.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from bench.harness import Report, Row, at_most, table
from bench.lakes import own_lake
from bench.loading import text
from bench.loading.processes import ranks, served
from bench.loading.sharing import SOURCE_ROWS, STEP_ROWS, STEP_S, STEPS, WARM
from bench.loading.tables import LENGTH
from blender.catalog.blends import open_blends
from blender.loading.options import spec_of
from blender.loading.planner import open_planner
from blender.loading.spec import LoadingSpec

AHEAD: tuple[int | None, ...] = (0, 1, 2, None)
PLACES = ("embedded", "constructor")
MICROBATCHES = 8
ROUNDS = 3
AIMED, MOST_WAIT_MS = 2, 1.0
DATA = f"`fetch`: {SOURCE_ROWS:,} rows of {LENGTH:,} drawn tokens, {STEP_ROWS} a step"
CAVEATS = (
    f"`fetch`: one rank, whose trainer sleeps {1e3 * STEP_S:.0f} ms a step, files in the page cache. Waits "
    f"of {ROUNDS} runs of {STEPS} steps; a step has tokens, targets, positions and ends of documents. The "
    "defaults are `BlendLoader(prefetch=2)`, `open_loading(ahead=1)` and 16 MiB in a client.",
)
COLUMNS = "place | steps ahead | p50 | p99 | longest | CPU ms of the rank a step"


def measure(progress: Console) -> Report:
    """Check the tokens of each way, then time it."""
    report = Report(CAVEATS, DATA)
    home = text.written([STEP_ROWS], SOURCE_ROWS, progress)
    spec = spec_for(home)
    runs: dict[tuple[str, int | None], list[Mapping[str, Any]]] = {}
    for number in range(ROUNDS):
        for place in PLACES:
            for ahead in AHEAD:
                progress.print(f"reading {place}, {_name(ahead)}, run {number + 1} of {ROUNDS}")
                runs.setdefault((place, ahead), []).append(read(home, spec, place, ahead))
    for place in PLACES:
        same = all(run["right"] for ahead in AHEAD for run in runs[place, ahead])
        report.check(f"{place}: the tokens are those of the table for the planned rows", same)
    shown = table("Wait for a step, ms", COLUMNS)
    for (place, ahead), costs in runs.items():
        waits_ms = np.concatenate([run["waits_ms"] for run in costs])
        p50, p99 = (float(np.quantile(waits_ms, share)) for share in (0.5, 0.99))
        cpu_ms = 1e3 * sum(run["cpu_s"] for run in costs) / len(waits_ms)
        shown.add_row(
            place, _name(ahead), f"{p50:.2f}", f"{p99:.2f}", f"{waits_ms.max():.1f}", f"{cpu_ms:.2f}"
        )
        label = f"loading.fetch.{place}.{_name(ahead)}"
        row = (f"{label}.p50", round(p50, 3), "ms")
        report.rows += [
            at_most(*row, MOST_WAIT_MS) if ahead == AIMED else Row(*row),
            Row(f"{label}.p99", round(p99, 3), "ms"),
        ]
    report.tables.append(shown)
    return report


def spec_for(home: Path, microbatches: int = MICROBATCHES) -> LoadingSpec:
    """The spec of a single rank, with the defaults of `factory loading serve`."""
    blend = open_blends(own_lake(home / "lake")).open(text.blend_id(home))
    return spec_of(blend, microbatches=microbatches)


def read(
    home: Path, spec: LoadingSpec, place: str, ahead: int | None, warm: int = WARM, steps: int = STEPS
) -> Mapping[str, Any]:
    """The waits and CPU seconds of a rank, and whether its first tokens were `right`."""
    with tempfile.TemporaryDirectory() as folder, address_of(home, spec, place) as address:
        kept = f"{folder}/tokens.npy"
        reading = {
            "reader": f"tensors_of_{place}",
            "warm": warm,
            "steps": steps,
            "step_s": STEP_S,
            "kept": kept,
            "address": address,
            "spec": spec.canonical_json().decode(),
            "ahead": ahead,
        }
        with ranks(own_lake(home / "lake"), [reading]) as started:
            (costs,) = started.read()
        return costs | {"right": np.array_equal(np.load(kept), planned_tokens(home, spec, warm))}


@contextmanager
def address_of(home: Path, spec: LoadingSpec, place: str) -> Iterator[str]:
    """The address of a constructor of the spec; empty for a rank without one."""
    if place == "embedded":
        yield ""
        return
    options = ["--microbatches", str(spec.microbatches)]
    with served(own_lake(home / "lake"), "blender.loading", spec.blend, *options) as server:
        yield server.address


def planned_tokens(home: Path, spec: LoadingSpec, steps: int) -> np.ndarray:
    """The tokens of the table for the rows of the first steps, in the order of their plans."""
    planner, stored = open_planner(spec, own_lake(home / "lake")), text.stored_tokens(home)
    plans = [planner.plan(offset) for offset in range(steps)]
    return np.stack([stored[plan.step.ordinal[plan.rows_of_bucket(0)]] for plan in plans])


def _name(ahead: int | None) -> str:
    return "default" if ahead is None else str(ahead)
