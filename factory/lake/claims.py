"""Claims on the cores of this machine: runs make them, and workers of a lower priority give way.

    with claim(0, "run 4f1c"):         # in a run, while it computes
        ...
    most_pressing(above=-10)           # in a worker, between two items: Claim(0, "run 4f1c", pid=712)

A claim is a locked file in the temporary folder of the machine. The operating system releases the lock of a
dead process, so that a killed run claims nothing. Claims of other machines do not count: a worker gives way
to runs of its own machine.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from uuid import uuid4

_NEW = ".new"  # ends the name of a file that is not locked yet


@dataclass(frozen=True)
class CoresClaim:
    """A process that wants the cores, and its work in a phrase; more priority is more pressing."""

    priority: int
    what: str
    pid: int


@contextlib.contextmanager
def claim(priority: int, what: str) -> Iterator[None]:
    """Claim the cores of this machine until the block or the process ends."""
    folder = _folder()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = folder / f"{os.getpid()}-{uuid4().hex[:8]}"
    new = file.with_suffix(_NEW)
    with new.open("w") as content:
        fcntl.flock(content, fcntl.LOCK_EX)
        content.write(json.dumps(asdict(CoresClaim(priority, what, os.getpid()))))
        content.flush()
        new.rename(file)  # named once it is locked, or others would take it for a dead process's
        try:
            yield
        finally:
            file.unlink(missing_ok=True)


def most_pressing(above: int) -> CoresClaim | None:
    """Return the most pressing claim of this machine with a priority above `above`, None without one."""
    pressing = [claim for claim in _claims() if claim.priority > above]
    return max(pressing, key=lambda claim: (claim.priority, -claim.pid), default=None)


def _claims() -> Iterator[CoresClaim]:
    """Yield the claims of live processes, and remove the files of dead ones."""
    try:
        files = [file for file in _folder().iterdir() if file.suffix != _NEW]
    except FileNotFoundError:
        return
    for file in files:
        with contextlib.suppress(FileNotFoundError), file.open() as content:
            try:
                fcntl.flock(content, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                yield CoresClaim(**json.loads(content.read()))
            else:
                file.unlink(missing_ok=True)


def _folder() -> Path:
    return Path(tempfile.gettempdir()) / f"model-factory-{os.getuid()}" / "claims"
