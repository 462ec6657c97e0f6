"""Spark's scratch: one folder per process that runs Spark, dropped when the process is gone.

    FACTORY_HOME/spark/<host>-<pid>-<seconds>/   shuffle files, broadcast blocks, the JVM's temporary files

A killed process drops nothing, and its JVM outlives it by a second or two. So a folder stays while its
process lives, or any process started with the folder as `spark.local.dir`.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import socket
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import psutil

from factory.errors import MachineError
from factory.lake.lock import making
from factory.settings import Settings

log = logging.getLogger(__name__)

LOCAL_DIR = "spark.local.dir"
_OF_ONE_FOLDER_FOR_ALL = ("spark-*", "blockmgr-*", "artifacts*")  # created by Spark in `spark.local.dir`


@cache
def own_scratch(settings: Settings) -> Path:
    """Create and return this process's scratch folder; raise MachineError if that fails."""
    folder = settings.files.spark / f"{socket.gethostname()}-{os.getpid()}-{int(time.time())}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MachineError(
            f"The folder {folder} cannot be made ({error.strerror}). "
            "Set FACTORY_HOME to a folder you can write."
        ) from error
    return folder


def drop_dead_scratch(settings: Settings) -> list[Path]:
    """Drop the scratch of this machine's dead processes; return the folders."""
    shared = settings.files.spark
    with making(shared):  # on servers several runs begin at once
        orphans = [folder for folder in shared.iterdir() if _maker_is_gone(folder)]
        unowned = [folder for pattern in _OF_ONE_FOLDER_FOR_ALL for folder in shared.glob(pattern)]
        used = set(_used()) if orphans or unowned else set()
        dead = [folder for folder in orphans if folder not in used] + (unowned if shared not in used else [])
        return [folder for folder in dead if _dropped(folder)]


def _dropped(folder: Path) -> bool:
    """Drop a folder; return False and log if that fails, because leftover scratch hinders no run."""
    try:
        shutil.rmtree(folder)
    except OSError as error:
        log.warning("The scratch %s of a dead process stays until the next run (%s).", folder, error)
        return False
    return True


def _maker_is_gone(folder: Path) -> bool:
    """Whether the process of this machine that made `folder` is gone; its pid may have been reused."""
    found = re.fullmatch(rf"{re.escape(socket.gethostname())}-(\d+)-(\d+)", folder.name)
    if found is None:
        return False
    try:
        return psutil.Process(int(found[1])).create_time() > int(found[2]) + 1
    except psutil.NoSuchProcess:
        return True


def _used() -> Iterator[Path]:
    """Return the scratch folders of this machine's JVMs, from their command lines."""
    for process in psutil.process_iter(["cmdline"]):
        for argument in process.info["cmdline"] or ():
            name, _, folder = argument.partition("=")
            if name == LOCAL_DIR:
                yield Path(folder)
