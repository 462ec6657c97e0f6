"""The version of an asset's code: what must change for its rows to be made again.

It covers the asset's function, every source of its stage with the worker code these import, and the
native kernels. A change elsewhere in the platform does not make a table stale.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from factory import _native
from factory.lake.schemas import TableSchema

_ROOT = Path(__file__).parents[2]


def code_version(function: Callable[..., Any], stage: str, schemas: Sequence[TableSchema]) -> str:
    """A short hash of the function, its stage, what it writes and the native kernels."""
    digest = hashlib.sha256(inspect.getsource(function).encode())
    for schema in schemas:
        digest.update(repr(schema).encode())
    digest.update(_stage_version(stage).encode())
    return digest.hexdigest()[:16]


@lru_cache
def _stage_version(stage: str) -> str:
    digest = hashlib.sha256(_native.__source_hash__.encode())
    for path in sorted(_sources(stage)):
        digest.update(path.relative_to(_ROOT).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _sources(stage: str) -> set[Path]:
    """The files of `factory/<stage>` and `factory/lake_spark`, and the `spark_udfs` modules they reach."""
    found = {path for folder in (stage, "lake_spark") for path in (_ROOT / "factory" / folder).rglob("*.py")}
    waiting = list(found)
    while waiting:
        for module in _worker_modules(waiting.pop()):
            path = _ROOT / "spark_udfs" / f"{module}.py"
            if path.exists() and path not in found:
                found.add(path)
                waiting.append(path)
    return found


def _worker_modules(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.ImportFrom) and node.module == "spark_udfs":
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("spark_udfs."):
            yield str(node.module).split(".")[1]
