"""`factory relocate` in a process of its own, killed at the n-th line that it executes of the relocation.

python -m tests.lake.relocation.killed N       kill it there; without N, print the lines in their order
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import factory
import factory.lake.relocation.relocate  # imported before the trace, which slows every call
from factory.cli.main import main

FOLDERS = [str(Path(factory.__file__).parent / name) for name in ("lake/relocation/", "lake/place.py")]


def traced(kill_at: int | None, lines: list[str]) -> Callable[[FrameType, str, Any], Any]:
    """A tracer that notes each executed line of the relocation, and kills this process at one of them."""

    def tracer(frame: FrameType, event: str, argument: Any) -> Any:
        file = frame.f_code.co_filename
        if not any(file.startswith(folder) for folder in FOLDERS):
            return None
        if event == "line":
            lines.append(f"{Path(file).name}:{frame.f_lineno}")
            if len(lines) == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)
        return tracer

    return tracer


if __name__ == "__main__":
    executed: list[str] = []
    instant = int(sys.argv[1]) if len(sys.argv) > 1 else None
    sys.argv = ["factory", "relocate"]
    sys.settrace(traced(instant, executed))
    try:
        main()
    finally:
        sys.settrace(None)
        sys.stderr.write("\n".join(executed))
