"""The version of an asset's code; when it changes, the asset's rows are stale.

It covers the asset's function, every source of its stage with the worker code and the models
(`factory.models`) that these import, and the native kernels these sources call. A change elsewhere in the
platform does not make a table stale: readers of the lake (`factory.lake`, the native `pages`) give the same
rows or fail. A function in a file of a user counts with the code of its file that it names (`own_code`). The
parts of a version, by name, tell which of them changed (`code_parts`). Every command that
loads assets computes versions, so the names in a source are kept between processes (`source_names`).
"""

from __future__ import annotations

import hashlib
import inspect
from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any

from factory import _native
from factory.lake.names import TableName
from factory.lake.schemas.base import TableSchema
from factory.orchestration.table.own_code import helpers
from factory.orchestration.table.source_names import SHARED, kept_names

_SOURCES: dict[tuple[str, CodeType], bytes] = {}
_ROOT = Path(_native.__file__).parents[1]
_EVERY_STAGE = ("factory/lake_spark", "factory/lake/fingerprint.py")  # these write the rows of all stages


def code_version(function: Callable[..., Any], stage: str, schemas: Sequence[TableSchema]) -> str:
    """Return a short hash of the function, its stage's sources and kernels, and the columns it writes."""
    digest = hashlib.sha256(_source(function))
    for schema in schemas:
        digest.update(repr(schema).encode())
    digest.update(_stage_version(stage).encode())
    return digest.hexdigest()[:16]


def parts(
    function: Callable[..., Any], stage: str, schemas: Mapping[TableName, TableSchema]
) -> Mapping[str, str]:
    """Return a hash of each part that `code_version` covers, by the name of its file or the like."""
    own = {_name_of(function): _hash(_source(function))}
    own |= {f"schema {table}": _hash(repr(schema).encode()) for table, schema in schemas.items()}
    return ChainMap(own, _stage_parts(stage))


def _source(function: Callable[..., Any]) -> bytes:
    """Return the source of a function; every dataset declares the same functions, so each is read once."""
    code: CodeType = inspect.unwrap(function).__code__
    key = (code.co_filename, code)  # code of two files may be equal
    if key not in _SOURCES:
        source, path = inspect.getsource(function), Path(code.co_filename)
        own = "" if path.is_relative_to(_ROOT) else helpers(path, source)
        _SOURCES[key] = f"{source}{own}".encode()
    return _SOURCES[key]


def _name_of(function: Callable[..., Any]) -> str:
    path = Path(inspect.getfile(inspect.unwrap(function)))
    file = path.relative_to(_ROOT).as_posix() if path.is_relative_to(_ROOT) else path.name
    return f"{file}:{function.__name__}"


@cache
def _stage_parts(stage: str) -> dict[str, str]:
    paths = _stage_files(stage)
    hashes = {f"kernel {kernel}": _native.__source_hashes__[kernel] for kernel in kernels(paths)}
    return {path.relative_to(_ROOT).as_posix(): _hash(_content(path)) for path in paths} | hashes


def _hash(source: bytes) -> str:
    return hashlib.sha256(source).hexdigest()[:16]


@cache
def _stage_files(stage: str) -> Sequence[Path]:
    paths = sorted(sources(_ROOT, stage))
    kept_names().save()
    return paths


@cache
def _stage_version(stage: str) -> str:
    digest = hashlib.sha256()
    paths = _stage_files(stage)
    for path in paths:
        digest.update(path.relative_to(_ROOT).as_posix().encode())
        digest.update(_content(path))
    for source_hash in sorted({_native.__source_hashes__[kernel] for kernel in kernels(paths)}):
        digest.update(source_hash.encode())
    return digest.hexdigest()


def sources(root: Path, stage: str) -> set[Path]:
    """Return the files of `factory/<stage>`, the files that write every stage's rows, and all they reach.

    A file reaches a module of `spark_udfs` or `factory.models`, the code that stages share, by an import
    anywhere in it, or by a string that is the module's dotted name, as in a registry. Data files in a
    module's folder count with it.
    """
    folders = [root / folder for folder in (f"factory/{stage}", *_EVERY_STAGE)]
    found = {path for folder in folders for path in (folder, *folder.rglob("*")) if _is_source(path)}
    waiting = list(found)
    while waiting:
        reached = {file for name in _names(waiting.pop()) for file in _shared_files(root, name)} - found
        found |= reached
        waiting += reached
    return found


def kernels(paths: Iterable[Path]) -> set[str]:
    """Return the names of the native functions and classes that files use."""
    found: set[str] = set()
    for path in paths:
        names = _names(path)
        if any(f"{name}.".startswith("factory._native.") for name in names):
            found |= {name.rpartition(".")[2] for name in names} & _native.__source_hashes__.keys()
    return found


@cache
def _content(path: Path) -> bytes:
    return path.read_bytes()


@cache
def _names(path: Path) -> frozenset[str]:
    """Return everything in a Python file that may name a module that stages share, or a kernel."""
    return kept_names().names_in(_content(path)) if path.suffix == ".py" else frozenset()


def _shared_files(root: Path, name: str) -> Iterator[Path]:
    """Yield the file of a module that stages share, its packages, and the data files in its folder."""
    parts = name.split(".")
    if not f"{name}.".startswith(SHARED) or not all(part.isidentifier() for part in parts):
        return
    module = root.joinpath(*parts)
    path = module / "__init__.py" if module.is_dir() else module.with_suffix(".py")
    if path.exists():
        yield path
        yield from (
            sibling for sibling in path.parent.iterdir() if sibling.suffix != ".py" and _is_source(sibling)
        )
        yield from (
            init for n in range(1, len(parts)) if (init := root.joinpath(*parts[:n], "__init__.py")).exists()
        )


def _is_source(path: Path) -> bool:
    return path.is_file() and path.suffix != ".pyc" and not path.name.startswith(".")
