"""A peer's own Python environment, and what a program prints in it.

Peers never enter the project's environment: their pins are not ours, and two of them may not even share
one (`fasttext` belongs to two packages). An environment is made once, below FACTORY_CACHE, and kept.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from factory.errors import CheckFailed
from factory.settings import settings


class PeerFailed(CheckFailed):
    """A peer could not be installed, or its program ended with an error."""


@dataclass(frozen=True)
class Peer:
    """A Python environment that holds exactly `requirements`, each pinned."""

    name: str
    requirements: tuple[str, ...]

    @property
    def interpreter(self) -> Path:
        """The environment's interpreter, whether it is there or not."""
        return settings().cache / "bench" / self.name / "bin" / "python"

    def python(self, console: Console) -> Path:
        """The environment's interpreter, installed where it is not there yet."""
        python = self.interpreter
        home = python.parents[1]
        stamp = home / "requirements"
        wanted = "\n".join(self.requirements)
        if not stamp.exists() or stamp.read_text() != wanted:
            console.print(f"installing {', '.join(self.requirements)} into {home}")
            _run([sys.executable, "-m", "venv", "--clear", str(home)])
            _run([str(python), "-m", "pip", "install", "--quiet", *self.requirements])
            stamp.write_text(wanted)
        return python

    def answer(self, program: Path, arguments: Sequence[str], console: Console) -> Any:
        """What `program`, run by the peer's interpreter, printed as JSON on its last line."""
        return run_for_json([str(self.python(console)), str(program), *arguments])


def run_for_json(command: Sequence[str], environment: Mapping[str, str] | None = None) -> Any:
    """What a command printed as JSON on its last line; raises PeerFailed where it failed."""
    return json.loads(_run(command, environment).strip().splitlines()[-1])


def _run(command: Sequence[str], environment: Mapping[str, str] | None = None) -> str:
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip() or "it said nothing").splitlines()[-1]
        raise PeerFailed(f"`{' '.join(command[:4])} ...` failed: {last} Run it by hand to see all of it.")
    return done.stdout
