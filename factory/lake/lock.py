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
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
from filelock import FileLock, Timeout

from factory.errors import LakeLocked, MachineError
from factory.lake.place import record_place, require_place
from factory.settings import Settings

_SIGNS_WITHIN_S = 1  # from taking the lock to signing for it


@contextlib.contextmanager
def writing(settings: Settings, what: str, token: str = "") -> Iterator[None]:
    """Hold the lake's lock; raise LakeMoved for a copied or moved lake, and the errors of `locked`.

    A lake from before places were recorded gets its record.
    """
    require_place(settings)
    with locked(settings, what, token):
        if settings.embedded and settings.files.catalog_database.exists():
            record_place(settings)
        yield


@contextlib.contextmanager
def locked(settings: Settings, what: str, token: str = "") -> Iterator[None]:
    """Hold the lock of the lake at any place; raise LakeLocked, naming the holder, if another run has it.

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
        signature = {"pid": os.getpid(), "host": socket.gethostname(), "what": what}
        holder.write_text(json.dumps({**signature, "since": since, "token": token}))
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
    """Return who holds the lock, waiting a moment for a process that has just taken it to sign."""
    deadline = time.monotonic() + _SIGNS_WITHIN_S
    while True:
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError):  # unsigned, or cut by a full disk
            signature = json.loads(holder.read_text())
            elsewhere = "host" in signature and signature["host"] != socket.gethostname()
            # On this machine, a process that is not there any more signed it before it was killed.
            if elsewhere or psutil.pid_exists(signature["pid"]):
                place = f" on {signature['host']}" if elsewhere else ""
                return f"process {signature['pid']}{place}, {signature['what']}, since {signature['since']}"
        if time.monotonic() > deadline:
            return "a run that has not said who it is"
        time.sleep(0.02)
