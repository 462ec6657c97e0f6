"""Every symbol of a repository with the files that define it: rows of `depsort.<dataset>_symbols`.

1. Imports are followed to the file that defines the name, through aliases and chains of re-exports.
2. References that start at an imported name go where the import goes; they weigh the square root of how
   often they occur, spread over the defining files.
3. A name used without an import means what the file's peers define (the other files of its package), then
   what the files it can see through star imports and includes define, then, in languages whose files share
   one space of names, what any file defines: if those are few (MAX_DEFINERS) and the name is long enough to
   mean something (MIN_NAME); the nearer, the heavier.
4. A member of an object resolves only to files at hand: imported, seen or peers. (Against the types mypy
   finds in rich and hypothesis, 80 % of such guesses are right, and 4 % of those on files that are not
   imported.)
5. A name that is only announced where it was found (a prototype in a header) means the file that makes it;
   of several the nearest to where it is announced.
6. What is left is the language's own (`builtin`), lies outside the repository (`external`), or is defined
   in it by too many files, or none at hand, to say which is meant (`ambiguous`).

An import weighs 1 on the file it names, spread where it names a package of many files, DEFERRED where it
runs late (inside a function, or for type checkers), and WEAK on files it only passes on the way. The
packages a file lies in weigh AROUND where an import passes them: enough to stand first if nothing speaks
against it, too little to count in the cycle that such edges make of a package.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import pyarrow as pa

from factory.lake.schemas import SYMBOLS
from spark_udfs.collector import paused
from spark_udfs.symbols import MANIFEST, FileSymbols, Import, Language, languages
from spark_udfs.typed_chains import TypedChains, n_shared

MAX_DEFINERS = 5  # a name defined in more files says nothing about which is meant
MIN_NAME = 3  # characters
MAX_HOPS = 32  # re-exports followed in one chain
MAX_EXPANDED = 20_000  # references of a file with those of the macros it uses
MAX_SEEN = 4_000  # files followed through star imports of star imports
DEFERRED = 0.6  # of what runs late: as true as any other, but where a cycle must break, rather there
WEAK, AROUND = 0.2, 0.02  # weights of what an import passes: any other package, one around the importer
SAME_FOLDER, SAME_TOP_FOLDER, ELSEWHERE = 0.7, 0.5, 0.2  # factors of a use without an import
PRIVATE = 0.1  # factor of a use without an import of a name that starts with an underscore


class Found(NamedTuple):
    """What a name means: its defining files, the files passed on the way, its place if it is a module."""

    files: tuple[int, ...]
    passed: tuple[int, ...] = ()
    place: str | None = None


@dataclass(slots=True)
class Symbol:
    """One row of a file's symbols; `weights` maps defining files to what the row adds to that dependency."""

    kind: str
    name: str
    count: int
    resolution: str
    weights: dict[int, float] = field(default_factory=dict)


