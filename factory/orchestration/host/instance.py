"""The Dagster instance of a lake, configured once below FACTORY_HOME.

The file `dagster.yaml` follows the settings until somebody edits it; an edited file stays as it is. It holds
no secret: the address of Dagster's storage comes from the environment.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
from dagster_shared.check import CheckError
from dagster_shared.error import DagsterError
from dagster_shared.serdes.errors import DeserializationError
from yaml import YAMLError

from factory.atomic_file import write_atomically
from factory.errors import ConfigurationError, DamagedFile, MachineError, first_line
from factory.lake.place import require_place
from factory.lake.servers import DAGSTER_URI, connect
from factory.lake.sqlite import withheld
from factory.orchestration.host.dagster_file import unedited_body, with_header
from factory.orchestration.host.queue import IN_LAKE, IN_TURN, IN_TURN_TAG, PLACE_TAG
from factory.settings import Settings

_MOST_RUNS = 25  # of the queue, with those that are not in the lake
_COMMON = f"""telemetry:
  enabled: false
nux:  # no newsletter dialog on a new lake's first page
  enabled: false
run_coordinator:
  module: factory.orchestration.host.queue
  class: LakeRunCoordinator
  config:
    max_concurrent_runs: {_MOST_RUNS}  # most of them wait for their workers
    tag_concurrency_limits:
      - key: {PLACE_TAG}
        value: {IN_LAKE}
        limit: 1  # raise it on servers, where runs may write different tables at once
      - key: {IN_TURN_TAG}  # runs of the sensor and the schedule read the tables of earlier runs
        value: "{IN_TURN}"
        limit: 1
run_launcher:
  module: factory.orchestration.host.launcher
  class: LakeRunLauncher
run_monitoring:  # mark a killed run as failed and free its place in the queue
  enabled: true
  poll_interval_seconds: 30
"""
_POSTGRES = f"""storage:
  custom:
    module: factory.orchestration.host.storage
    class: LakeStorage
    config:
      postgres_url:
        env: {DAGSTER_URI}
"""


def prepare_home(settings: Settings) -> None:
    """Create DAGSTER_HOME with its dagster.yaml and databases, and point this process at it.

    Raises ConfigurationError if an edited dagster.yaml lacks the storage that the settings name, LakeMoved
    for a copied or moved lake.
    """
    require_place(settings)
    home = settings.files.dagster
    try:
        home.mkdir(parents=True, exist_ok=True)
        _configure(settings.files.dagster_config, settings)
        if not settings.dagster_uri:
            # Dagster's storages bring SQLAlchemy and Alembic, which declaring assets does not need.
            from factory.orchestration.host.databases import make_records
            from factory.orchestration.host.engines import reuse_engines

            reuse_engines()
            make_records(home)
    except OSError as error:
        raise MachineError(
            f"The folder {home} cannot be written ({error.strerror}). "
            "Set FACTORY_HOME to a folder you can write."
        ) from error
    os.environ["DAGSTER_HOME"] = str(home)
    if settings.dagster_uri:
        os.environ[DAGSTER_URI] = settings.dagster_uri


def open_instance(settings: Settings) -> dg.DagsterInstance:
    """Return the Dagster instance of the lake.

    Raises MachineError or ConfigurationError if its Postgres does not answer or refuses the user.
    """
    prepare_home(settings)
    if settings.dagster_uri:
        connect(settings.dagster_uri, DAGSTER_URI, "model-factory").close()  # Dagster would retry for long
    try:
        return dg.DagsterInstance.get()
    except (DagsterError, CheckError, YAMLError) as error:  # CheckError: the file is not a mapping
        raise _refused(settings.files.dagster_config, error) from error


@contextmanager
def reading_runs(settings: Settings) -> Iterator[None]:
    """Turn Dagster's errors about the run records of an embedded lake into DamagedFile or MachineError."""
    from sqlalchemy.exc import DatabaseError

    try:
        yield
    except (DatabaseError, DeserializationError, ValueError) as error:
        if settings.dagster_uri:
            raise
        file, cause = settings.files.dagster_runs, getattr(error, "orig", error)
        raise withheld(file, cause) or DamagedFile(
            f"Dagster's run records, {file}, cannot be read ({first_line(cause)[:200]}). "
            "Restore the file, or delete it with its -wal and -shm while nothing runs: it holds the run "
            "history of the UI and nothing of the lake."
        ) from error


def _refused(file: Path, error: Exception) -> ConfigurationError:
    return ConfigurationError(
        f"Dagster does not start with {file} ({first_line(error)}). "
        "Correct the file, or delete it to have it written anew."
    )


def _configure(file: Path, settings: Settings) -> None:
    body = _COMMON + (_POSTGRES if settings.dagster_uri else "")
    if file.exists():
        try:
            found = file.read_text()
        except UnicodeDecodeError as error:
            raise _refused(file, error) from error
        written_body = unedited_body(found)
        if written_body is None:
            if settings.dagster_uri and DAGSTER_URI not in found:
                raise ConfigurationError(
                    f"{DAGSTER_URI} is set, and {file}, which was edited, does not name it. "
                    "Delete the file to have it written anew, or name the storage in it."
                )
            return
        if written_body == body:
            return
    write_atomically(file, with_header(body))
