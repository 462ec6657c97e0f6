"""Real producers that commit to one namespace, paced by Decentralized Adaptive Commit.

    python -m bench.batches.commits URI LANE FOLDER PACE    # one of them, until FOLDER/stop is there

Each is a process with a lane of its own. It notes after every commit what its writer's figures are.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from rich.console import Console

from bench.batches.stores import PLACES, Place
from bench.harness import Report, Row, at_least, table
from bench.peers import ROOT
from blender.global_batches.namespace import create_namespace
from blender.global_batches.policies import AdaptiveCommit
from blender.global_batches.status import namespace_status
from blender.global_batches.writer import BatchWriter
from blender.spec.mesh import Mesh

Pace: TypeAlias = Literal["apart", "in step"]

PRODUCERS = (1, 4, 16)
PACES: tuple[Pace, ...] = ("apart", "in step")
ATTEMPTS = int(os.environ.get("ATTEMPTS", "200"))
SECONDS = 120  # so that a tenth of a run is many commits of each producer
DP, SLICE_BYTES, PACE_S = 4, 8 << 10, 0.25
WARM_ATTEMPTS = 3  # of each producer, before its figures count
SUCCESS, LAST_OF_FIRST = 0.93, 0.9
_START_S, _END_S = 180.0, 3_600.0
DATA = (
    f"`commits`: {', '.join(map(str, PRODUCERS))} producers, {DP} slices of {SLICE_BYTES >> 10} KiB each "
    f"{PACE_S:g} s, for {ATTEMPTS} attempts and {SECONDS} s"
)
CAVEATS = (
    "`commits`: all producers and the store share the cores of this machine. Batches are small and paced, so "
    "that neither the disk nor the processors decide who wins; MB/s is what is produced, as long as commits "
    "keep up.",
    "`commits`: `apart`, the pauses between batches vary at random by half; `in step`, all producers start "
    "together and pause equally long, so that their batches, and the attempts that these start, coincide.",
    f"`commits`: the first {WARM_ATTEMPTS} attempts of each producer do not count: before them it knows "
    "neither the time of an attempt nor the other lanes.",
    "`commits`: lag is the mean of the seconds from the storing of a batch to its commit. A tenth of a run "
    "is a tenth of its time.",
)


@dataclass(frozen=True)
class Outcome:
    """What the counted attempts of all producers came to."""

    seconds: float
    attempts: int
    lost: int
    batches: int
    n_bytes: int
    lag_s: float
    window_s: float
    gap_s: float
    first_mb_s: float
    """Committed in the first tenth of the time."""
    last_mb_s: float
    log_is_whole: bool
    """Whether the log holds the batches that the producers noted as committed, and no others."""

    @property
    def success(self) -> float:
        """The part of the attempts that won."""
        return 1 - self.lost / self.attempts


def measure(progress: Console) -> Report:
    """Run each number of producers on each store."""
    report = Report(CAVEATS, DATA)
    figures = "attempts | success | lag s | window ms | gap s | MB/s | first tenth | last tenth"
    columns = f"store | producers | pace | {figures}"
    shown = table("Decentralized Adaptive Commit", columns)
    for place_of in PLACES:
        with place_of() as place:
            for pace, n in product(PACES, PRODUCERS):
                if pace == "in step" and n == 1:
                    continue  # nobody to be in step with
                outcome = run(place, n, pace, Goal(ATTEMPTS, SECONDS), progress)
                label = f"{place.name}, {n} producers {pace}"
                report.check(f"{label}: the log holds each committed batch once", outcome.log_is_whole)
                _add(report, shown, place.name, n, pace, outcome)
    report.tables.append(shown)
    return report


def run(place: Place, n_producers: int, pace: Pace, goal: Goal, progress: Console) -> Outcome:
    """Let producers commit until a goal is reached, and compare the log with what they noted."""
    label = f"{place.name}, {n_producers} producers {pace}"
    uri = f"{place.address}/commits-{n_producers}-{pace.replace(' ', '-')}"
    create_namespace(uri, Mesh(dp=DP), lanes=n_producers, settings=place.settings, order="arrival")
    with tempfile.TemporaryDirectory() as name:
        notes = Path(name)
        processes = [_start(place, uri, lane, notes, pace) for lane in range(n_producers)]
        try:
            _wait_for(lambda: len(list(notes.glob("ready-*"))) == n_producers, processes, _START_S)
            (notes / "go").touch()
            lanes = [notes / f"lane-{lane}" for lane in range(n_producers)]
            _wait_for(
                lambda: goal.is_reached([_samples(file) for file in lanes], label, progress),
                processes,
                _END_S,
                every_s=2.0,
            )
        finally:
            (notes / "stop").touch()
            for process in processes:
                process.wait(120)
        samples = [_samples(file) for file in lanes]
    return _outcome(samples, _log_is_whole(place, uri, samples))


def produce(uri: str, lane: str, folder: Path, pace: str) -> None:
    """Write paced batches until the stop, and note the figures after each commit."""
    slices = [{"tokens": np.full(SLICE_BYTES // 2, dp, np.uint16)} for dp in range(DP)]
    with (
        BatchWriter(uri, lane, policy=AdaptiveCommit()) as writer,
        (folder / f"lane-{lane}").open("w") as notes,
    ):
        (folder / f"ready-{lane}").touch()
        while not (folder / "go").exists():
            time.sleep(0.01)
        due, attempts, dice = time.monotonic(), 0, random.Random(lane)
        jitter = 0.5 if pace == "apart" else 0.0
        while not (folder / "stop").exists():
            writer.put(slices, offset=writer.sequence)
            due = max(due + dice.uniform(1 - jitter, 1 + jitter) * PACE_S, time.monotonic())
            while time.monotonic() < due:
                if writer.figures.attempts != attempts:
                    attempts = writer.figures.attempts
                    _note(notes, writer)
                time.sleep(min(0.02, max(0.0, due - time.monotonic())))
        writer.finish()
        _note(notes, writer)


def _note(notes: Any, writer: BatchWriter) -> None:
    notes.write(json.dumps({"at": time.time()} | vars(writer.figures)) + "\n")
    notes.flush()


def _start(place: Place, uri: str, lane: int, notes: Path, pace: Pace) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "bench.batches.commits", uri, f"{lane}", str(notes), pace]
    return subprocess.Popen(command, cwd=ROOT, env=os.environ | place.environment)


def _wait_for(
    condition: Any, processes: Sequence[subprocess.Popen[bytes]], seconds: float, every_s: float = 0.1
) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if any(process.poll() is not None for process in processes):
            raise RuntimeError("A producer of the bench ended before its run did. Look at its error above.")
        if time.monotonic() > deadline:
            raise RuntimeError(f"The producers of the bench did not get so far in {seconds:,.0f} s.")
        time.sleep(every_s)


@dataclass(frozen=True)
class Goal:
    """How long producers run: for so many attempts, and so many seconds, once all of them are warm."""

    attempts: int
    seconds: float

    def is_reached(self, lanes: Sequence[Sequence[Mapping[str, Any]]], label: str, progress: Console) -> bool:
        """Whether the notes of all lanes suffice; shows how far they have come."""
        if not all(lanes):
            return False
        begin = _begin(lanes)
        attempts = sum(notes[-1]["attempts"] - _at(notes, begin)["attempts"] for notes in lanes)
        seconds = time.time() - begin
        progress.print(f"{label}: {attempts:,} attempts in {seconds:,.0f} s ", end="\r")
        return attempts >= self.attempts and seconds >= self.seconds


def _samples(file: Path) -> list[Mapping[str, Any]]:
    """The notes of a lane, from the first that counts on."""
    lines = file.read_text().splitlines() if file.exists() else []
    notes = [json.loads(line) for line in lines if line.endswith("}")]
    return [note for note in notes if note["attempts"] >= WARM_ATTEMPTS]


def _outcome(lanes: Sequence[Sequence[Mapping[str, Any]]], log_is_whole: bool) -> Outcome:
    begin = _begin(lanes)
    end = max(samples[-2]["at"] for samples in lanes if len(samples) > 1)  # the last note is that of the end
    spans = [(_at(samples, begin), _at(samples, end)) for samples in lanes]

    def grown(name: str) -> float:
        return sum(last[name] - first[name] for first, last in spans)

    tenth = (end - begin) / 10

    def rate(start: float) -> float:
        committed = sum(_at(lane, start + tenth)["n_bytes"] - _at(lane, start)["n_bytes"] for lane in lanes)
        return committed / tenth / 1e6

    batches = int(grown("batches"))
    return Outcome(
        seconds=end - begin,
        attempts=int(grown("attempts")),
        lost=int(grown("lost")),
        batches=batches,
        n_bytes=int(grown("n_bytes")),
        lag_s=grown("waited") / batches,
        window_s=sum(last["window"] for _, last in spans) / len(spans),
        gap_s=sum(last["gap"] for _, last in spans) / len(spans),
        first_mb_s=rate(begin),
        last_mb_s=rate(end - tenth),
        log_is_whole=log_is_whole,
    )


def _begin(lanes: Sequence[Sequence[Mapping[str, Any]]]) -> float:
    """When the last producer was warm."""
    return float(max(samples[0]["at"] for samples in lanes))


def _at(samples: Sequence[Mapping[str, Any]], at: float) -> Mapping[str, Any]:
    """The newest note of a lane at a time."""
    return max(
        (note for note in samples if note["at"] <= at), key=lambda note: note["at"], default=samples[0]
    )


def _log_is_whole(place: Place, uri: str, lanes: Sequence[Sequence[Mapping[str, Any]]]) -> bool:
    status = namespace_status(uri, settings=place.settings)
    noted = [samples[-1]["batches"] for samples in lanes]
    stored = {lane.name: lane.batches for lane in status.lanes}
    return [stored[f"{lane}"] for lane in range(len(lanes))] == noted and status.steps == sum(noted)


def _add(report: Report, shown: Any, store: str, n: int, pace: Pace, outcome: Outcome) -> None:
    shown.add_row(
        store,
        f"{n}",
        pace,
        f"{outcome.attempts:,}",
        f"{outcome.success:.1%}",
        f"{outcome.lag_s:.2f}",
        f"{1e3 * outcome.window_s:.1f}",
        f"{outcome.gap_s:.2f}",
        f"{outcome.n_bytes / outcome.seconds / 1e6:.2f}",
        f"{outcome.first_mb_s:.2f}",
        f"{outcome.last_mb_s:.2f}",
    )
    name = f"batches.commits.{store}.{n}.{pace.replace(' ', '_')}"
    report.rows += [
        Row(f"{name}.attempts", outcome.attempts, "attempts"),
        at_least(f"{name}.success", round(outcome.success, 4), "ratio", SUCCESS),
        at_least(
            f"{name}.last_of_first_tenth",
            round(outcome.last_mb_s / outcome.first_mb_s, 3),
            "ratio",
            LAST_OF_FIRST,
        ),
        Row(f"{name}.lag_s", round(outcome.lag_s, 3), "s"),
        Row(f"{name}.window_s", round(outcome.window_s, 5), "s"),
    ]


if __name__ == "__main__":
    produce(sys.argv[1], sys.argv[2], Path(sys.argv[3]), sys.argv[4])
