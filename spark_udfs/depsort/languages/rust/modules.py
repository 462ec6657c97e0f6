"""The modules of a Rust repository.

An address is the folder of a crate's root file and the path of a module in the crate: `core/src::a::b` for
`core/src/a/b.rs` and `core/src/a/b/mod.rs`. Roots are `lib.rs` and `main.rs`, and each file of `tests`,
`examples`, `benches` and `bin`. A crate has the names in its `Cargo.toml` and the names that manifests of
other crates give it; a crate without a manifest has its folder's name. Of several crates of one name, the
importer means the one in the folder that its manifest names (`path = "../core"`), else the nearest; crates in
test fixtures come last.
"""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Mapping, Sequence

from spark_udfs.depsort.fixtures import NearestFolder
from spark_udfs.depsort.languages.rust.manifests import (
    CargoManifest,
    read_manifest,
    read_workspace,
)
from spark_udfs.depsort.model import FileSymbols, Modules
from spark_udfs.depsort.paths import last, parent
from spark_udfs.depsort.platforms import exclude_each_other, systems_of

_ROOTS = ("lib", "main")
_LANGUAGE_S_OWN = frozenset({"std", "core", "alloc", "proc_macro", "test"})
_OWN_ROOTS = frozenset({"tests", "examples", "benches", "bin"})


class RustModules(Modules):
    """The modules of one repository."""

    def __init__(
        self, paths: Sequence[str], _files: Sequence[FileSymbols], manifests: Mapping[str, str]
    ) -> None:
        stems = [path.removesuffix(".rs") for path in paths]
        crates = _manifests(manifests)
        libraries = {
            posixpath.normpath(posixpath.join(folder, crate.library)).removesuffix(".rs"): folder
            for folder, crate in crates.items()
            if crate.library
        }
        library_stems = {stem: libraries[stem] for stem in stems if stem in libraries}
        roots = {parent(stem) for stem in stems if last(stem) in _ROOTS} | {
            parent(stem) for stem in library_stems
        }
        self._addresses = [
            parent(stem) or "." if stem in library_stems else _address(stem, roots) for stem in stems
        ]
        self._files: dict[str, int] = {}
        for number, address in enumerate(self._addresses):
            if address not in self._files or stems[number].endswith("lib") or stems[number] in library_stems:
                self._files[address] = number
        self._known = {"::".join(parts[:n]) for address in self._addresses
                       for parts in (address.split("::"),) for n in range(1, len(parts) + 1)}  # fmt: skip
        roots_by_name: dict[str, list[str]] = {}
        self._roots: dict[str, str] = {}  # folder of a crate -> root
        folders = {parent(stem): folder for stem, folder in library_stems.items()}
        for root in sorted(roots, reverse=True):
            folder = folders.get(root, parent(root) if last(root) == "src" else root)
            self._roots.setdefault(folder or ".", root)
            by_folder = (last(folder).replace("-", "_"),)
            names = crates[folder].names if folder in crates else ()
            for name in names or (
                crate_name for crate_name in by_folder if crate_name not in _LANGUAGE_S_OWN
            ):
                roots_by_name.setdefault(name, []).append(root)
        self._crates = {name: NearestFolder(of_name) for name, of_name in roots_by_name.items()}
        self._folders = [parent(path) for path in paths]
        self._systems = [systems_of(path) for path in paths]
        self._crate_manifests = [_nearest(folder, crates) for folder in self._folders]

    def locate(self, module: str, importer: int) -> str | None:
        """The address of `crate.a.b`, `self.a`, `super.a`, a crate's `name.a` or a submodule's `a.b`."""
        first, *rest = module.split(".")
        here = self._addresses[importer]
        if module not in ("self", "crate"):
            here = _around(here)
        if first == "crate":
            address = here.partition("::")[0]
        elif first == "self":
            address = here
        elif first == "super":
            address = here.rpartition("::")[0]
            while rest and rest[0] == "super":
                address, rest = address.rpartition("::")[0], rest[1:]
        elif f"{here}::{first}" in self._known:
            address = f"{here}::{first}"
        else:
            address = self._crate(first, importer)
        address = "::".join((address, *rest))
        return address if address in self._known else None

    def _crate(self, name: str, importer: int) -> str:
        """The root of the crate that a file calls `name`; empty outside the repository."""
        manifest = self._crate_manifests[importer]
        folder = manifest.folders.get(name)
        if folder in self._roots:
            return self._roots[folder]
        name = manifest.renamed.get(name, name)
        nearest = self._crates.get(name) if name else None
        return (nearest and nearest.seen_from(self._folders[importer])) or ""

    def files(self, address: str) -> Sequence[int]:
        """The file of a module; none where only files below it exist."""
        return (self._files[address],) if address in self._files else ()

    def submodule(self, address: str, name: str) -> str | None:
        """The address of submodule `name`."""
        below = f"{address}::{name}"
        return below if below in self._known else None

    def enclosing(self, importer: int) -> Sequence[int]:
        """The files of the modules around a file."""
        files: list[int] = []
        address = self._addresses[importer].rpartition("::")[0]
        while address:
            files.extend(self.files(address))
            address = address.rpartition("::")[0]
        return files[::-1]

    def never_built_together(self, importer: int, file: int) -> bool:
        """Whether the systems of two files exclude each other, or `file` belongs to a program of its own."""
        crate = self._addresses[file].partition("::")[0]
        apart = last(parent(crate)) in _OWN_ROOTS and crate != self._addresses[importer].partition("::")[0]
        return apart or exclude_each_other(self._systems[importer], self._systems[file])


def _manifests(texts: Mapping[str, str]) -> dict[str, CargoManifest]:
    """Every manifest by its folder; it inherits from the workspace around it, else from the only one."""
    by_folder = {parent(path): text for path, text in texts.items() if last(path) == "Cargo.toml"}
    workspaces = {
        folder: workspace
        for folder, text in by_folder.items()
        if "workspace" in text and (workspace := read_workspace(text, folder)) is not None
    }
    only = next(iter(workspaces.values())) if len(workspaces) == 1 else None
    return {
        folder: read_manifest(text, folder, workspaces.get(_around_or_at(folder, workspaces), only))
        for folder, text in by_folder.items()
    }


def _nearest(folder: str, crates: Mapping[str, CargoManifest]) -> CargoManifest:
    """The manifest of the crate that a folder belongs to."""
    return crates.get(_around_or_at(folder, crates), CargoManifest())


def _around_or_at(folder: str, folders: Collection[str]) -> str:
    """The innermost of `folders` that is or contains `folder`, else the top."""
    while folder and folder not in folders:
        folder = parent(folder)
    return folder


def _around(address: str) -> str:
    """The address below which a file's modules lie: for root files in `tests` and the like, their folder."""
    own_root = "::" not in address and last(parent(address)) in _OWN_ROOTS
    return parent(address) if own_root else address


def _address(stem: str, roots: set[str]) -> str:
    folder, name = parent(stem), last(stem)
    if last(folder) in _OWN_ROOTS and name != "mod":
        return f"{folder}/{name}"
    parts = [] if name == "mod" or (name in _ROOTS and folder in roots) else [name]
    root = folder
    while root not in roots and last(root) not in _OWN_ROOTS and root:
        parts.insert(0, last(root))
        root = parent(root)
    return "::".join((root or ".", *parts))
