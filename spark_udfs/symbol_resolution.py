"""Every symbol of a repository with the files that define it: rows of `depsort.<dataset>_symbols`.

1. Imports are followed to the file that defines the name, through aliases and chains of re-exports.
2. References that start at an imported name go where the import goes; they weigh the square root of how
   often they occur, spread over the defining files.
3. A name used without an import resolves to the files that define it, if they are few
   (MAX_DEFINERS) and the name is long enough to mean something (MIN_NAME); the nearer, the heavier. A
   member of an object resolves only to files that are imported: against the types mypy finds in rich and
   hypothesis, 80 % of such guesses are right, and 4 % of those on files that are not imported.
4. What is left is the language's own (`builtin`), lies outside the repository (`external`), or is defined
   in it by too many files, or none at hand, to say which is meant (`ambiguous`).

An import weighs 1 on the file it names and WEAK on files it only passes on the way, or where it runs late:
inside a function or for type checkers. The packages a file lies in are no dependency of it unless they
are named: they are run before it anyway, and an edge to each would make a cycle of every package.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from factory.lake.schemas import SYMBOLS
from spark_udfs.symbols import FileSymbols, Import, Language, languages

MAX_DEFINERS = 5  # a name defined in more files says nothing about which is meant
MIN_NAME = 3  # characters
MAX_HOPS = 32  # re-exports followed in one chain
WEAK = 0.2
SAME_FOLDER, SAME_TOP_FOLDER, ELSEWHERE = 0.7, 0.5, 0.2  # factors of a use without an import
PRIVATE = 0.1  # factor of a use without an import of a name that starts with an underscore


@dataclass(frozen=True)
class Found:
    """What a name means: its defining files, the files passed on the way, its place if it is a module."""

    files: tuple[int, ...]
    passed: tuple[int, ...] = ()
    place: str | None = None


@dataclass
class Symbol:
    """One row of a file's symbols; `weights` maps defining files to what the row adds to that dependency."""

    kind: str
    name: str
    count: int
    resolution: str
    weights: dict[int, float] = field(default_factory=dict)


