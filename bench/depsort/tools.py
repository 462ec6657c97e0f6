"""Programs of the machine, which the bench runs but does not install."""

from __future__ import annotations

import os
import shutil
import subprocess
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


def edges(printed: str) -> set[tuple[str, str]]:
    """Parse (dependent, dependency) paths that a program printed, tab-separated, one pair per line."""
    pairs = (line.split("\t") for line in printed.splitlines())
    return {(dependent, dependency) for dependent, dependency in pairs}
