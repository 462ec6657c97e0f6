"""Start the Dagster UI on a lake."""

from __future__ import annotations

import os
import sys

import yaml

from assets.corpus import corpus
from factory.atomic_file import write_atomically
from factory.cli.serving import require_free_port
from factory.orchestration.host.execution import CODE_LOCATION
from factory.orchestration.host.instance import prepare_home
from factory.settings import Settings


def open_ui(settings: Settings, port: int) -> None:
    """Replace this process by Dagster's webserver and daemon on the lake."""
    require_free_port(port)
    corpus(settings)  # report a wrong datasets file here rather than in the web page
    prepare_home(settings)
    os.environ |= settings.environment()
    os.execv(sys.executable, ui_command(settings, port))


def ui_command(settings: Settings, port: int, module: str = "jobs.definitions") -> list[str]:
    """Return the command for Dagster's webserver and its daemon (backfills, schedules, sensors, queue).

    The code location is loaded from a workspace file, because no option sets the name under which the command
    line records its runs.
    """
    workspace = settings.files.dagster_workspace
    location = {"python_module": {"module_name": module, "location_name": CODE_LOCATION}}
    write_atomically(workspace, yaml.safe_dump({"load_from": [location]}))
    arguments = ["-w", str(workspace), "-h", "127.0.0.1", "-p", str(port)]
    return [sys.executable, "-m", "dagster", "dev", *arguments]
