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

_ROOT = Path(_native.__file__).parents[1]


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
    for path in sorted(sources(_ROOT, stage)):
        digest.update(path.relative_to(_ROOT).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def sources(root: Path, stage: str) -> set[Path]:
    """The files of `factory/<stage>` and `factory/lake_spark`, and the worker modules they reach.

    A worker module is reached by an import anywhere in a file, or by a string that is its dotted name, as in
    a registry. Data files beside a module count with it.
    """
    found = {
        path
        for folder in (stage, "lake_spark")
        for path in (root / "factory" / folder).rglob("*")
        if _is_source(path)
    }
    waiting = list(found)
    while waiting:
        path = waiting.pop()
        if path.suffix == ".py":
            reached = {file for name in _names(path) for file in _worker_files(root, name)} - found
            found |= reached
            waiting += reached
    return found


def _names(path: Path) -> Iterator[str]:
    """Whatever a file names that may be a module: imports, what it takes from them, and strings."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
            yield node.module
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _worker_files(root: Path, name: str) -> Iterator[Path]:
    """The file of a module of `spark_udfs`, the packages it lies in, and the data files beside it."""
    parts = name.split(".")
    if parts[0] != "spark_udfs" or not all(part.isidentifier() for part in parts):
        return
    module = root.joinpath(*parts)
    path = module / "__init__.py" if module.is_dir() else module.with_suffix(".py")
    if path.exists():
        yield path
        yield from (it for it in path.parent.iterdir() if it.suffix != ".py" and _is_source(it))
        yield from (
            init for n in range(1, len(parts)) if (init := root.joinpath(*parts[:n], "__init__.py")).exists()
        )


def _is_source(path: Path) -> bool:
    return path.is_file() and path.suffix != ".pyc" and not path.name.startswith(".")
