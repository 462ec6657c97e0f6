"""File locks: one writing run at a time on an embedded lake, one process at a time that sets up shared files.

A run takes the lock before its first write and holds it until it ends; readers and Blender never take it. The
operating system releases the lock of a dead process, so a killed run leaves no lock behind, only branches and
scratch that the next holder cleans up.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
from filelock import FileLock, Timeout

from factory.errors import LakeLocked, MachineError
from factory.settings import Settings


@contextlib.contextmanager
def writing(settings: Settings, what: str, token: str = "") -> Iterator[None]:
    """Hold the lake's lock; raise LakeLocked, naming the holder, if another run has it.

    `token` identifies the run to others. A lake on servers has no such lock, because its runs may write
    different tables at once; `factory.lake.presence` tracks them.
    """
    if not settings.embedded:
        yield
        return
    path = settings.files.writing_lock
    holder = settings.files.writer
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
        since = time.strftime("%H:%M:%S")
        holder.write_text(json.dumps({"pid": os.getpid(), "what": what, "since": since, "token": token}))
        yield
    finally:
        holder.unlink(missing_ok=True)
        lock.release()


@contextlib.contextmanager
def making(folder: Path) -> Iterator[Path]:
    """Hold the lock for creating shared files below `folder`; other processes wait.

    Files that several processes need at first use, such as a database or a download, are created in the
    yielded folder and renamed, so a process finds them whole or not at all. Raises MachineError if `folder`
    cannot be written.
    """
    new = folder / f".making-{os.getpid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / "making.lock")
        lock.acquire()
    except OSError as error:
        raise MachineError(
            f"The folder {folder} cannot be written ({error.strerror}). "
            "Set FACTORY_HOME and FACTORY_CACHE to folders you can write."
        ) from error
    try:
        for left in folder.glob(".making*"):  # of a killed process, whose JVM may still write there
            shutil.rmtree(left, ignore_errors=True)
        yield new
    finally:
        shutil.rmtree(new, ignore_errors=True)
        lock.release()


def holds(settings: Settings, token: str) -> bool:
    """Whether the run `token` holds the embedded lake's lock and its process is alive."""
    try:
        says = json.loads((settings.files.writer).read_text())
        return bool(says["token"] == token and psutil.pid_exists(says["pid"]))
    except (OSError, ValueError, TypeError, KeyError):  # nobody holds it, or could not sign
        return False


def _describe(holder: Path) -> str:
    try:
        says = json.loads(holder.read_text())
        return f"process {says['pid']}, {says['what']}, since {says['since']}"
    except (OSError, ValueError, TypeError, KeyError):  # not written yet, or cut short by a full disk
        return "a run that has not said who it is"
