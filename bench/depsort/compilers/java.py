"""The true dependency edges of a Java repository, by javac.

`java.java` in this folder does the work and defines what counts. It needs a JDK.
"""

from __future__ import annotations

from pathlib import Path

from bench.depsort import tools

_PROGRAM = Path(__file__).with_suffix(".java")


def edges(repository: Path, class_path: Path | None = None) -> set[tuple[str, str]]:
    """(dependent, dependency) paths of Java files, relative to `repository`.

    `class_path` is a folder of the jars that the sources need: without it, calls on their types stay unknown.
    Raises CalledProcessError if javac does not start.
    """
    jars = [] if class_path is None else [str(class_path / "*")]
    return tools.printed_edges("java", str(_PROGRAM), str(repository), *jars)
