"""Where Rust modules lie among the files of one repository.

A place is the folder of a crate's root file and the path of a module in it: `core/src::a::b` for
`core/src/a/b.rs` and `core/src/a/b/mod.rs`. Roots are `lib.rs` and `main.rs`, and each file of `tests`,
`examples`, `benches` and `bin`. A crate is known by the names in its `Cargo.toml`, or by what another crate's
manifest calls it; one without a manifest by its folder's name.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence

from spark_udfs.depsort.languages.rust.manifests import CargoManifest, read_manifest, workspace_dependencies
from spark_udfs.depsort.model import Modules
from spark_udfs.depsort.platforms import systems_of

_ROOTS = ("lib", "main")
_LANGUAGE_S_OWN = frozenset({"std", "core", "alloc", "proc_macro", "test"})
_OWN_ROOTS = frozenset({"tests", "examples", "benches", "bin"})


class RustModules(Modules):
    """The modules of one repository."""

    def __init__(self, paths: Sequence[str], manifests: Mapping[str, str]) -> None:
        stems = [path.removesuffix(".rs") for path in paths]
        said = _manifests(manifests)
        libraries = {
            posixpath.normpath(posixpath.join(folder, it.library)).removesuffix(".rs"): folder
            for folder, it in said.items()
            if it.library
        }
        named = {stem: libraries[stem] for stem in stems if stem in libraries}
        roots = {_parent(stem) for stem in stems if _last(stem) in _ROOTS} | {_parent(it) for it in named}
        self._places = [_parent(stem) or "." if stem in named else _place(stem, roots) for stem in stems]
        self._files: dict[str, int] = {}
        for number, place in enumerate(self._places):
            if place not in self._files or stems[number].endswith("lib") or stems[number] in named:
                self._files[place] = number
        self._known = {"::".join(parts[:n]) for place in self._places
                       for parts in (place.split("::"),) for n in range(1, len(parts) + 1)}  # fmt: skip
        self._crates: dict[str, str] = {}
        folders = {_parent(stem): folder for stem, folder in named.items()}
        for root in sorted(roots, reverse=True):
            folder = folders.get(root, _parent(root) if _last(root) == "src" else root)
            by_folder = (_last(folder).replace("-", "_"),)
            names = said[folder].names if folder in said else ()
            for name in names or (it for it in by_folder if it not in _LANGUAGE_S_OWN):
                self._crates.setdefault(name, root)
        self._own = {name for name in self._crates if name}
        self._systems = [systems_of(path) for path in paths]
        self._renamed = [_nearest(_parent(path), said).renamed or {} for path in paths]

    def place(self, module: str, importer: int) -> str | None:
        """The place of `crate.a.b`, `self.a`, `super.a`, a crate's `name.a` or a submodule's `a.b`."""
        first, *rest = module.split(".")
        here = _around(self._places[importer]) if module not in ("self", "crate") else self._places[importer]
        if first == "crate":
            place = here.partition("::")[0]
        elif first == "self":
            place = here
        elif first == "super":
            place = here.rpartition("::")[0]
            while rest and rest[0] == "super":
                place, rest = place.rpartition("::")[0], rest[1:]
        elif f"{here}::{first}" in self._known:
            place = f"{here}::{first}"
        else:
            first = self._renamed[importer].get(first, first)
            place = self._crates.get(first, "") if first in self._own else ""
        place = "::".join((place, *rest))
        return place if place in self._known else None

    def files(self, place: str) -> Sequence[int]:
        """The file of a module, none for one that only its parent's folder tells of."""
        return (self._files[place],) if place in self._files else ()

    def inside(self, place: str, name: str) -> str | None:
        """The place of submodule `name`."""
        below = f"{place}::{name}"
        return below if below in self._known else None

    def enclosing(self, importer: int) -> Sequence[int]:
        """The files of the modules around a file."""
        found: list[int] = []
        place = self._places[importer].rpartition("::")[0]
        while place:
            found.extend(self.files(place))
            place = place.rpartition("::")[0]
        return found[::-1]

    def apart(self, importer: int, file: int) -> bool:
        """Whether two files are for systems that exclude each other, or `file` is of a program by itself."""
        one, other = self._systems[importer], self._systems[file]
        if one is not None and other is not None and not one & other:
            return True
        crate = self._places[file].partition("::")[0]
        return _last(_parent(crate)) in _OWN_ROOTS and crate != self._places[importer].partition("::")[0]


def _manifests(texts: Mapping[str, str]) -> dict[str, CargoManifest]:
    """Every manifest by its folder; the others inherit from the first that has a workspace's dependencies."""
    workspace = next((text for _, text in sorted(texts.items()) if "[workspace.dependencies" in text), "")
    inherited = workspace_dependencies(workspace)
    return {
        _parent(path): read_manifest(text, inherited)
        for path, text in texts.items()
        if _last(path) == "Cargo.toml"
    }


def _nearest(folder: str, said: Mapping[str, CargoManifest]) -> CargoManifest:
    """The manifest of the crate that a folder belongs to."""
    while folder and folder not in said:
        folder = _parent(folder)
    return said.get(folder, CargoManifest())


def _around(place: str) -> str:
    """What the modules of a file lie in: for the root files of `tests` and its like, their folder."""
    own_root = "::" not in place and _last(_parent(place)) in _OWN_ROOTS
    return _parent(place) if own_root else place


def _place(stem: str, roots: set[str]) -> str:
    folder, name = _parent(stem), _last(stem)
    if _last(folder) in _OWN_ROOTS and name != "mod":
        return f"{folder}/{name}"
    parts = [] if name == "mod" or (name in _ROOTS and folder in roots) else [name]
    root = folder
    while root not in roots and _last(root) not in _OWN_ROOTS and root:
        parts.insert(0, _last(root))
        root = _parent(root)
    return "::".join((root or ".", *parts))


def _parent(path: str) -> str:
    return path.rpartition("/")[0]


def _last(path: str) -> str:
    return path.rpartition("/")[2]
