"""One writing run at a time on an embedded lake.

A run takes the lock before its first write and holds it until it ends; readers and Blender never do. The
operating system frees the lock when a process dies, so a killed run leaves no lock behind, only traces
that the next holder reaps.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from factory.errors import LakeLocked, MachineError
from factory.settings import Settings


@contextlib.contextmanager
def writing(settings: Settings, what: str) -> Iterator[None]:
    """Hold the lake's lock; raises LakeLocked, naming the holder, when another run has it.

    A lake on servers has no such lock: Dagster's queue orders its runs.
    """
    if not settings.embedded:
        yield
        return
    path = settings.home / "writing.lock"
    holder = settings.home / "writing.json"
    try:
        settings.home.mkdir(parents=True, exist_ok=True)
        lock = FileLock(path)
        lock.acquire(timeout=0)
    except Timeout as error:
        raise LakeLocked(
            f"Another run is writing the lake {settings.home}: {_describe(holder)}. "
            "Wait until it ends, or set FACTORY_HOME to another folder."
        ) from error
    except OSError as error:
        raise MachineError(
            f"The lake's folder {settings.home} cannot be written ({error.strerror}). "
            "Set FACTORY_HOME to a folder you can write."
        ) from error
    try:
        holder.write_text(json.dumps({"pid": os.getpid(), "what": what, "since": time.strftime("%H:%M:%S")}))
        yield
    finally:
        holder.unlink(missing_ok=True)
        lock.release()


def _describe(holder: Path) -> str:
    try:
        says = json.loads(holder.read_text())
        return f"process {says['pid']}, {says['what']}, since {says['since']}"
    except (OSError, ValueError, TypeError, KeyError):  # not written yet, or cut short by a full disk
        return "a run that has not said who it is"
