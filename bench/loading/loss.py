"""How far planning moves the loss of a training run: a tiny model on real text, 200 steps, on several meshes.

MegaScale-Data, Figure 18. A plan keeps the rows of every step, so only the order of sums can differ. Every
run is `examples/mesh/train.py` from equal weights: processes that torchrun would start, and a constructor.
"""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console

from bench.cache import cached
from bench.harness import Report, Row, table
from bench.installation import installed_files
from bench.lakes import own_lake
from bench.peers import ROOT, PeerFailed, environment
from bench.stream.through_grpc import serving
from blender.catalog.blends import open_blends
from blender.records import Source
from factory._native import best_fit_decreasing
from factory.lake.catalog import open_catalog
from factory.lake.schemas.packing import PACKED, SEQUENCE_LENGTH, TOKEN_BYTES, VOCABULARY_SIZE
from factory.settings import Settings

LENGTH, STEPS, ROWS_PER_STEP, MICROBATCHES = 256, 200, 16, 8
VOCABULARY = 256  # a byte is a token
_TEXT_BYTES = 1 << 20
TRAINER = ROOT / "examples/mesh/train.py"
DATA = f"`loss`: {_TEXT_BYTES >> 20} MiB of Python files of this installation, rows of {LENGTH} bytes"
CAVEATS = (
    f"`loss`: a model of one layer, AdamW, {STEPS} steps of {ROWS_PER_STEP} rows; differences are means over "
    "the steps. `plain` gives ranks their rows as they come, `llm` as planned.",
)


@dataclass(frozen=True)
class Run:
    """A mesh and a strategy."""

    name: str
    mesh: str
    ranks: int
    strategy: str

    @property
    def microbatches(self) -> int:
        """Microbatches of a bucket, each with as many rows as on any other mesh."""
        return MICROBATCHES // 2 if "dp=2" in self.mesh else MICROBATCHES


ALONE = Run("plain, one rank", "dp=1", 1, "plain")
DATA_PARALLEL = Run("plain, dp 2", "dp=2", 2, "plain")
CONTEXT_PARALLEL = Run("plain, cp 2", "cp=2", 2, "plain")
COMPARED = (
    (DATA_PARALLEL, ALONE),
    (Run("llm, dp 2", "dp=2", 2, "llm"), DATA_PARALLEL),
    (CONTEXT_PARALLEL, ALONE),
    (Run("llm, cp 2", "cp=2", 2, "llm"), CONTEXT_PARALLEL),
)
"""Runs, and the run that each is compared with."""


def measure(progress: Console) -> Report:
    """Train every run from the same weights, and compare its losses with those of another run."""
    report = Report(CAVEATS, DATA)
    lake, blend = opened(progress)
    trained: dict[Run, npt.NDArray[np.float64]] = {}
    for run in (ALONE, *(run for run, _ in COMPARED)):
        progress.print(f"training {STEPS} steps: {run.name}")
        trained[run] = losses(lake, blend, run, STEPS)
    alone = trained[ALONE]
    report.check(f"the model learns in {STEPS} steps", bool(alone[-1] < 0.9 * alone[0]))
    report.check(
        "all runs begin with one loss", all(abs(one[0] - alone[0]) < 1e-5 for one in trained.values())
    )
    columns = "run | first loss | last loss | compared with | mean difference | largest"
    shown = table(f"Losses of {STEPS} steps and their differences, nats", columns)
    shown.add_row(ALONE.name, f"{alone[0]:.5f}", f"{alone[-1]:.5f}", "", "", "")
    for run, other in COMPARED:
        one = trained[run]
        differences = np.abs(one - trained[other])
        figures = (f"{differences.mean():.1e}", f"{differences.max():.1e}")
        shown.add_row(run.name, f"{one[0]:.5f}", f"{one[-1]:.5f}", other.name, *figures)
        name = f"loading.loss.{run.strategy}.{run.mesh.replace('=', '')}.mean_difference"
        report.rows.append(Row(name, float(differences.mean()), "nats"))
    report.tables.append(shown)
    return report