class Repository:
    """The files of one repository in one language, sorted by path; numbers below are their positions."""

    def __init__(self, language: Language, paths: Sequence[str], files: Sequence[FileSymbols]) -> None:
        self._language = language
        self._paths = paths
        self._files = files
        self._modules = language.modules(paths)
        self._bindings = [_bindings(file.imports) for file in files]
        self._stars = [[i for i in file.imports if i.name == "*"] for file in files]
        self._found: dict[tuple[str, str], Found | None] = {}
        self._open: set[tuple[str, str]] = set()
        self._plain: dict[str, list[int]] = {}
        self._members: dict[str, list[int]] = {}
        self._own_members: list[set[str]] = []
        for index, file in enumerate(files):
            members = set()
            for name in file.definitions:
                owner, _, last = name.rpartition(".")
                if owner:
                    members.add(last)
                else:
                    self._plain.setdefault(name, []).append(index)
            for member in members:
                self._members.setdefault(member, []).append(index)
            self._own_members.append(members)

    def symbols(self, index: int) -> Iterator[Symbol]:
        """Every symbol of a file: definitions, imports, references, each by name."""
        file = self._files[index]
        for name, count in file.definitions.items():
            yield Symbol("definition", name, count, "definition")
        imports = self._imports(index)
        yield from imports
        imported = {f for symbol in imports for f, weight in symbol.weights.items() if weight == 1}
        merged: dict[str, Symbol] = {}
        for name, count in file.references.items():
            symbol = self._reference(index, name, imported)
            if symbol.name in merged:
                merged[symbol.name].count += count
            else:
                symbol.count = count
                merged[symbol.name] = symbol
        for symbol in merged.values():
            symbol.weights.pop(index, None)
            share = math.sqrt(symbol.count) / max(1, len(symbol.weights))
            symbol.weights = {f: factor * share for f, factor in symbol.weights.items()}
            if symbol.resolution == "internal" and not symbol.weights:
                symbol.resolution = "local"
            yield symbol

    # Imports

    def _imports(self, index: int) -> list[Symbol]:
        rows: dict[str, Symbol] = {}
        for item in self._files[index].imports:
            row = rows.setdefault(item.written, Symbol("import", item.written, 0, "external"))
            row.count += item.count
            weights = self._import_weights(index, item)
            weights.pop(index, None)
            if weights:
                row.resolution = "internal"
            for file, weight in weights.items():
                row.weights[file] = max(weight, row.weights.get(file, 0.0))
        return list(rows.values())

    def _import_weights(self, index: int, item: Import) -> dict[int, float]:
        """The files an import depends on, each with the weight of that dependency."""
        place = self._modules.place(item.module, index)
        if place is None:
            return {}
        enclosing = set(self._modules.enclosing(index))
        file = self._modules.file(place)
        around = [] if file is None else [file]
        around.extend(self._modules.passed(place))
        passed = [f for f in around if f not in enclosing]
        if item.name is None or item.name == "*":
            named = tuple(f for f in (file,) if f is not None and f not in enclosing)
            passed += [f for f in (file,) if f is not None and f in enclosing]
        else:
            found = self._from(place, item.name)
            if found is None:
                return {}
            named = found.files
            passed += found.passed
        weights = dict.fromkeys(passed, WEAK)
        weights.update(dict.fromkeys(named, WEAK if item.deferred else 1.0))
        return weights

    # What a name means

    def _from(self, place: str, name: str, hops: int = 0) -> Found | None:
        """`from place import name`: a name nothing is known of is taken to be made by the file itself."""
        found = self._lookup(place, name, hops)
        if found is None and (file := self._modules.file(place)) is not None:
            return Found((file,))
        return found

    def _lookup(self, place: str, name: str, hops: int = 0) -> Found | None:
        """The meaning of `name` in the module at `place`."""
        key = place, name
        if key in self._open or hops > MAX_HOPS:
            return self._submodule(place, name)
        if key not in self._found:
            self._open.add(key)
            self._found[key] = self._in_file(place, name, hops) or self._submodule(place, name)
            self._open.discard(key)
        return self._found[key]

    def _in_file(self, place: str, name: str, hops: int) -> Found | None:
        file = self._modules.file(place)
        if file is None:
            return None
        meanings = [Found((file,))] if name in self._files[file].definitions else []
        bindings = self._bindings[file].get(name, [])
        for item in [i for i in bindings if not i.deferred] or bindings:
            found = self._follow(item, file, hops + 1)
            if found is not None:
                meanings.append(Found(found.files, (file, *found.passed), found.place))
        if not meanings and (found := self._through_stars(file, name, hops)) is not None:
            meanings.append(Found(found.files, (file, *found.passed), found.place))
        return _union(meanings)

    def _follow(self, item: Import, file: int, hops: int = 0) -> Found | None:
        """The meaning of the name that `item` binds in `file`."""
        module = item.module if item.alias or item.name else item.module.partition(".")[0]
        place = self._modules.place(module, file)
        if place is None:
            return None
        return self._from(place, item.name, hops) if item.name else self._module(place)

    def _through_stars(self, file: int, name: str, hops: int) -> Found | None:
        for item in self._stars[file]:
            place = self._modules.place(item.module, file)
            if place is None or not self._exported(place, name):
                continue
            found = self._lookup(place, name, hops + 1)
            if found is not None:
                return found
        return None

    def _exported(self, place: str, name: str) -> bool:
        file = self._modules.file(place)
        exports = None if file is None else self._files[file].exports
        return not name.startswith("_") if exports is None else name in exports

    def _submodule(self, place: str, name: str) -> Found | None:
        below = self._modules.inside(place, name)
        return None if below is None else self._module(below)

    def _module(self, place: str) -> Found:
        file = self._modules.file(place)
        return Found(() if file is None else (file,), (), place)

    # References

    def _reference(self, index: int, name: str, imported: set[int]) -> Symbol:
        """A reference with the factor of each defining file; the caller knows how often it occurs."""
        if name.startswith("."):
            return self._member(index, name, imported)
        root = name.partition(".")[0]
        if root in self._bindings[index]:
            return self._imported(index, name)
        if root in self._files[index].definitions:
            return Symbol("reference", name, 0, "local")
        found = self._through_stars(index, root, 0)
        if found is not None and found.files:
            return Symbol("reference", name, 0, "internal", dict.fromkeys(found.files, 1.0))
        if root in self._language.builtins:
            return Symbol("reference", name, 0, "builtin")
        return self._without_import(index, root)

    def _member(self, index: int, name: str, imported: set[int]) -> Symbol:
        """A member of an object of unknown type: one that an imported file defines, or nobody's."""
        member = name[1:]
        if member in self._own_members[index]:
            return Symbol("reference", name, 0, "local")
        if member in self._language.builtin_members:
            return Symbol("reference", name, 0, "builtin")
        definers = self._members.get(member, [])
        near = [f for f in definers if f in imported]
        if not near or len(near) > MAX_DEFINERS or len(member) < MIN_NAME:
            return Symbol("reference", name, 0, "ambiguous" if definers else "external")
        return Symbol("reference", name, 0, "internal", dict.fromkeys(near, 1.0))

    def _imported(self, index: int, name: str) -> Symbol:
        """A chain of names whose first was imported, cut where it leaves the modules of the repository."""
        parts = name.split(".")
        bindings = self._bindings[index][parts[0]]
        enclosing = set(self._modules.enclosing(index))
        factors: dict[int, float] = {}
        used = 0
        for item in bindings:
            found, length = self._walk(self._follow(item, index), parts)
            for file in found.files if found else ():
                module_around = found is not None and found.place is not None and file in enclosing
                factor = WEAK if item.deferred or module_around else 1.0
                factors[file] = max(factor, factors.get(file, 0.0))
                used = max(used, length)
        if factors:
            return Symbol("reference", ".".join(parts[:used]), 0, "internal", factors)
        local = parts[0] in self._files[index].definitions
        whole = any(item.name is None for item in bindings)
        return Symbol("reference", name if whole else parts[0], 0, "local" if local else "external")

    def _walk(self, found: Found | None, parts: Sequence[str]) -> tuple[Found | None, int]:
        length = 1
        while found is not None and found.place is not None and length < len(parts):
            below = self._lookup(found.place, parts[length])
            if below is None:
                break
            found, length = below, length + 1
        return found, length

    def _without_import(self, index: int, name: str) -> Symbol:
        """A name that nothing in the file or its star imports binds, by who defines it."""
        definers = self._plain.get(name, [])
        if not definers:
            return Symbol("reference", name, 0, "external")
        if len(definers) > MAX_DEFINERS or len(name) < MIN_NAME:
            return Symbol("reference", name, 0, "ambiguous")
        private = PRIVATE if name.startswith("_") else 1.0
        factors = {f: private * self._nearness(index, f) for f in definers}
        return Symbol("reference", name, 0, "internal", factors)

    def _nearness(self, one: int, other: int) -> float:
        left, right = self._paths[one].split("/"), self._paths[other].split("/")
        if left[:-1] == right[:-1]:
            return SAME_FOLDER
        return SAME_TOP_FOLDER if left[0] == right[0] else ELSEWHERE


