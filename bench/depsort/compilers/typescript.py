"""The true dependency edges of a JavaScript or TypeScript repository, by the TypeScript compiler.

`typescript.js` in this folder does the work and defines what counts. It needs `node`, and `npm`, which
fetches the compiler once, below FACTORY_CACHE.
"""

from __future__ import annotations

import json
from pathlib import Path

from bench.depsort.tools import run
from factory.settings import settings

TYPESCRIPT = "typescript@5.9.3"
_PROGRAM = Path(__file__).with_suffix(".js")


def edges(repository: Path) -> set[tuple[str, str]]:
    """(dependent, dependency) paths of source files, relative to `repository`.

    Raises CalledProcessError if the compiler cannot be fetched or fails.
    """
    home = settings().cache / "bench" / TYPESCRIPT.replace("@", "-")
    compiler = home / "node_modules" / "typescript"
    if not compiler.exists():
        home.mkdir(parents=True, exist_ok=True)
        run("npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(home), TYPESCRIPT)
    found = run("node", "--max-old-space-size=4096", str(_PROGRAM), str(compiler), str(repository))
    return {(dependent, dependency) for dependent, dependency in json.loads(found)}
