"""Spark's scratch: a folder for each process that runs Spark, dropped when the process is gone.

    FACTORY_HOME/spark/<host>-<pid>-<seconds>/   shuffle files, broadcast blocks, the JVM's temporary files

A killed process drops nothing, and its JVM outlives it by a second or two. So a folder is left alone as long
as the process lives that made it, or one that was started with it as Spark's `spark.local.dir`.
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
_OF_ONE_FOLDER_FOR_ALL = ("spark-*", "blockmgr-*", "artifacts*")  # what Spark makes in its `spark.local.dir`


@cache
def own_scratch(settings: Settings) -> Path:
    """Make this process's folder of scratch in the lake, and give it; raises MachineError where it cannot."""
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
    """Drop the scratch of processes of this machine that are gone, and give its folders."""
    shared = settings.files.spark
    with making(shared):  # on servers several runs begin at once
        orphans = [folder for folder in shared.iterdir() if _maker_is_gone(folder)]
        unowned = [folder for pattern in _OF_ONE_FOLDER_FOR_ALL for folder in shared.glob(pattern)]
        used = set(_used()) if orphans or unowned else set()
        dead = [folder for folder in orphans if folder not in used] + (unowned if shared not in used else [])
        return [folder for folder in dead if _dropped(folder)]


def _dropped(folder: Path) -> bool:
    """Drop a folder; False, and a line in the log, where that fails: scratch that stays hinders no run."""
    try:
        shutil.rmtree(folder)
    except OSError as error:
        log.warning("The scratch %s of a dead process stays until the next run (%s).", folder, error)
        return False
    return True


def _maker_is_gone(folder: Path) -> bool:
    """Whether a process of this machine made `folder` and is gone; another of its number began later."""
    found = re.fullmatch(rf"{re.escape(socket.gethostname())}-(\d+)-(\d+)", folder.name)
    if found is None:
        return False
    try:
        return psutil.Process(int(found[1])).create_time() > int(found[2]) + 1
    except psutil.NoSuchProcess:
        return True


def _used() -> Iterator[Path]:
    """The scratch of every JVM of this machine: it is on its command line."""
    for process in psutil.process_iter(["cmdline"]):
        for argument in process.info["cmdline"] or ():
            name, _, folder = argument.partition("=")
            if name == LOCAL_DIR:
                yield Path(folder)
