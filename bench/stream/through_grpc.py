"""The cost of a blend through gRPC, server and client together, against constant bytes on the same stack."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from subprocess import PIPE
from typing import Any

import psutil
from rich.console import Console

from bench.harness import Report, Row, Runs, at_most, table
from bench.peers import environment
from blender import BlenderClient, Source
from factory.settings import Settings

PROGRAM = "bench.stream.grpc_reader"
WEIGHTS = (72, 36, 12)  # 120 rows of 8 KiB: a step of 15 ranks is a block of just under 1 MiB
RANKS = 15
GIB, READ_BYTES, RUNS = 2**30, 2**29, 3
MESSAGE_BYTES = sum(WEIGHTS) * 8_192
MOST_AT_1_MIB, MOST_AT_64_KIB = 1.25, 1.5

Figures = Mapping[str, Any]


def add(
    report: Report,
    lake: Settings,
    tables: Sequence[str],
    shuffle: Mapping[str, Any],
    name: str,
    progress: Console,
) -> None:
    """Read a blend of `tables` of the lake directly and through gRPC; add the costs to the report.

    `shuffle` holds the fields of every source's shuffle. Raises WrongAnswer if the rows through gRPC differ.
    """
    sources = [
        Source(of, weight, oversample=True, **shuffle) for of, weight in zip(tables, WEIGHTS, strict=True)
    ]
    variables = environment() | lake.environment()
    blender = [sys.executable, "-m", "blender.serving", "--port", "0"]
    constant = [sys.executable, "-m", PROGRAM, "serve"]
    found: dict[str, list[Figures]] = {}
    with (
        serving(constant, variables) as (its_pid, its_address),
        serving(blender, variables) as (pid, address),
        BlenderClient(address) as client,
    ):
        blend = client.create(sources, seed=11).id
        ways: dict[str, tuple[list[str], int, int | None]] = {
            "constant": (["constant", its_address], 1, its_pid)
        }
        for ranks in (1, RANKS):
            ways[f"direct_{ranks}"] = (["direct", blend, str(ranks)], ranks, None)
            ways[f"grpc_{ranks}"] = (["blocks", address, blend, str(ranks)], ranks, pid)
        for run in range(RUNS):
            progress.print(f"{name} through gRPC, run {run + 1} of {RUNS}")
            for way, (arguments, ranks, server) in ways.items():
                found.setdefault(way, []).append(_read(variables, arguments, ranks, server))
    _show(report, name, {way: Runs(tuple(runs)) for way, runs in found.items()})


def _show(report: Report, name: str, runs: Mapping[str, Runs]) -> None:
    for ranks in (1, RANKS):
        same = {run["hash"] for way in ("direct", "grpc") for run in runs[f"{way}_{ranks}"].runs}
        report.check(f"{name}: rank 0 of {ranks} reads the same rows through gRPC", len(same) == 1)
    made = table(f"Through gRPC, {name}", "reader | CPU s/GiB | best | server's part | MiB/s")
    for way, of in runs.items():
        server, rate = of.median("server_s"), of.median("mib_per_s")
        median, best = of.median("cpu_s_per_gib"), of.best("cpu_s_per_gib")
        made.add_row(way, f"{median:.2f}", f"{best:.2f}", f"{server:.2f}", f"{rate:,.0f}")
        report.rows.append(Row(f"stream.{name}.{way}.cpu", median, "CPU s/GiB"))
    report.tables.append(made)
    cost = {way: of.median("cpu_s_per_gib") for way, of in runs.items()}
    constant = cost["constant"]
    beyond = cost["grpc_1"] - cost["direct_1"]
    allowed = MOST_AT_1_MIB * constant + cost[f"direct_{RANKS}"]
    at_64_kib = cost[f"grpc_{RANKS}"] / allowed
    report.rows += [
        at_most(f"stream.{name}.grpc.1mib", beyond / constant, "of constant", MOST_AT_1_MIB),
        at_most(f"stream.{name}.grpc.64kib", at_64_kib, "of allowed", MOST_AT_64_KIB),
    ]


def _read(
    variables: Mapping[str, str], arguments: Sequence[str], ranks: int, server: int | None = None
) -> dict[str, Any]:
    """The CPU of a warm reader's process and of its server."""
    n = READ_BYTES // (MESSAGE_BYTES // ranks)
    command = [sys.executable, "-m", PROGRAM, *arguments, str(n)]
    with subprocess.Popen(command, env=variables, stdin=PIPE, stdout=PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        before = _cpu_s(server)
        process.stdin.write("\n")
        process.stdin.flush()
        found = json.loads(process.stdout.readline())
        spent = _cpu_s(server) - before
    gib = found["bytes"] / GIB
    return {
        "hash": found["hash"],
        "cpu_s_per_gib": (found["cpu_s"] + spent) / gib,
        "server_s": spent / gib,
        "mib_per_s": found["bytes"] / 2**20 / found["wall_s"],
    }


def _cpu_s(pid: int | None) -> float:
    if pid is None:
        return 0.0
    used = psutil.Process(pid).cpu_times()
    return float(used.user + used.system)


@contextmanager
def serving(command: Sequence[str], variables: Mapping[str, str]) -> Iterator[tuple[int, str]]:
    """Start a server; yield its process id and address."""
    with subprocess.Popen(command, env=variables, stdin=PIPE, stdout=PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield server.pid, server.stdout.readline().strip()
        finally:
            server.kill()
