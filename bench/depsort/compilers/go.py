"""The dependency edges of a Go module as its type checker sees them: the truth that depsort is measured by.

The work is done by `go.go` beside this file, which says what counts. It needs the `go` command;
`go list` fetches the modules that the repository requires.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

_PROGRAM = Path(__file__).with_suffix(".go")


def edges(repository: Path) -> set[tuple[str, str]]:
    """(dependent, dependency) paths of Go files, relative to `repository`, whose root holds `go.mod`.

    Raises CalledProcessError where the packages cannot be listed.
    """
    with tempfile.TemporaryDirectory(prefix="depsort-truth-") as folder:
        copy = Path(folder) / "module"  # `go list` may complete go.mod, and a module cache is read-only
        shutil.copytree(repository, copy, symlinks=True, copy_function=shutil.copyfile)
        for path in [copy, *copy.rglob("*")]:
            if path.is_dir():
                path.chmod(0o755)
        found = subprocess.run(
            ["go", "run", str(_PROGRAM), str(copy)], check=True, capture_output=True, text=True
        )
    pairs = (line.split("\t") for line in found.stdout.splitlines())
    return {(dependent, dependency) for dependent, dependency in pairs}
