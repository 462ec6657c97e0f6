"""Installed programs that the bench runs."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
from collections.abc import Mapping
from pathlib import Path

from factory.errors import CheckFailed


class ToolMissing(CheckFailed):
    """A program is missing, so its repositories are not measured."""


def require(command: str, package: str) -> str:
    """Return the path of `command`; raises ToolMissing with the name of its Debian package."""
    found = shutil.which(command)
    if found is None:
        raise ToolMissing(
            f"`{command}` is missing on this machine. Install it, on Debian with `apt-get install {package}`."
        )
    return found


def run(*command: str, folder: Path | None = None, variables: Mapping[str, str] | None = None) -> str:
    """Return the output of a command run in `folder` with more `variables`; raises CalledProcessError."""
    environment = os.environ | (variables or {})
    return subprocess.run(
        command, check=True, capture_output=True, text=True, cwd=folder, env=environment
    ).stdout


def printed_edges(*command: str, variables: Mapping[str, str] | None = None) -> set[tuple[str, str]]:
    """Run a command that prints (dependent, dependency) paths, tab-separated, one pair per line."""
    pairs = (line.split("\t") for line in run(*command, variables=variables).splitlines())
    return {(dependent, dependency) for dependent, dependency in pairs}


def writable_copy(folder: Path, copy: Path) -> Path:
    """Copy a folder, such as one of a module cache, which is read-only."""
    shutil.copytree(folder, copy, symlinks=True, copy_function=shutil.copyfile)
    for path in (copy, *copy.rglob("*")):
        if path.is_dir():
            path.chmod(0o755)
    return copy


def unpack(archive: Path, folder: Path) -> Path:
    """Unpack a tar archive; return its top folder, or `folder` where it has several files at the top."""
    with tarfile.open(archive) as opened:
        opened.extractall(folder, filter="data")
    found = list(folder.iterdir())
    return found[0] if len(found) == 1 else folder
