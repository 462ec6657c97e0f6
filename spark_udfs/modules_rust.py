"""Where Rust modules lie among the files of one repository.

A place is the folder of a crate's root file and the path of a module in it: `core/src::a::b` for
`core/src/a/b.rs` and `core/src/a/b/mod.rs`. Roots are `lib.rs` and `main.rs`, and each file of `tests`,
`examples`, `benches` and `bin`. A crate is known by the name in its `Cargo.toml`, else by its folder's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from spark_udfs.symbols import Modules

_NAME = re.compile(
    r"^[^\S\n]*\[(?:package|lib)\](.*?)(?=^[^\S\n]*\[|\Z)", re.MULTILINE | re.DOTALL
)  # a table ends where a line starts the next one, not at the list behind `authors =`
_KEY = re.compile(r"""^[^\S\n]*name\s*=\s*["']([\w-]+)["']""", re.MULTILINE)
_ROOTS = ("lib", "main")
_OWN_ROOTS = frozenset({"tests", "examples", "benches", "bin"})


class RustModules(Modules):
    """The modules of one repository."""

    def __init__(self, paths: Sequence[str], manifests: Mapping[str, str]) -> None:
        stems = [path.removesuffix(".rs") for path in paths]
        roots = {_parent(stem) for stem in stems if _last(stem) in _ROOTS}
        self._places = [_place(stem, roots) for stem in stems]
        self._files: dict[str, int] = {}
        for number, place in enumerate(self._places):
            if place not in self._files or stems[number].endswith("lib"):
                self._files[place] = number
        self._known = {"::".join(parts[:n]) for place in self._places
                       for parts in (place.split("::"),) for n in range(1, len(parts) + 1)}  # fmt: skip
        self._crates: dict[str, str] = {}
        for root in sorted(roots, reverse=True):
            folder = _parent(root) if _last(root) == "src" else root
            text = manifests.get(f"{folder}/Cargo.toml" if folder else "Cargo.toml", "")
            names = [key[1] for section in _NAME.findall(text) if (key := _KEY.search(section))]
            for name in (*names, _last(folder)):
                self._crates.setdefault(name.replace("-", "_"), root)
        self._own = {name for name in self._crates if name}

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