class Repository:
    """The files of one family of languages in a repository, by path; numbers below are their positions."""

    def __init__(
        self,
        kinds: Sequence[Language],
        paths: Sequence[str],
        files: Sequence[FileSymbols],
        manifests: Mapping[str, str],
    ) -> None:
        self._languages = kinds  # of each file
        self._paths = paths
        self._files = files
        self._modules = kinds[0].modules(paths, files, manifests)
        self._bindings = [_bindings(file.imports) for file in files]
        self._stars = [[i for i in file.imports if i.name == "*"] for file in files]
        self._star_files: list[Sequence[Sequence[int]] | None] = [None] * len(files)
        self._found: dict[tuple[str, str], Found | None] = {}
        self._open: set[tuple[str, str]] = set()
        self._at: dict[str, frozenset[int]] = {}
        self._plain: dict[str, list[int]] = {}  # name -> the files that define or declare it
        self._members: dict[str, list[int]] = {}
        self._makers: dict[str, list[int]] = {}  # name, also `Class.member`, -> the files that define it
        self._own_members: list[set[str]] = []
        self._announced: list[dict[str, list[str]]] = []  # member -> `Class.member`, as each file announces
        self._members_of: list[set[str]] = []  # with the members that a file announces
        for index, file in enumerate(files):
            members: set[str] = set()
            for name in file.definitions.keys() | file.declarations.keys():
                owner, _, last = name.rpartition(".")
                if owner:
                    members.add(last)
                else:
                    self._plain.setdefault(name, []).append(index)
                if name in file.definitions and name not in file.private:
                    self._makers.setdefault(name, []).append(index)
            for member in members:
                self._members.setdefault(member, []).append(index)
            self._members_of.append(members)
            self._own_members.append({n.rpartition(".")[2] for n in file.definitions if "." in n})
            announced: dict[str, list[str]] = {}
            for name in file.declarations:
                if "." in name:
                    announced.setdefault(name.rpartition(".")[2], []).append(name)
            self._announced.append(announced)
        self._expansions: dict[str, dict[str, None]] = {}  # macro -> the names it stands for
        for file in files:
            for name, words in file.expansions.items():
                self._expansions.setdefault(name, {}).update(dict.fromkeys(words))
        self._bound = {name for bindings in self._bindings for name in bindings}
        self._visible = lru_cache(1024)(self._seen_from)
        typed = [kind.typed_chains for kind in kinds]
        self._chains = (
            TypedChains(self._modules, paths, files, [k.builtins for k in kinds]) if all(typed) else None
        )

    def symbols(self, index: int) -> Iterator[Symbol]:
        """Every symbol of a file: definitions, imports, references, each by name."""
        file = self._files[index]
        for name, count in file.definitions.items():
            yield Symbol("definition", name, count, "definition")
        imports, at_hand = self._imports(index) if self._chains is None else (self._typed_imports(index), ())
        yield from imports
        merged: dict[str, Symbol] = {}
        for name, count in self._expanded(file).items():
            found = self._typed(index, name) if self._chains else (self._reference(index, name, at_hand),)
            for symbol in found:
                if symbol.name in merged:
                    merged[symbol.name].count += count
                else:
                    symbol.count = count
                    merged[symbol.name] = symbol
        for symbol in merged.values():
            weights = symbol.weights
            if weights:
                weights.pop(index, None)
                share = math.sqrt(symbol.count) / max(1, len(weights))
                symbol.weights = {f: factor * share for f, factor in weights.items()}
            if not symbol.weights and symbol.resolution == "internal":
                symbol.resolution = "local"
            yield symbol

    def _expanded(self, file: FileSymbols) -> Mapping[str, int]:
        """The references of a file with those that its uses of macros stand for, as far as MAX_EXPANDED."""
        if not self._expansions:
            return file.references
        found = dict(file.references)
        pending = [name for name in found if name in self._expansions]
        for name in pending:
            for word in self._expansions[name]:
                if word not in found and len(found) < MAX_EXPANDED:
                    found[word] = found[name]
                    if word in self._expansions:
                        pending.append(word)
        return found

    # Imports

    def _imports(self, index: int) -> tuple[list[Symbol], set[int]]:
        """The rows of a file's imports, and the files they name."""
        rows: dict[str, Symbol] = {}
        at_hand: set[int] = set()
        for item in self._files[index].imports:
            row = rows.setdefault(item.written, Symbol("import", item.written, 0, "external"))
            row.count += item.count
            named, passed, around = self._imported_files(index, item)
            if not item.deferred:
                at_hand.update(named)
            weights = dict.fromkeys(around, AROUND) | dict.fromkeys(passed, WEAK)
            weights.update(dict.fromkeys(named, (DEFERRED if item.deferred else 1.0) / max(1, len(named))))
            weights.pop(index, None)
            if weights:
                row.resolution = "internal"
            for file, weight in weights.items():
                row.weights[file] = max(weight, row.weights.get(file, 0.0))
        return list(rows.values()), at_hand

    def _imported_files(self, index: int, item: Import) -> tuple[Sequence[int], Sequence[int], Sequence[int]]:
        """The files an import names, those it passes on the way, and of these the importer's own packages."""
        place = self._modules.place(item.module, index)
        if place is None:
            return (), (), ()
        enclosing = set(self._modules.enclosing(index))
        files = self._modules.files(place)
        on_the_way = self._modules.passed(place)
        passed = [f for f in on_the_way if f not in enclosing]
        around = [f for f in on_the_way if f in enclosing]
        if item.name is None or item.name == "*":
            passed += [f for f in files if f in enclosing]
            return [f for f in files if f not in enclosing], passed, around
        found = self._from(place, item.name)
        if found is None:
            return (), (), ()
        if len(files) == 1:
            (around if files[0] in enclosing else passed).append(files[0])
        return found.files, [*passed, *found.passed], around

    # Chains of names whose types are declared

    def _typed_imports(self, index: int) -> list[Symbol]:
        """The rows of a file's imports; one of a whole package says nothing that its uses do not say."""
        assert self._chains is not None
        rows: dict[str, Symbol] = {}
        for item in self._files[index].imports:
            row = rows.setdefault(item.written, Symbol("import", item.written, 0, "external"))
            row.count += item.count
            inside, files = self._chains.imported(index, item)
            if inside:
                row.resolution = "internal"
            row.weights.update({file: 1.0 / len(files) for file in files if file != index})
        return list(rows.values())

    def _typed(self, index: int, name: str) -> Iterator[Symbol]:
        """One reference for every step of a chain, and one more where it goes on outside."""
        assert self._chains is not None
        if name.startswith("."):
            added = self._chains.extension(index, name[1:])
            if added is not None:
                yield Symbol("reference", name, 0, "internal", dict.fromkeys(added.files, 1.0))
            else:
                yield Symbol("reference", name, 0, "ambiguous" if name[1:] in self._members else "external")
            return
        walk = self._chains.walk(index, name)
        for step, files in walk.steps:
            yield Symbol("reference", step, 0, "internal", dict.fromkeys(files, 1.0))
        if walk.end is not None:
            last = walk.outside.rpartition(".")[2]
            somewhere = "ambiguous" if last in self._members or last in self._plain else "external"
            yield Symbol("reference", walk.outside, 0, somewhere if walk.end == "unknown" else walk.end)

    # What a name means

    def _from(self, place: str, name: str, hops: int = 0) -> Found | None:
        """`from place import name`: a name nothing is known of is taken to be made by the file itself."""
        found = self._lookup(place, name, hops)
        if found is None and len(files := self._modules.files(place)) == 1:
            return Found(tuple(files))
        return found

    def _lookup(self, place: str, name: str, hops: int = 0) -> Found | None:
        """The meaning of `name` in the module at `place`."""
        if name not in self._plain and name not in self._bound:
            return self._submodule(place, name)
        key = place, name
        if key in self._open or hops > MAX_HOPS:
            return self._submodule(place, name)
        if key not in self._found:
            self._open.add(key)
            self._found[key] = self._at_place(place, name, hops) or self._submodule(place, name)
            self._open.discard(key)
        return self._found[key]

    def _at_place(self, place: str, name: str, hops: int) -> Found | None:
        """What the files at `place` define, or a single one passes on, under `name`."""
        files = self._modules.files(place)
        if len(files) == 1:
            return self._in_file(files[0], name, hops)
        if place not in self._at:
            self._at[place] = frozenset(files)
        here = [f for f in self._plain.get(name, ()) if f in self._at[place]]
        return Found(self._with_makers(name, here)) if here else None

    def _in_file(self, file: int, name: str, hops: int) -> Found | None:
        own = self._files[file]
        meanings = []
        if name in own.definitions or name in own.declarations:
            meanings.append(Found(self._with_makers(name, [file])))
        meanings += self._passed_on(file, name, hops)
        if not meanings and (found := self._through_stars(file, name, hops)) is not None:
            meanings.append(Found(found.files, (file, *found.passed), found.place))
        return _union(meanings)

    def _passed_on(self, file: int, name: str, hops: int) -> Iterator[Found]:
        """What the imports of `file` that bind `name` mean; the deferred ones if there are no others."""
        bindings = self._bindings[file].get(name, [])
        for item in [i for i in bindings if not i.deferred] or bindings:
            found = self._follow(item, file, hops + 1)
            if found is not None:
                yield Found(found.files, (file, *found.passed), found.place)

    def _with_makers(self, name: str, files: Sequence[int]) -> tuple[int, ...]:
        """Those of `files`, where `name` was found, that make it; if all only announce it, those that do."""
        made = tuple(f for f in files if name in self._files[f].definitions)
        return made or tuple(self._makers_for(name, files)) or tuple(files)

    def _makers_for(self, name: str, files: Sequence[int]) -> Sequence[int]:
        """The files that make what `files` announce: of several, one for each program, the nearest."""
        makers = self._makers.get(name, ())
        if len(makers) > 1:
            shared = {f: max(self._folders_shared(f, other) for other in files) for f in makers}
            most = max(shared.values())
            makers = [f for f in makers if shared[f] == most]
        return makers if len(makers) <= MAX_DEFINERS else ()

    def _follow(self, item: Import, file: int, hops: int = 0) -> Found | None:
        """The meaning of the name that `item` binds in `file`."""
        module = item.module if item.alias or item.name else item.module.partition(".")[0]
        place = self._modules.place(module, file)
        if place is None:
            return None
        return self._from(place, item.name, hops) if item.name else self._module(place)

    def _through_stars(self, file: int, name: str, hops: int) -> Found | None:
        """What the files that `file` sees through star imports define or pass on under `name`."""
        seen = self._visible(file)
        if not seen:
            return None
        definers = [f for f in self._plain.get(name, ()) if f in seen and self._exported(f, name)]
        if definers:
            return Found(self._with_makers(name, definers), seen[definers[0]] if len(definers) == 1 else ())
        if name not in self._bound:
            return None
        for target in seen:
            if name in self._bindings[target] and self._exported(target, name):
                for found in self._passed_on(target, name, hops + 1):
                    return Found(found.files, (*seen[target], *found.passed), found.place)
        return None

    def _seen_from(self, file: int) -> dict[int, tuple[int, ...]]:
        """The files whose names `file` sees through star imports, nearest first, with the file between."""
        seen: dict[int, tuple[int, ...]] = {}
        pending: list[tuple[int, tuple[int, ...]]] = [(file, ())]
        for source, way in pending:
            for files in self._starred(source):
                for target in files:
                    if target != file and target not in seen and len(seen) < MAX_SEEN:
                        seen[target] = way
                        if len(files) == 1:
                            pending.append((target, (target,)))
        return seen

    def _starred(self, file: int) -> Sequence[Sequence[int]]:
        """The files of each star import of `file`."""
        found = self._star_files[file]
        if found is None:
            places = (self._modules.place(item.module, file) for item in self._stars[file])
            found = [self._modules.files(place) for place in places if place is not None]
            self._star_files[file] = found
        return found

    def _exported(self, file: int, name: str) -> bool:
        exports = self._files[file].exports
        if exports is not None:
            return name in exports
        return not (name.startswith("_") and self._languages[file].underscore_hides)

    def _submodule(self, place: str, name: str) -> Found | None:
        below = self._modules.inside(place, name)
        return None if below is None else self._module(below)

    def _module(self, place: str) -> Found:
        return Found(tuple(self._modules.files(place)), (), place)

    # References

    def _reference(self, index: int, name: str, at_hand: Collection[int]) -> Symbol:
        """A reference with the factor of each defining file; the caller knows how often it occurs."""
        if name.startswith("."):
            return self._member(index, name, at_hand)
        root, _, rest = name.partition(".")
        if root in self._bindings[index]:
            return self._imported(index, name)
        if root in self._files[index].definitions:
            return Symbol("reference", name, 0, "local")
        language = self._languages[index]
        found = self._among_peers(index, root) or self._through_stars(index, root, 0)
        if found is not None and found.files:
            return Symbol("reference", root, 0, "internal", dict.fromkeys(found.files, 1.0))
        if rest and language.qualified_names and (place := self._modules.place(root, index)) is not None:
            parts = name.split(".")
            found, length = self._walk(self._module(place), parts)
            if length > 1 and found is not None and found.files:
                return Symbol(
                    "reference", ".".join(parts[:length]), 0, "internal", dict.fromkeys(found.files, 1.0)
                )
        if root in language.builtins:
            return Symbol("reference", root, 0, "builtin")
        if root in self._files[index].declarations or language.shared_names:
            return self._without_import(index, root)
        return Symbol("reference", name, 0, "external")

    def _among_peers(self, index: int, name: str) -> Found | None:
        """The files that define `name` among those that `index` sees without an import."""
        definers = self._plain.get(name)
        peers = self._modules.peers(index) if definers else ()
        if not definers or not peers:
            return None
        here = [f for f in definers if f in peers and f != index and name not in self._files[f].private]
        return Found(self._with_makers(name, here)) if here else None

    def _member(self, index: int, name: str, at_hand: Collection[int]) -> Symbol:
        """A member of an object of unknown type: one that a file at hand defines, or nobody's."""
        member = name[1:]
        if member in self._own_members[index]:
            return Symbol("reference", name, 0, "local")
        if member in self._languages[index].builtin_members:
            return Symbol("reference", name, 0, "builtin")
        definers = self._members.get(member, [])
        if not definers or len(member) < MIN_NAME:
            return Symbol("reference", name, 0, "ambiguous" if definers else "external")
        seen, peers = self._visible(index), self._modules.peers(index)
        if peers:
            near = [f for f in definers if f in at_hand or f in seen or f in peers]
        else:  # a few files are at hand, thousands may define the member
            near = [f for f in sorted({*at_hand, *seen}) if member in self._members_of[f]]
        if not near or len(near) > MAX_DEFINERS:
            return Symbol("reference", name, 0, "ambiguous")
        return Symbol("reference", name, 0, "internal", dict.fromkeys(self._member_makers(member, near), 1.0))

    def _member_makers(self, member: str, files: Sequence[int]) -> list[int]:
        """`files` and, of classes of theirs that only announce the member, the files that make it."""
        found = dict.fromkeys(files)
        for file in files:
            for name in self._announced[file].get(member, ()):
                found.update(dict.fromkeys(self._makers_for(name, [file])))
        return list(found)

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
                factor = WEAK if module_around else DEFERRED if item.deferred else 1.0
                factors[file] = max(factor, factors.get(file, 0.0))
                used = max(used, length)
        if factors:
            return Symbol("reference", ".".join(parts[:used]), 0, "internal", factors)
        local = parts[0] in self._files[index].definitions
        whole = any(item.name is None for item in bindings)
        return Symbol("reference", name if whole else parts[0], 0, "local" if local else "external")

    def _walk(self, found: Found | None, parts: Sequence[str]) -> tuple[Found | None, int]:
        """Where a chain that starts at `found` leads, and how many of its parts were followed."""
        length = 1
        while found is not None and found.place is not None and length < len(parts):
            below = self._lookup(found.place, parts[length])
            if below is None:
                break
            found, length = below, length + 1
        return found, length

    def _without_import(self, index: int, name: str) -> Symbol:
        """A name that nothing in the file or the files it sees binds, by who defines it."""
        definers = self._makers.get(name, [])
        if not definers:
            return Symbol("reference", name, 0, "external")
        if len(definers) > MAX_DEFINERS or len(name) < MIN_NAME:
            return Symbol("reference", name, 0, "ambiguous")
        hidden = name.startswith("_") and self._languages[index].underscore_hides
        private = PRIVATE if hidden else 1.0
        factors = {f: private * self._nearness(index, f) for f in definers}
        return Symbol("reference", name, 0, "internal", factors)

    def _folders_shared(self, one: int, other: int) -> int:
        return n_shared(self._paths[one].split("/")[:-1], self._paths[other].split("/")[:-1])

    def _nearness(self, one: int, other: int) -> float:
        left, right = self._paths[one].split("/"), self._paths[other].split("/")
        if left[:-1] == right[:-1]:
            return SAME_FOLDER
        return SAME_TOP_FOLDER if left[0] == right[0] else ELSEWHERE


