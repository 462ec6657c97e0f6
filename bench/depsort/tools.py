"""Programs of the machine that a bench needs and does not install."""

from __future__ import annotations

import shutil

from factory.errors import CheckFailed


class ToolMissing(CheckFailed):
    """A program is not on the machine, so what needs it is not measured."""


def require(command: str, package: str) -> str:
    """The path of `command`; raises ToolMissing, naming the Debian package that has it."""
    found = shutil.which(command)
    if found is None:
        raise ToolMissing(
            f"`{command}` is not on this machine. Install it, on Debian by `apt-get install {package}`."
        )
    return found
