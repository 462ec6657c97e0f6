"""The names in Python sources that tell what code a table depends on, kept between processes.

Parsing every source takes most of a second, so their names are kept in a file below FACTORY_CACHE, by a hash
of each source: an edited file is parsed again, and checkouts and versions share the file. Each process
replaces the file atomically, so the last writer wins; a damaged file is ignored. Without the
folder FACTORY_CACHE, which the first run makes, nothing is kept.
"""

from __future__ import annotations

import ast
import hashlib
import json
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from factory.atomic_file import write_atomically
from factory.settings import settings

SHARED = ("spark_udfs.", "factory.models.")
"""The packages that stages share."""

_NATIVE = "factory._native."
_FILE = "source_names.json"
_MOST_SOURCES = 2_000  # some versions of 300 files; beyond, those of this process are kept
_FORM = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()  # other code may find other names


@lru_cache(maxsize=1)
def kept_names() -> SourceNames:
    """Return the names of this process, read once from FACTORY_CACHE."""
    return SourceNames(settings().cache)


class SourceNames:
    """The names in sources, by the hash of a source."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / _FILE
        self._stored = _read(self._file)
        self._used: dict[str, list[str]] = {}

    def names_in(self, source: bytes) -> frozenset[str]:
        """Return the names in a source of shared modules and, if it uses any, of all possible kernels."""
        key = hashlib.sha256(source).hexdigest()
        if key not in self._used:
            names = self._stored.get(key)
            self._used[key] = sorted(_parsed(source)) if names is None else names
        return frozenset(self._used[key])

    def save(self) -> None:
        """Keep the names for the next process, unless it has them all already or the disk refuses."""
        if self._used.keys() <= self._stored.keys() or not self._file.parent.is_dir():
            return
        self._stored = _read(self._file) | self._used  # others may have written meanwhile
        if len(self._stored) > _MOST_SOURCES:
            self._stored = dict(self._used)
        body = json.dumps(self._stored)
        with suppress(OSError):  # a read-only or full disk costs time only
            write_atomically(self._file, f"{_digest(body)}\n{body}")


def _read(file: Path) -> dict[str, list[str]]:
    """Return the names in a file; none if it is missing, damaged, or written by other code than this."""
    try:
        digest, _, body = file.read_text().partition("\n")
    except (OSError, ValueError):  # ValueError: bytes that are not text
        return {}
    names: dict[str, list[str]] = json.loads(body) if digest == _digest(body) else {}
    return names


def _digest(body: str) -> str:
    return hashlib.sha256(f"{_FORM}{body}".encode()).hexdigest()


def _parsed(source: bytes) -> set[str]:
    names = _every_name(source)
    if any(f"{name}.".startswith(_NATIVE) for name in names):
        return {name for name in names if all(part.isidentifier() for part in name.split("."))}
    return {name for name in names if f"{name}.".startswith(SHARED)}


def _every_name(source: bytes) -> set[str]:
    """Return everything in a source that may name a module or a kernel: imports, attributes and strings."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Attribute):
            names.add(node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names.add(node.value)
    return names
