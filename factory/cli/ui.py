"""The Dagster UI on a lake: a code server, the webserver and the daemon, started and ended together.

    factory ui           starts the three, watches them, ends them on SIGTERM, SIGINT and SIGHUP
    ├── code server      loads the definitions for the other two; runs are its children
    ├── webserver        the page
    └── daemon           backfills, schedules, sensors, the queue

Asked to end, Dagster's services may take a minute, so they are killed after one second. A kill loses
nothing: records are in databases, and tables are published whole or not at all.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import yaml
from rich.console import Console

from assets.corpus import corpus
from blender.serving.shutdown import ForcedExit, ShutdownSignal
from factory.cli.import_problems import require_own_packages
from factory.cli.serving import require_free_port
from factory.errors import MachineError
from factory.orchestration.host.execution import CODE_LOCATION
from factory.orchestration.host.instance import prepare_home
from factory.settings import Settings

DEFINITIONS = "jobs.definitions"
HOST = "127.0.0.1"
STOP_S = 1.0  # for everything below this process to end by itself
_LOOK_EVERY_S = 0.2


def open_ui(settings: Settings, port: int, console: Console, module: str = DEFINITIONS) -> None:
    """Serve the UI of the lake, with the definitions of a module, until a signal asks this process to end.

    Raises MachineError when the port is in use, or when one of Dagster's services ends by itself,
    ConfigurationError when a folder hides the definitions from the code server.
    """
    require_free_port(port)
    require_own_packages()
    corpus(settings)  # report a wrong datasets file here rather than in the web page
    prepare_home(settings)
    os.environ |= settings.environment()
    shutdown = ShutdownSignal()
    shutdown.install(signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    lake = settings.warehouse or settings.home
    console.print(f"Starting Dagster on the lake {lake} ...", soft_wrap=True)
    with suppress(ForcedExit), tempfile.TemporaryDirectory(prefix="factory-ui-") as name, _ending_all():
        services = _Services(shutdown)
        code, workspace = Path(name, "code.sock"), Path(name, "workspace.yaml")
        workspace.write_text(yaml.safe_dump(workspace_of(code)))
        services.start("code server", "dagster", "code-server", "start", *_code_server(module, code))
        services.wait_for(socket.AF_UNIX, str(code))
        files = ["--workspace", str(workspace)]
        page = ["--host", HOST, "--port", str(port), "--dagster-log-level", "warning"]
        services.start("webserver", "dagster_webserver", *page, *files)
        services.start("daemon", "dagster._daemon", "run", "--log-level", "warning", *files)
        if services.wait_for(socket.AF_INET, (HOST, port)):
            console.print(f"The UI is at http://{HOST}:{port}. Ctrl-C stops it and the runs it started.")
        services.watch()
    os._exit(0)  # a regular exit spends seconds on taking Dagster's modules apart


def workspace_of(code_server: Path) -> dict[str, Any]:
    """Return the workspace of the code server at a socket.

    Only a workspace gives the code location the name under which the command line records its runs.
    """
    location = {"socket": str(code_server), "location_name": CODE_LOCATION}
    return {"load_from": [{"grpc_server": location}]}


def _code_server(module: str, path: Path) -> list[str]:
    arguments = ["--module-name", module, "--location-name", CODE_LOCATION, "--socket", str(path)]
    return [*arguments, "--log-level", "warning", "--use-python-environment-entry-point"]


class _Services:
    """Child processes that run until somebody stops this process."""

    def __init__(self, shutdown: ShutdownSignal) -> None:
        self._shutdown = shutdown
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, module: str, *arguments: str) -> None:
        """Start a Python module, unless this process was asked to stop."""
        if not self._shutdown.is_set():
            # A session of its own: Ctrl-C in a terminal reaches this process, which ends the others.
            command = [sys.executable, "-m", module, *arguments]
            self._running[name] = subprocess.Popen(command, start_new_session=True)

    def wait_for(self, family: socket.AddressFamily, address: str | tuple[str, int]) -> bool:
        """Wait until a service listens at an address; return False if asked to stop before."""
        while not self._shutdown.wait(_LOOK_EVERY_S):
            self._require_running()
            with socket.socket(family) as probe, suppress(OSError):  # not yet
                probe.connect(address)
                return True
        return False

    def watch(self) -> None:
        """Wait for a signal to stop this process."""
        while not self._shutdown.wait(_LOOK_EVERY_S):
            self._require_running()

    def _require_running(self) -> None:
        for name, process in self._running.items():
            code = process.poll()
            if code is not None:
                raise MachineError(
                    f"Dagster's {name} ended with exit code {code}. Its output is above; "
                    "remove the cause and start `factory ui` again."
                )


@contextmanager
def _ending_all() -> Iterator[None]:
    """At the end of the block, end every process below this one."""
    try:
        yield
    finally:
        asked = _descendants()
        _signal(asked, signal.SIGTERM)
        _, left = psutil.wait_procs(asked, STOP_S)
        left = list({*left, *_descendants()})
        _signal(left, signal.SIGKILL)
        psutil.wait_procs(left)


def _descendants() -> list[psutil.Process]:
    return psutil.Process().children(recursive=True)


def _signal(processes: Sequence[psutil.Process], number: signal.Signals) -> None:
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(number)
