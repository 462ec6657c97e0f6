"""The names of a crate, its library's root file and its names for other crates, from `Cargo.toml`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_DEPENDENCIES = ("dependencies", "dev-dependencies", "build-dependencies")
_MAX_DOTS = 200  # in a line; tomllib takes time in the square of a key's parts
_TABLE = re.compile(
    r"^[^\S\n]*\[(?:package|lib)\](.*?)(?=^[^\S\n]*\[|\Z)", re.MULTILINE | re.DOTALL
)  # a table ends where a line opens the next one, not at the `[` of a list
_NAME = re.compile(r"""^[^\S\n]*name\s*=\s*["']([\w-]+)["']""", re.MULTILINE)


@dataclass(frozen=True)
class CargoManifest:
    """A crate's names, spelled as in Rust code, with underscores."""

    names: tuple[str, ...] = ()  # of the package, then of its library
    library: str | None = None  # the path of the library's root file, where the manifest has one
    renamed: Mapping[str, str] | None = None  # the crate's name for another crate: that crate's package


def workspace_dependencies(text: str) -> Mapping[str, Any]:
    """The dependencies in a workspace's manifest, by name."""
    return _table(_table(_parsed(text) or {}, "workspace"), "dependencies")


def read_manifest(text: str, inherited: Mapping[str, Any] | None = None) -> CargoManifest:
    """The manifest `text`; `x.workspace = true` takes the dependency from `inherited`, the workspace's."""
    table = _parsed(text)
    if table is None:
        crate_names = (key[1] for section in _TABLE.findall(text) if (key := _NAME.search(section)))
        return CargoManifest(tuple(_identifier(name) for name in crate_names))
    package, library = _table(table, "package"), _table(table, "lib")
    names = [section["name"] for section in (package, library) if isinstance(section.get("name"), str)]
    path = library.get("path")
    renamed: dict[str, str] = {}
    for name, dependency in _dependencies(table):
        if dependency.get("workspace") is True:
            dependency = _table(inherited or {}, name)
        if isinstance(dependency.get("package"), str):
            renamed[_identifier(name)] = _identifier(dependency["package"])
    return CargoManifest(
        tuple(_identifier(name) for name in names), path if isinstance(path, str) else None, renamed
    )


def _dependencies(table: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every dependency given as a table, including those of single platforms."""
    platforms = (platform for platform in _table(table, "target").values() if isinstance(platform, dict))
    for around in (table, *platforms):
        for kind in _DEPENDENCIES:
            yield from (
                (name, dependency)
                for name, dependency in _table(around, kind).items()
                if isinstance(dependency, dict)
            )


def _parsed(text: str) -> dict[str, Any] | None:
    if any(line.count(".") > _MAX_DOTS for line in text.splitlines()):
        return None
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):  # a template, or a syntax error
        return None


def _table(around: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    inner = around.get(name)
    return inner if isinstance(inner, dict) else {}


def _identifier(name: str) -> str:
    return name.replace("-", "_")
