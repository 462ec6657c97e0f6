"""The true dependency edges of a PHP library, by PHP's own parser and rules of names.

`php.php` in this folder does the work and defines what counts. It needs `php` with the extension `ast`.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from bench.depsort.tools import ToolMissing, printed_edges, require

_PROGRAM = Path(__file__).with_suffix(".php")


def edges(repository: Path) -> set[tuple[str, str]]:
    """(dependent, dependency) paths of PHP files, relative to `repository`.

    Raises CalledProcessError if the program fails.
    """
    php = require("php", "php-cli")
    if subprocess.run([php, "-r", "exit((int) !extension_loaded('ast'));"], check=False).returncode:
        raise ToolMissing(
            "PHP lacks the extension `ast`. Install it, on Debian with `apt-get install php-ast`."
        )
    return printed_edges(php, "-d", "memory_limit=-1", str(_PROGRAM), str(repository))
