"""Every symbol of a file with the files that define it, and what each adds to the weight of that edge.

1. Imports are followed to the file that defines the name, through aliases and chains of re-exports.
2. References that start at an imported name go where the import goes; they weigh the square root of how
   often they occur, spread over the defining files.
3. A name used without an import means what the file's peers define (the other files of its package), then
   what the files it can see through star imports and includes define, then, in languages whose files share
   one space of names, what any file defines: if those are few (MAX_DEFINERS) and the name is long enough to
   mean something (MIN_NAME); the nearer, the heavier.
4. A member of an object resolves only to files at hand: imported, seen or peers. (Against the types mypy
   finds in rich and hypothesis, 80 % of such guesses are right, and 4 % of those on files that are not
   imported.) What a file adds to other files' types (`declare module`) is at hand everywhere.
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
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from spark_udfs.depsort.model import FileSymbols, Import, Language
from spark_udfs.depsort.names import MAX_DEFINERS, NameResolver
from spark_udfs.depsort.nested_constants import OPENED, SCOPE, NestedConstants
from spark_udfs.depsort.pasted_names import with_pasted_names
from spark_udfs.depsort.type_chains import EXTENSION, TypedChains

IN_MACRO = "$"  # before a path in a macro, which whoever uses the macro depends on more than its own file
MIN_NAME = 3  # characters
MAX_EXPANDED = 20_000  # references of a file with those of the macros it uses
DEFERRED = 0.6  # of what runs late: as true as any other, but where a cycle must break, rather there
WEAK, AROUND = 0.2, 0.02  # weights of what an import passes: any other package, one around the importer
SAME_FOLDER, SAME_TOP_FOLDER, ELSEWHERE = 0.7, 0.5, 0.2  # factors of a use without an import
PRIVATE = 0.1  # factor of a use without an import of a name that starts with an underscore


@dataclass(slots=True)
class Symbol:
    """One row of a file's symbols; `weights` maps defining files to what the row adds to that dependency."""

    kind: str
    name: str
    count: int
    resolution: str
    weights: dict[int, float] = field(default_factory=dict)


