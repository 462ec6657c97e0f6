"""Folders that a bench makes once and keeps below FACTORY_CACHE."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from factory.settings import settings


def cached(name: str, make: Callable[[Path], None]) -> Path:
    """The folder `name`, made by `make` on first use; absolute, because tables keep its path."""
    folder = settings().cache.resolve() / "bench" / name
    if not (folder / "_SUCCESS").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        make(folder)
        (folder / "_SUCCESS").touch()
    return folder
