"""Models of a user in files: where a datasets file says that they are, and a hash of their content."""

from __future__ import annotations

import hashlib
from pathlib import Path

from factory.errors import ConfigurationError


def existing_path(reference: str, folder: Path, noun: str) -> Path:
    """Return the path of a `file` or `folder` (`noun`) that exists; `reference` is relative to `folder`.

    Raises ConfigurationError if there is none.
    """
    path = (folder / reference).resolve()
    if not (path.is_dir() if noun == "folder" else path.is_file()):
        raise ConfigurationError(
            f"There is no {noun} `{reference}`. Paths are relative to {folder.resolve()}."
        )
    return path


def files_below(path: Path) -> tuple[Path, ...]:
    """Return the files of a folder, or the file itself, in the order of their names."""
    return tuple(sorted(entry for entry in (path, *path.rglob("*")) if entry.is_file()))


def hash_of_files(path: Path | None, name: str = "") -> str:
    """Return a hash of `name`, of the files below `path` and of their names there; reads them completely."""
    digest = hashlib.sha256(name.encode())
    if path is not None:
        for file_path in files_below(path):
            with file_path.open("rb") as file:
                content = hashlib.file_digest(file, "sha256").hexdigest()
            digest.update(f"\n{content} {file_path.relative_to(path).as_posix()}".encode())
    return digest.hexdigest()[:16]