def losses(lake: Settings, blend: str, run: Run, steps: int) -> npt.NDArray[np.float64]:
    """The loss of every step; raises PeerFailed if a rank fails."""
    options = {"mesh": run.mesh, "strategy": run.strategy, "microbatches": str(run.microbatches)}
    options |= {"model": "hidden=32,layers=1", "port": "0"}
    arguments = [word for name, option in options.items() for word in (f"--{name}", option)]
    command = [sys.executable, "-m", "blender.loading", blend, *arguments]
    variables = environment() | lake.environment()
    with tempfile.TemporaryDirectory() as folder, serving(command, variables) as (_, address):
        if not address:
            raise PeerFailed(f"`{' '.join(command[1:])}` did not start. Run it by hand to see why.")
        trainer = [sys.executable, str(TRAINER), address, "planned", str(steps), folder]
        printed = _outputs(trainer, run.ranks, variables)
    found = re.findall(r"step (\d+): loss ([\d.]+)", printed[0])
    if [int(step) for step, _ in found] != list(range(steps)):
        raise PeerFailed(f"{run.name} trained {len(found)} of {steps} steps. Its errors are above.")
    return np.array([float(loss) for _, loss in found])


def opened(progress: Console) -> tuple[Settings, str]:
    """The lake of packed text and its blend, written if missing."""

    def make(home: Path) -> None:
        progress.print(f"packing {_TEXT_BYTES >> 20} MiB of Python files into rows of {LENGTH} bytes")
        write(own_lake(home / "lake"), _text(_TEXT_BYTES))

    home = cached(f"loading/loss-{_TEXT_BYTES}-{LENGTH}", make)
    lake = own_lake(home / "lake")
    source = Source("packed.text", ROWS_PER_STEP, oversample=True, shuffle="row")
    return lake, open_blends(lake).create([source]).id


def write(lake: Settings, documents: list[bytes]) -> None:
    """Pack documents into rows of `LENGTH` bytes, a byte a token, as a packed table."""
    pieces = [text[start : start + LENGTH] for text in documents for start in range(0, len(text), LENGTH)]
    lengths = pa.array([len(piece) for piece in pieces], pa.int64())
    rows: dict[int, list[bytes]] = {}
    for number, piece in zip(best_fit_decreasing(lengths, LENGTH).to_pylist(), pieces, strict=True):
        rows.setdefault(number, []).append(piece)
    packed = pa.Table.from_pylist(
        [
            {
                "ordinal": ordinal,
                "tokens": np.frombuffer(b"".join(rows[ordinal]), np.uint8).astype("<u2").tobytes(),
                "n_tokens": sum(map(len, rows[ordinal])),
                "segments": [
                    {"doc_id": f"{ordinal}-{at}", "doc_offset": 0, "length": len(piece)}
                    for at, piece in enumerate(rows[ordinal])
                ],
                **dict.fromkeys(("append", "shard", "chunk"), 0),
            }
            for ordinal in range(len(rows))
        ],
        schema=PACKED.columns,
    )
    lake.home.mkdir(parents=True)
    path = lake.home.absolute() / "text.parquet"
    pq.write_table(packed, path, write_page_index=True, store_schema=False)
    catalog = open_catalog(lake)
    catalog.create_namespace_if_not_exists("packed")
    properties = {TOKEN_BYTES: "2", SEQUENCE_LENGTH: f"{LENGTH}"}
    made = catalog.create_table("packed.text", schema=PACKED.columns, properties=properties)
    facts = {"factory.content": "text", VOCABULARY_SIZE: f"{VOCABULARY}"}
    made.add_files([path.as_uri()], snapshot_properties=facts)


def _text(n_bytes: int) -> list[bytes]:
    """Python files up to a number of bytes, whole."""
    documents, left = [], n_bytes
    for path in installed_files():
        if path.suffix == ".py" and 0 < path.stat().st_size <= left:
            documents.append(path.read_bytes())
            left -= len(documents[-1])
    return documents


def _outputs(command: list[str], ranks: int, variables: dict[str, str]) -> list[str]:
    """What each of `ranks` processes prints, all started as torchrun starts them."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    shared = {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port,
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": str(ROOT),
    }
    processes = [
        subprocess.Popen(
            command,
            env={**variables, **shared, "RANK": str(rank), "WORLD_SIZE": str(ranks)},
            stdout=PIPE,
            text=True,
        )
        for rank in range(ranks)
    ]
    try:
        return [process.communicate(timeout=900)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
