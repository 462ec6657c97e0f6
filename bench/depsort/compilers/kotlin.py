"""The true dependency edges of a Kotlin repository, by the Kotlin compiler.

`kotlin.java` in this folder does the work and defines what counts. It needs a JDK, and Maven, which fetches
the compiler once, below FACTORY_CACHE.
"""

from __future__ import annotations

import os
from pathlib import Path

from bench.depsort.tools import printed_edges, require, run
from factory.settings import settings

COMPILER = (  # the last version whose default is the first front end
    "org.jetbrains.kotlin:kotlin-compiler-embeddable:1.9.25",
    "org.jetbrains.kotlin:kotlin-reflect:1.6.10",
    "org.jetbrains.kotlin:kotlin-script-runtime:1.9.25",
    "org.jetbrains.kotlin:kotlin-stdlib:1.9.25",
    "org.jetbrains.kotlinx:kotlinx-coroutines-core-jvm:1.5.0",
    "org.jetbrains.intellij.deps:trove4j:1.0.20200330",
)
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
_PROGRAM = Path(__file__).with_suffix(".java")


def edges(repository: Path) -> set[tuple[str, str]]:
    """(dependent, dependency) paths of Kotlin files, relative to `repository`.

    Only Kotlin's own library is on the class path: calls on types of other libraries stay unknown. Raises
    CalledProcessError if the compiler cannot be fetched or fails.
    """
    java = require("java", "default-jdk")
    home = settings().cache.absolute() / "bench" / "kotlin-compiler-1.9.25"
    jars = {artifact: home / "{1}-{2}.jar".format(*artifact.split(":")) for artifact in COMPILER}
    for artifact, jar in jars.items():
        if not jar.exists():
            run(
                require("mvn", "maven"), "--quiet", "--batch-mode", COPY,
                f"-Dartifact={artifact}", f"-DoutputDirectory={home}",
            )  # fmt: skip
    library = jars["org.jetbrains.kotlin:kotlin-stdlib:1.9.25"]
    class_path = os.pathsep.join(map(str, jars.values()))
    return printed_edges(java, "-cp", class_path, str(_PROGRAM), str(repository), str(library))
