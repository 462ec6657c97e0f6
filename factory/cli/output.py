"""Output files of commands, at paths that the user names."""

from __future__ import annotations

from pathlib import Path

from factory.errors import ConfigurationError


def require_writable(file: Path) -> None:
    """Raise ConfigurationError, before any work, for a path where no file can be written."""
    if file.is_dir():
        raise ConfigurationError(f"{file} is a folder. Name a file in it.")
    if not file.absolute().parent.is_dir():
        raise ConfigurationError(f"The folder {file.parent} does not exist. Create it, or name another file.")
