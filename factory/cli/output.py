"""Output files of commands, at paths that the user names."""

from __future__ import annotations

from pathlib import Path

from factory.atomic_file import drop_abandoned
from factory.errors import ConfigurationError


def prepare_output(file: Path) -> None:
    """Raise ConfigurationError if `file` cannot be written; delete leftovers of killed commands beside it."""
    if file.is_dir():
        raise ConfigurationError(f"{file} is a folder. Name a file in it.")
    folder = file.resolve().parent
    if not folder.is_dir():
        raise ConfigurationError(f"The folder {folder} does not exist. Create it, or name another file.")
    drop_abandoned(folder)
