"""A test that never ends and stops nothing that it starts, which `test_reaper` runs."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil

from tests.engines.processes import ObjectStore, Postgres, SparkCluster

# A daemon as servers make them: its parent has ended, and it has a session of its own.
DAEMON = """
import os, signal, sys
if os.fork():
    os._exit(0)
os.setsid()
if child := os.fork():
    print(child, flush=True)
    os._exit(0)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.close(1)
signal.pause()
"""


def test_servers_of_every_kind_run(tmp_path: Path) -> None:
    servers = [ObjectStore(tmp_path).process.popen.pid]
    daemon = subprocess.run([sys.executable, "-c", DAEMON], stdout=subprocess.PIPE, check=True)
    servers.append(int(daemon.stdout))
    forked = multiprocessing.get_context("fork").Process(target=signal.pause)
    forked.start()
    assert forked.pid
    servers.append(forked.pid)
    if os.environ.get("WITH_ENGINES"):
        servers.append(Postgres().process.popen.pid)
        servers += [process.popen.pid for process in SparkCluster(tmp_path)._processes]
    descendants = [child.pid for pid in servers for child in psutil.Process(pid).children(recursive=True)]
    ready = Path(os.environ["READY"])
    ready.with_suffix(".new").write_text(json.dumps({"servers": servers, "descendants": descendants}))
    ready.with_suffix(".new").rename(ready)
    signal.pause()