def resolve(facts: pa.Table) -> pa.Table:
    """SYMBOLS of one repository from its FACTS, whatever their order."""
    with paused():
        return _resolved(facts)


def _resolved(facts: pa.Table) -> pa.Table:
    rows = sorted(facts.to_pylist(), key=lambda row: (row["path"], row["language"], row["doc_id"]))
    manifests = {row["path"]: row["facts"] for row in rows if row["language"] == MANIFEST}
    families: dict[str, list[int]] = {}
    for i, row in enumerate(rows):
        if row["language"] != MANIFEST:
            families.setdefault(languages()[row["language"]].family, []).append(i)
    documents: list[int] = []
    symbols: list[Symbol] = []
    targets: list[list[str] | None] = []
    weights: list[list[float] | None] = []
    for _, chosen in sorted(families.items()):
        repository = Repository(
            [languages()[rows[i]["language"]] for i in chosen],
            [rows[i]["path"] for i in chosen],
            [FileSymbols.from_json(rows[i]["facts"]) for i in chosen],
            manifests,
        )
        doc_ids = [rows[i]["doc_id"] for i in chosen]
        for position, row_index in enumerate(chosen):
            before = len(symbols)
            symbols += repository.symbols(position)
            documents += [row_index] * (len(symbols) - before)
            for symbol in symbols[before:]:
                files = sorted(symbol.weights) if symbol.weights else ()
                targets.append([doc_ids[f] for f in files] if files else None)
                weights.append([symbol.weights[f] for f in files] if files else None)
    taken = pa.array(documents, pa.int32())
    columns = {
        column: pa.array([row[column] for row in rows], pa.string()).take(taken)
        for column in ("doc_id", "repository", "path", "partition")
    } | {
        "kind": [symbol.kind for symbol in symbols],
        "name": [symbol.name for symbol in symbols],
        "count": [symbol.count for symbol in symbols],
        "resolution": [symbol.resolution for symbol in symbols],
        "resolved_to": targets,
        "weights": weights,
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
        if (name := item.binds) is not None:
            bindings.setdefault(name, []).append(item)
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
