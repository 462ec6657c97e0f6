"""What a `Cargo.toml` says of its crate: the names it has, where its library lies, what it calls others."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_DEPENDENCIES = ("dependencies", "dev-dependencies", "build-dependencies")
_MAX_DOTS = 200  # in a line; a key's parts cost tomllib time in their square
_TABLE = re.compile(
    r"^[^\S\n]*\[(?:package|lib)\](.*?)(?=^[^\S\n]*\[|\Z)", re.MULTILINE | re.DOTALL
)  # a table ends where a line starts the next one, not at the list behind `authors =`
_NAME = re.compile(r"""^[^\S\n]*name\s*=\s*["']([\w-]+)["']""", re.MULTILINE)


@dataclass(frozen=True)
class CargoManifest:
    """Names as Rust writes them, with underscores."""

    names: tuple[str, ...] = ()  # of the package, then of its library
    library: str | None = None  # the path of the library's root file, where it says so
    renamed: Mapping[str, str] | None = None  # what the crate calls another one: that one's package


def workspace_dependencies(text: str) -> Mapping[str, Any]:
    """The dependencies in a workspace's manifest, by name."""
    return _table(_table(_parsed(text) or {}, "workspace"), "dependencies")


def read_manifest(text: str, inherited: Mapping[str, Any] | None = None) -> CargoManifest:
    """What `text` says; `inherited` are the workspace's dependencies, which `x.workspace = true` means."""
    table = _parsed(text)
    if table is None:
        found = (key[1] for section in _TABLE.findall(text) if (key := _NAME.search(section)))
        return CargoManifest(tuple(_written(name) for name in found))
    package, library = _table(table, "package"), _table(table, "lib")
    names = [it["name"] for it in (package, library) if isinstance(it.get("name"), str)]
    path = library.get("path")
    renamed: dict[str, str] = {}
    for name, said in _dependencies(table):
        if said.get("workspace") is True:
            said = _table(inherited or {}, name)
        if isinstance(said.get("package"), str):
            renamed[_written(name)] = _written(said["package"])
    return CargoManifest(
        tuple(_written(name) for name in names), path if isinstance(path, str) else None, renamed
    )


def _dependencies(table: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every dependency that is more than a version, also of single platforms."""
    platforms = (it for it in _table(table, "target").values() if isinstance(it, dict))
    for around in (table, *platforms):
        for kind in _DEPENDENCIES:
            yield from ((name, it) for name, it in _table(around, kind).items() if isinstance(it, dict))


def _parsed(text: str) -> dict[str, Any] | None:
    if any(line.count(".") > _MAX_DOTS for line in text.splitlines()):
        return None
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):  # a template, or written by hand in haste
        return None


def _table(around: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = around.get(name)
    return found if isinstance(found, dict) else {}


def _written(name: str) -> str:
    return name.replace("-", "_")
