"""What a trainer pays: importing the client, and a batch of tensors by thread or by torch's workers.

1 GiB of rows of 2,048 int32 tokens, a shuffled 60/30/10 blend, read as rank 0 of 10 in batches of 8 rows.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from bench.harness import ROOT, Report, Row, at_most, table
from bench.peers import run_for_json
from bench.stream_data import lake_of, written
from bench.stream_grpc import serving

CAVEATS = [
    "CPU is of the trainer's process and its workers, from the 64th batch on; a server's is not in it.",
    "`constant` is torch's DataLoader over one tensor that is there already: what it costs without data.",
]
READER = Path(__file__).with_name("client_reader.py")
ROWS, LAYOUT = 131_072, "plain"
RUNS, GIB = 3, 2**30
STEPS = 1_400  # of 1,638 that the blend has
MOST_IMPORT_S = 0.3
IMPORTS = ("numpy, pyarrow, grpc", "blender.client", "blender.local", "torch", "blender.torch")
IMPORT = "import time; began = time.process_time(); import {}; print(time.process_time() - began)"


def measure(progress: Console) -> Report:
    """Time imports, then read the same steps in every way."""
    home = written(ROWS, progress)
    report = Report(CAVEATS, f"{ROWS:,} rows of 2,048 int32 in {home}")
    _add_imports(report, progress)
    lake = lake_of(home).home
    blend = json.loads((home / "blends.json").read_text())[LAYOUT]
    environment = os.environ | {"FACTORY_HOME": str(lake), "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    runs: dict[str, list[Mapping[str, Any]]] = {}
    with serving([sys.executable, "-m", "blender.serving.serve", "--port", "0"], environment) as (_, address):
        ways = {
            f"{name}, {workers or 'no'} workers": [*arguments, str(workers), str(STEPS)]
            for workers in (0, 2)
            for name, arguments in (
                ("constant", ["constant"]),
                ("server", ["server", address, blend]),
                ("direct", ["direct", str(lake), blend]),
            )
        }
        for run in range(RUNS):
            progress.print(f"reading, run {run + 1} of {RUNS}")
            for way, arguments in ways.items():
                found = run_for_json([sys.executable, str(READER), *arguments], environment)
                runs.setdefault(way, []).append(found)
    hashes = {run["hash"] for way, of in runs.items() if not way.startswith("constant") for run in of}
    report.check("a server, this process, threads and workers give the same steps", len(hashes) == 1)
    made = table("A batch of 64 KiB as a tensor", "reader", "CPU s/GiB", "best", "MiB/s")
    for way, of in runs.items():
        costs = [run["cpu_s"] / run["bytes"] * GIB for run in of]
        rate = statistics.median(run["bytes"] / 2**20 / run["wall_s"] for run in of)
        made.add_row(way, f"{statistics.median(costs):.2f}", f"{min(costs):.2f}", f"{rate:,.0f}")
        name = way.replace(", ", ".").replace(" ", "_")
        report.rows.append(Row(f"client.{name}.cpu", statistics.median(costs), "CPU s/GiB"))
    report.tables.append(made)
    return report


def _add_imports(report: Report, progress: Console) -> None:
    made = table("Imports", "modules", "CPU s", "best")
    for modules in IMPORTS:
        progress.print(f"importing {modules}")
        spent = [
            float(
                subprocess.run(
                    [sys.executable, "-c", IMPORT.format(modules)],
                    capture_output=True,
                    text=True,
                    check=True,
                    env=os.environ | {"PYTHONPATH": str(ROOT)},
                ).stdout
            )
            for _ in range(RUNS)
        ]
        made.add_row(modules, f"{statistics.median(spent):.2f}", f"{min(spent):.2f}")
        if modules == "blender.client":
            report.rows.append(at_most("client.import", statistics.median(spent), "CPU s", MOST_IMPORT_S))
    report.tables.append(made)
