"""The dependency edges of a PHP library as PHP completes its names: the truth that depsort is measured by.

The work is done by `php.php` beside this file, which says what counts. It needs `php` with the
extension `ast`.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from bench.depsort.tools import ToolMissing, require

_PROGRAM = Path(__file__).with_suffix(".php")


def edges(repository: Path) -> set[tuple[str, str]]:
    """(dependent, dependency) paths of PHP files, relative to `repository`.

    Raises CalledProcessError where the program fails.
    """
    php = require("php", "php-cli")
    if subprocess.run([php, "-r", "exit((int) !extension_loaded('ast'));"], check=False).returncode:
        raise ToolMissing(
            "PHP has no extension `ast` here. Install it, on Debian by `apt-get install php-ast`."
        )
    found = subprocess.run(
        [php, "-d", "memory_limit=-1", str(_PROGRAM), str(repository)],
        check=True,
        capture_output=True,
        text=True,
    )
    pairs = (line.split("\t") for line in found.stdout.splitlines())
    return {(dependent, dependency) for dependent, dependency in pairs}
