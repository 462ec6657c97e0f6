"""The true dependency edges of a Go module, by its type checker.

`go.go` in this folder does the work and defines what counts. It needs the `go` command; `go list` fetches the
modules that the repository requires.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from bench.depsort import tools

_PROGRAM = Path(__file__).with_suffix(".go")


def edges(repository: Path) -> set[tuple[str, str]]:
    """(dependent, dependency) paths of Go files, relative to `repository`, whose root holds `go.mod`.

    Raises CalledProcessError if the packages cannot be listed.
    """
    with tempfile.TemporaryDirectory(prefix="depsort-truth-") as folder:
        copy = tools.writable_copy(repository, Path(folder) / "module")  # `go list` may complete go.mod
        return tools.printed_edges("go", "run", str(_PROGRAM), str(copy))
