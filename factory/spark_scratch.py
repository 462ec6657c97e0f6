"""Spark's scratch: a folder for each process that runs Spark, dropped when the process is gone.

    FACTORY_HOME/spark/<host>-<pid>-<seconds>/   shuffle files, broadcast blocks, the JVM's temporary files

A killed process drops nothing, and its JVM outlives it by a second or two. So a folder is left alone as long
as the process lives that made it, or one that was started with it as Spark's `spark.local.dir`.
"""

from __future__ import annotations

import os
import shutil
import socket
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import psutil

from factory.settings import Settings

LOCAL_DIR = "spark.local.dir"
_OF_ONE_FOLDER_FOR_ALL = ("spark-*", "blockmgr-*", "artifacts*")  # what Spark makes in its `spark.local.dir`


@cache
def own_scratch(settings: Settings) -> Path:
    """Make this process's folder of scratch in the lake, and give it."""
    folder = settings.home / "spark" / f"{_host()}-{os.getpid()}-{int(time.time())}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def drop_dead_scratch(settings: Settings) -> list[Path]:
    """Drop the scratch of processes of this machine that are gone, and give its folders."""
    shared = settings.home / "spark"
    candidates = [folder for folder in shared.glob(f"{_host()}-*-*") if not _maker_lives(folder)]
    unowned = [folder for pattern in _OF_ONE_FOLDER_FOR_ALL for folder in shared.glob(pattern)]
    if not candidates and not unowned:
        return []
    used = set(_used())
    dead = [folder for folder in candidates if folder not in used] + (unowned if shared not in used else [])
    for folder in dead:
        shutil.rmtree(folder)
    return dead


def _host() -> str:
    return socket.gethostname()


def _maker_lives(folder: Path) -> bool:
    """Whether the process that made `folder` lives; another one of its number began later."""
    _, pid, made = folder.name.rsplit("-", 2)
    try:
        return psutil.Process(int(pid)).create_time() <= int(made) + 1
    except psutil.NoSuchProcess:
        return False


def _used() -> Iterator[Path]:
    """The scratch of every JVM of this machine: it is on its command line."""
    for process in psutil.process_iter(["cmdline"]):
        for argument in process.info["cmdline"] or ():
            name, _, folder = argument.partition("=")
            if name == LOCAL_DIR:
                yield Path(folder)