def resolve(facts: pa.Table) -> pa.Table:
    """SYMBOLS of one repository from its FACTS, whatever their order."""
    rows = sorted(facts.to_pylist(), key=lambda row: (row["language"], row["path"], row["doc_id"]))
    documents: list[int] = []
    symbols: list[Symbol] = []
    targets: list[list[str]] = []
    for name, language in sorted(languages().items()):
        chosen = [i for i, row in enumerate(rows) if row["language"] == name]
        paths = [rows[i]["path"] for i in chosen]
        repository = Repository(language, paths, [FileSymbols.from_json(rows[i]["facts"]) for i in chosen])
        for position, row_index in enumerate(chosen):
            for symbol in repository.symbols(position):
                documents.append(row_index)
                symbols.append(symbol)
                targets.append([rows[chosen[f]]["doc_id"] for f in sorted(symbol.weights)])
    taken = pa.array(documents, pa.int32())
    columns = {
        column: pa.array([row[column] for row in rows], pa.string()).take(taken)
        for column in ("doc_id", "repository", "path", "partition")
    } | {
        "kind": [symbol.kind for symbol in symbols],
        "name": [symbol.name for symbol in symbols],
        "count": [symbol.count for symbol in symbols],
        "resolution": [symbol.resolution for symbol in symbols],
        "resolved_to": [ids or None for ids in targets],
        "weights": [[symbol.weights[f] for f in sorted(symbol.weights)] or None for symbol in symbols],
    }
    schema = SYMBOLS.columns
    return pa.table(
        [
            pa.array(columns[f.name], f.type) if isinstance(columns[f.name], list) else columns[f.name]
            for f in schema
        ],
        schema=schema,
    )


def _bindings(imports: Iterable[Import]) -> dict[str, list[Import]]:
    bindings: dict[str, list[Import]] = {}
    for item in imports:
        if item.name != "*":
            bindings.setdefault(item.alias or item.module.partition(".")[0], []).append(item)
    return bindings


def _union(meanings: Sequence[Found]) -> Found | None:
    """All meanings a name may have, as where one import is a fallback for another."""
    if len(meanings) < 2:
        return meanings[0] if meanings else None
    return Found(
        tuple(dict.fromkeys(f for found in meanings for f in found.files)),
        tuple(dict.fromkeys(f for found in meanings for f in found.passed)),
        next((found.place for found in meanings if found.place is not None), None),
    )