class Repository(NameResolver):
    """The files of one family of languages in a repository, by path; numbers below are their positions."""

    def __init__(
        self,
        kinds: Sequence[Language],
        paths: Sequence[str],
        files: Sequence[FileSymbols],
        manifests: Mapping[str, str],
    ) -> None:
        files = with_pasted_names(files)
        super().__init__(kinds, paths, files, manifests)
        self._members: dict[str, list[int]] = {}  # member -> the files that define or announce it
        self._added: dict[str, list[int]] = {}  # member of other files' types -> the files that add it
        self._own_members: list[set[str]] = []
        self._announced: list[dict[str, list[str]]] = []  # member -> `Class.member`, as each file announces
        self._members_of: list[set[str]] = []  # with the members that a file announces
        self._expansions: dict[str, dict[str, None]] = {}  # macro -> the names it stands for
        for index, file in enumerate(files):
            own = {name.rpartition(".")[2] for name in file.definitions if "." in name}
            for name in file.definitions:
                if name.startswith(f"{EXTENSION}."):
                    self._added.setdefault(name.partition(".")[2], []).append(index)
            announced: dict[str, list[str]] = {}
            for name in file.declarations:
                if "." in name:
                    announced.setdefault(name.rpartition(".")[2], []).append(name)
            for member in own | announced.keys():
                self._members.setdefault(member, []).append(index)
            self._own_members.append(own)
            self._announced.append(announced)
            self._members_of.append(own | announced.keys())
            for name, words in file.expansions.items():
                whole = (word for word in words if "#" not in word)
                self._expansions.setdefault(name, {}).update(dict.fromkeys(whole))
        typed = [kind.typed_chains for kind in kinds]
        self._chains = (
            TypedChains(self.modules, paths, files, [k.builtins for k in kinds]) if all(typed) else None
        )
        nested = any(kind.nested_constants for kind in kinds)
        self._constants = NestedConstants(paths, files) if nested else None

    def symbols(self, index: int) -> Iterator[Symbol]:
        """Every symbol of a file: definitions, imports, references, each by name."""
        file = self.files[index]
        for name, count in file.definitions.items():
            yield Symbol("definition", name, count, "definition")
        imports, at_hand = self._imports(index) if self._chains is None else (self._typed_imports(index), ())
        yield from imports
        merged: dict[str, Symbol] = {}
        for name, count in self._expanded(file).items():
            found = self._typed(index, name) if self._chains else (self._reference(index, name, at_hand),)
            for symbol in found:
                if (same := merged.get(symbol.name)) is not None:
                    same.count += count
                    for file_used, factor in symbol.weights.items():
                        same.weights[file_used] = max(factor, same.weights.get(file_used, 0.0))
                else:
                    symbol.count = count
                    merged[symbol.name] = symbol
        if self._constants is not None:
            for name, homes in self._constants.homes(index):
                opened = Symbol("reference", name, 1, "internal", dict.fromkeys(homes, AROUND))
                merged.setdefault(name, opened)
        for symbol in merged.values():
            weights = symbol.weights
            if weights:
                weights.pop(index, None)
                apart = [target for target in weights if self.modules.apart(index, target)]
                for excluded in apart:
                    del weights[excluded]
                if apart and not weights:
                    symbol.resolution = "ambiguous"
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
        for item in self.files[index].imports:
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
        place = self.modules.place(item.module, index)
        if place is None:
            return (), (), ()
        enclosing = set(self.modules.enclosing(index))
        files = self.modules.files(place)
        on_the_way = self.modules.passed(place)
        passed = [f for f in on_the_way if f not in enclosing]
        around = [f for f in on_the_way if f in enclosing]
        if item.name is None or item.name == "*":
            passed += [f for f in files if f in enclosing]
            return [f for f in files if f not in enclosing], passed, around
        found = self.imported_name(place, item.name)
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
        for item in self.files[index].imports:
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
            somewhere = "ambiguous" if last in self._members or last in self.plain else "external"
            yield Symbol("reference", walk.outside, 0, somewhere if walk.end == "unknown" else walk.end)

    # References

    def _reference(self, index: int, name: str, at_hand: Collection[int]) -> Symbol:
        """A reference with the factor of each defining file; the caller knows how often it occurs."""
        if name.startswith("."):
            return self._member(index, name, at_hand)
        if self._constants is not None:
            return self._constant(self._constants, index, name)
        if name.startswith(IN_MACRO):
            found_later = self._reference(index, name.removeprefix(IN_MACRO), at_hand)
            found_later.weights = dict.fromkeys(found_later.weights, AROUND)
            return found_later
        root, _, rest = name.partition(".")
        if root in self.bindings[index]:
            return self._imported(index, name)
        if root in self.files[index].definitions:
            return Symbol("reference", name, 0, "local")
        language = self.languages[index]
        found = self.among_peers(index, root) or self.through_stars(index, root, 0)
        if found is None and language.textual_imports:
            found = self.known_before(index, root)
        if found is not None and found.files:
            headers = self.announcers(index, root, found.files)
            whole = 1 + len(headers) / len(found.files)  # headers take nothing from those they stand for
            factors = dict.fromkeys(headers, AROUND * whole) | dict.fromkeys(found.files, whole)
            return Symbol("reference", root, 0, "internal", factors)
        if rest and language.qualified_names and (place := self.modules.place(root, index)) is not None:
            parts = name.split(".")
            found, length = self.walk(self.module(place), parts)
            if length > 1 and found is not None and found.files:
                return Symbol(
                    "reference", ".".join(parts[:length]), 0, "internal", dict.fromkeys(found.files, 1.0)
                )
        if root in language.builtins:
            return Symbol("reference", root, 0, "builtin")
        if root in self.files[index].declarations or language.shared_names:
            return self._without_import(index, root)
        return Symbol("reference", name, 0, "external")

    def _constant(self, constants: NestedConstants, index: int, written: str) -> Symbol:
        """A constant that means what is open around it makes it mean."""
        name = written.rpartition(OPENED)[2]
        found = constants.meaning(written)
        if found is None:
            known = name.partition(SCOPE)[0] in self.languages[index].builtins
            return Symbol("reference", name, 0, "builtin" if known else "external")
        whole, files = found
        if index in files:
            return Symbol("reference", whole, 0, "local")
        files = tuple(self.nearest(index, files))
        if not 0 < len(files) <= MAX_DEFINERS:
            return Symbol("reference", whole, 0, "ambiguous")
        return Symbol("reference", whole, 0, "internal", dict.fromkeys(files, 1.0))

    def _member(self, index: int, name: str, at_hand: Collection[int]) -> Symbol:
        """A member of an object of unknown type: one that a file at hand defines, or nobody's."""
        member = name[1:]
        if member in self._own_members[index]:
            return Symbol("reference", name, 0, "local")
        if member in self.languages[index].builtin_members:
            return Symbol("reference", name, 0, "builtin")
        definers = self._members.get(member, [])
        if not definers or len(member) < MIN_NAME:
            return Symbol("reference", name, 0, "ambiguous" if definers else "external")
        seen, peers = self.visible(index), self.modules.peers(index)
        if peers:
            near = [f for f in definers if f in at_hand or f in seen or f in peers]
        else:  # a few files are at hand, thousands may define the member
            near = [f for f in sorted({*at_hand, *seen}) if member in self._members_of[f]]
        near = near or self._added.get(member, [])
        if not near or len(near) > MAX_DEFINERS:
            return Symbol("reference", name, 0, "ambiguous")
        return Symbol("reference", name, 0, "internal", dict.fromkeys(self._member_makers(member, near), 1.0))

    def _member_makers(self, member: str, files: Sequence[int]) -> list[int]:
        """`files` and, of classes of theirs that only announce the member, the files that make it."""
        found = dict.fromkeys(files)
        for file in files:
            for name in self._announced[file].get(member, ()):
                found.update(dict.fromkeys(self.makers_for(name, [file])))
        return list(found)

    def _imported(self, index: int, name: str) -> Symbol:
        """A chain of names whose first was imported, cut where it leaves the modules of the repository."""
        parts = name.split(".")
        bindings = self.bindings[index][parts[0]]
        enclosing = set(self.modules.enclosing(index))
        factors: dict[int, float] = {}
        used = 0
        for item in bindings:
            found, length = self.walk(self.follow(item, index), parts)
            for file in found.files if found else ():
                module_around = found is not None and found.place is not None and file in enclosing
                factor = WEAK if module_around else DEFERRED if item.deferred else 1.0
                factors[file] = max(factor, factors.get(file, 0.0))
                used = max(used, length)
        if factors:
            return Symbol("reference", ".".join(parts[:used]), 0, "internal", factors)
        local = parts[0] in self.files[index].definitions
        whole = any(item.name is None for item in bindings)
        return Symbol("reference", name if whole else parts[0], 0, "local" if local else "external")

    def _without_import(self, index: int, name: str) -> Symbol:
        """A name that nothing in the file or the files it sees binds, by who defines it."""
        definers = self.makers.get(name, [])
        if not definers:
            return Symbol("reference", name, 0, "external")
        definers = [f for f in definers if self.within_reach(index, f)]
        short = len(name) < MIN_NAME and not (self.languages[index].short_names and len(definers) == 1)
        if short or not 0 < len(definers) <= MAX_DEFINERS:
            return Symbol("reference", name, 0, "ambiguous")
        hidden = name.startswith("_") and self.languages[index].underscore_hides
        private = PRIVATE if hidden else 1.0
        factors = {f: private * self._nearness(index, f) for f in definers}
        return Symbol("reference", name, 0, "internal", factors)

    def _nearness(self, one: int, other: int) -> float:
        left, right = self.paths[one].split("/"), self.paths[other].split("/")
        if left[:-1] == right[:-1]:
            return SAME_FOLDER
        return SAME_TOP_FOLDER if left[0] == right[0] else ELSEWHERE
