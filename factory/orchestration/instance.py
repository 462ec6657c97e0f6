"""The Dagster instance of a lake, configured once below FACTORY_HOME."""

from __future__ import annotations

import os

import dagster as dg

from factory.errors import MachineError
from factory.settings import Settings

_DAGSTER_YAML = """# Written by the Model Factory where this file is missing; edit it freely.
telemetry:
  enabled: false
run_queue:
  max_concurrent_runs: 1  # an embedded lake has one writer; a pool would be held by the ghost of a killed run
"""


def prepare_home(settings: Settings) -> None:
    """Create DAGSTER_HOME with its dagster.yaml and point this process at it."""
    home = settings.dagster_home
    try:
        home.mkdir(parents=True, exist_ok=True)
        config = home / "dagster.yaml"
        if not config.exists():
            config.write_text(_DAGSTER_YAML)
    except OSError as error:
        raise MachineError(
            f"The folder {home} cannot be written ({error.strerror}). "
            "Set FACTORY_HOME to a folder you can write."
        ) from error
    os.environ["DAGSTER_HOME"] = str(home)


def open_instance(settings: Settings) -> dg.DagsterInstance:
    """The Dagster instance of the lake."""
    prepare_home(settings)
    return dg.DagsterInstance.get()
