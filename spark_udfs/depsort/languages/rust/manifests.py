"""A crate's names, its library's root file, and its names and folders of other crates, from `Cargo.toml`."""

from __future__ import annotations

import posixpath
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
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
    renamed: Mapping[str, str] = field(default_factory=dict)  # its name for a crate: that crate's package
    folders: Mapping[str, str] = field(default_factory=dict)  # its name for a crate: that crate's folder


@dataclass(frozen=True)
class Workspace:
    """The dependencies that a workspace's manifest declares for its crates, by name."""

    folder: str = ""
    dependencies: Mapping[str, Any] = field(default_factory=dict)


def read_workspace(text: str, folder: str) -> Workspace | None:
    """The workspace of the manifest `text` in `folder`; None where it opens none."""
    table = (_parsed(text) or {}).get("workspace")
    return Workspace(folder, _table(table, "dependencies")) if isinstance(table, dict) else None


def read_manifest(text: str, folder: str = "", workspace: Workspace | None = None) -> CargoManifest:
    """The manifest `text` in `folder`; `x.workspace = true` takes the dependency from `workspace`."""
    workspace = workspace or Workspace()
    table = _parsed(text)
    if table is None:
        keys = (_NAME.search(section) for section in _TABLE.findall(text))
        return CargoManifest(tuple(_identifier(key[1]) for key in keys if key))
    package, library = _table(table, "package"), _table(table, "lib")
    names = [section["name"] for section in (package, library) if isinstance(section.get("name"), str)]
    path = library.get("path")
    renamed: dict[str, str] = {}
    folders: dict[str, str] = {}
    for name, dependency in _dependencies(table):
        declared_in = folder
        if dependency.get("workspace") is True:
            dependency, declared_in = _table(workspace.dependencies, name), workspace.folder
        if isinstance(dependency.get("package"), str):
            renamed[_identifier(name)] = _identifier(dependency["package"])
        if isinstance(dependency.get("path"), str):
            folders[_identifier(name)] = posixpath.normpath(posixpath.join(declared_in, dependency["path"]))
    crate_names = tuple(_identifier(name) for name in names)
    return CargoManifest(crate_names, path if isinstance(path, str) else None, renamed, folders)


def _dependencies(table: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every dependency given as a table, also for single platforms."""
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
