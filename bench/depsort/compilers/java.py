"""The dependency edges of a Java repository as javac attributes them: the truth that depsort is measured by.

The work is done by `java.java` beside this file, which says what counts. It needs a JDK.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

_PROGRAM = Path(__file__).with_suffix(".java")


def edges(repository: Path, class_path: Path | None = None) -> set[tuple[str, str]]:
    """(dependent, dependency) paths of Java files, relative to `repository`.

    `class_path` is a folder of the jars that the sources need: without them what is called on their types
    stays unknown. Raises CalledProcessError where javac does not start.
    """
    jars = [] if class_path is None else [str(class_path / "*")]
    found = subprocess.run(
        ["java", str(_PROGRAM), str(repository), *jars], check=True, capture_output=True, text=True
    )
    pairs = (line.split("\t") for line in found.stdout.splitlines())
    return {(dependent, dependency) for dependent, dependency in pairs}
