"""Servers and ranks of the deliveries of `bench loading`, each in a process of its own.

    with served(lake, "blender.loading", blend, "--mesh", "tp=8") as server:
        with ranks(lake, [{"reader": "constructor", "rank": 0, ...}, ...]) as started:
            costs = started.read()              # one a rank
            server.cpu_s, server.counts(), unique_mib([server.pid, *started.pids])

Processes end with their context.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from subprocess import PIPE
from typing import Any

import psutil

from bench.peers import PeerFailed, environment
from bench.stream.through_grpc import serving
from factory.settings import Settings

PROGRAM = "bench.loading.rank"
_SETTLE_S = 0.3  # until buffers that are read ahead are full


@dataclass(frozen=True)
class Server:
    """A process that serves rows."""

    pid: int
    address: str
    metrics: int
    """The port of its counters."""

    @property
    def cpu_s(self) -> float:
        """The CPU seconds that it has used."""
        times = psutil.Process(self.pid).cpu_times()
        return float(times.user + times.system)

    def counts(self) -> dict[str, float]:
        """Its counters of reads and messages, summed over tables, by their names in Prometheus."""
        from prometheus_client.parser import text_string_to_metric_families

        with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics}/metrics", timeout=20) as answer:
            families = list(text_string_to_metric_families(answer.read().decode()))
        return {family.name: sum(sample.value for sample in family.samples) for family in families}


@contextmanager
def served(lake: Settings, module: str, *arguments: str) -> Iterator[Server]:
    """Start `python -m module arguments` over a lake, with counters on a port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    command = [sys.executable, "-m", module, *arguments, "--port", "0", "--metrics-port", str(port)]
    with serving(command, environment() | lake.environment()) as (pid, address):
        if not address:
            raise PeerFailed(f"`{' '.join(command[1:4])} ...` did not start. Run it by hand to see why.")
        yield Server(pid, address, port)


class Ranks:
    """Warm ranks."""

    def __init__(self, processes: Sequence[subprocess.Popen[str]]) -> None:
        self._processes = processes

    @property
    def pids(self) -> list[int]:
        """Their processes."""
        return [process.pid for process in self._processes]

    @property
    def workers(self) -> list[int]:
        """The processes that they have started."""
        roots = [psutil.Process(pid) for pid in self.pids]
        return [process.pid for root in roots for process in root.children(recursive=True)]

    def read(self) -> list[dict[str, Any]]:
        """Let all ranks read their timed steps at once; returns what each prints."""
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
        costs = [json.loads(_line_of(process)) for process in self._processes]
        time.sleep(_SETTLE_S)
        return costs


@contextmanager
def ranks(lake: Settings, readings: Iterable[Mapping[str, Any]]) -> Iterator[Ranks]:
    """Start a rank for each reading, and wait until all are warm; raises PeerFailed if one fails."""
    variables = environment() | lake.environment()
    with ExitStack() as stack:
        processes = []
        for reading in readings:
            command = [sys.executable, "-m", PROGRAM, json.dumps(reading)]
            process = subprocess.Popen(command, env=variables, stdin=PIPE, stdout=PIPE, text=True)
            stack.enter_context(process)
            stack.callback(process.kill)
            processes.append(process)
        for process in processes:
            _line_of(process)
        time.sleep(_SETTLE_S)
        yield Ranks(processes)


def unique_mib(pids: Iterable[int]) -> float:
    """The MiB of processes that no other process shares."""
    return sum(psutil.Process(pid).memory_full_info().uss for pid in pids) / 2**20


def _line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise PeerFailed("A rank ended early. Its error is above.")
    return line
