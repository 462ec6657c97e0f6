"""The files that a reference means, in languages that do not declare the types of values.

1. A reference that starts at an imported name goes where the import goes.
2. A name used without an import means a definition of the file's peers (the other files of its package), then
   of the files it sees through star imports and includes, then, in languages with one namespace for all
   files, of any file: if the definers are few (MAX_DEFINERS) and the name is long enough (MIN_NAME). The
   nearer the definer, the heavier the edge.
3. A member of an object resolves only to files at hand: imported, seen or peers. (Against the types mypy
   finds in rich and hypothesis, 80 % of such guesses are right, but 4 % of guesses among files that are not
   imported.) A member that a file adds to other files' types (`declare module`) is at hand everywhere.
4. A name that is only declared where it is found (a prototype in a header) means its definer; of several the
   one nearest to the declaration.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from spark_udfs.depsort.names import MAX_DEFINERS, Family, NameResolver
from spark_udfs.depsort.nested_constants import OPENED, SCOPE, NestedConstants
from spark_udfs.depsort.type_chains import EXTENSION
from spark_udfs.depsort.weights import (
    AROUND,
    DEFERRED,
    ELSEWHERE,
    PRIVATE,
    SAME_FOLDER,
    SAME_TOP_FOLDER,
    WEAK,
)

IN_MACRO = "$"  # before a path in a macro: the macro's users depend on it more than the macro's file does
MIN_NAME = 3  # characters


@dataclass(slots=True)
class Symbol:
    """One row of a file's symbols; `weights` maps defining files to the weight the row adds to their edge.

    A `late` reference occurs only in functions, which run after their file is loaded.
    """

    kind: str
    name: str
    count: int
    resolution: str
    weights: dict[int, float] = field(default_factory=dict)
    late: bool = False


def internal(name: str, files: Iterable[int], factor: float = 1.0) -> Symbol:
    """A reference to files of the repository; the caller sets its count."""
    return Symbol("reference", name, 0, "internal", dict.fromkeys(files, factor))


class ReferenceResolver(NameResolver):
    """The references in the files of one family of languages; files are numbered in order of path."""

    def __init__(self, family: Family) -> None:
        super().__init__(family)
        self.members: dict[str, list[int]] = {}  # member -> the files that define or declare it
        self._added: dict[str, list[int]] = {}  # member of other files' types -> the files that add it
        self._own_members: list[set[str]] = []  # of each file, the members it defines
        self._declared_members: list[dict[str, list[str]]] = []  # of each file: member -> `Class.member`
        self._members_of: list[set[str]] = []  # of each file, defined or declared
        for index, file in enumerate(self.files):
            own = {name.rpartition(".")[2] for name in file.definitions if "." in name}
            for name in file.definitions:
                if name.startswith(f"{EXTENSION}."):
                    self._added.setdefault(name.partition(".")[2], []).append(index)
            declared: dict[str, list[str]] = {}
            for name in file.declarations:
                if "." in name:
                    declared.setdefault(name.rpartition(".")[2], []).append(name)
            for member in own | declared.keys():
                self.members.setdefault(member, []).append(index)
            self._own_members.append(own)
            self._declared_members.append(declared)
            self._members_of.append(own | declared.keys())
        nested = any(language.nested_constants for language in self.languages)
        self.constants = NestedConstants(self.paths, self.files) if nested else None

    def reference(self, index: int, name: str, at_hand: Collection[int]) -> Symbol:
        """A reference with the factor of each defining file; the caller sets its count."""
        if name.startswith("."):
            return self._member(index, name, at_hand)
        if self.constants is not None:
            return self._constant(self.constants, index, name)
        if name.startswith(IN_MACRO):
            inside_macro = self.reference(index, name.removeprefix(IN_MACRO), at_hand)
            inside_macro.weights = dict.fromkeys(inside_macro.weights, AROUND)
            return inside_macro
        root, _, rest = name.partition(".")
        if root in self.bindings[index]:
            return self._imported(index, name)
        if root in self.files[index].definitions:
            return Symbol("reference", name, 0, "local")
        language = self.languages[index]
        meaning = self.among_peers(index, root) or self.through_stars(index, root, 0)
        if meaning is None and language.textual_imports:
            meaning = self.seen_by_includers(index, root)
        if meaning is not None and meaning.files:
            headers = self.declaring_headers(index, root, meaning.files)
            whole = 1 + len(headers) / len(meaning.files)  # so that headers take no share from the definers
            factors = dict.fromkeys(headers, AROUND * whole) | dict.fromkeys(meaning.files, whole)
            return Symbol("reference", root, 0, "internal", factors)
        if rest and language.qualified_names and (address := self.modules.locate(root, index)) is not None:
            parts = name.split(".")
            meaning, length = self.walk(self.module(address), parts)
            if length > 1 and meaning is not None and meaning.files:
                return internal(".".join(parts[:length]), meaning.files)
        if root in language.builtins:
            return Symbol("reference", root, 0, "builtin")
        if root in self.files[index].declarations or language.shared_names:
            return self._without_import(index, root)
        return Symbol("reference", name, 0, "external")

    def _constant(self, constants: NestedConstants, index: int, written: str) -> Symbol:
        """A constant, resolved by the modules open around it."""
        name = written.rpartition(OPENED)[2]
        meaning = constants.meaning(written)
        if meaning is None:
            is_builtin = name.partition(SCOPE)[0] in self.languages[index].builtins
            return Symbol("reference", name, 0, "builtin" if is_builtin else "external")
        whole, files = meaning
        if index in files:
            return Symbol("reference", whole, 0, "local")
        files = tuple(self.nearest(index, files))
        if not 0 < len(files) <= MAX_DEFINERS:
            return Symbol("reference", whole, 0, "ambiguous")
        return internal(whole, files)

    def _member(self, index: int, name: str, at_hand: Collection[int]) -> Symbol:
        """A member of an object of unknown type: defined by a file at hand, or unresolved."""
        member = name[1:]
        if member in self._own_members[index]:
            return Symbol("reference", name, 0, "local")
        if member in self.languages[index].builtin_members:
            return Symbol("reference", name, 0, "builtin")
        definers = self.members.get(member, [])
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
        return internal(name, self._member_definers(member, near))

    def _member_definers(self, member: str, files: Sequence[int]) -> list[int]:
        """`files`, and the definers of the member where their classes only declare it."""
        definers = dict.fromkeys(files)
        for file in files:
            for name in self._declared_members[file].get(member, ()):
                definers.update(dict.fromkeys(self.nearest_definers(name, [file])))
        return list(definers)

    def _imported(self, index: int, name: str) -> Symbol:
        """A chain that starts at an imported name, cut where it leaves the repository's modules."""
        parts = name.split(".")
        bindings = self.bindings[index][parts[0]]
        enclosing = set(self.modules.enclosing(index))
        factors: dict[int, float] = {}
        longest = 0
        for binding in bindings:
            meaning, length = self.walk(self.follow(binding, index), parts)
            for file in meaning.files if meaning else ():
                module_around = meaning is not None and meaning.address is not None and file in enclosing
                factor = WEAK if module_around else DEFERRED if binding.deferred else 1.0
                factors[file] = max(factor, factors.get(file, 0.0))
                longest = max(longest, length)
        if factors:
            return Symbol("reference", ".".join(parts[:longest]), 0, "internal", factors)
        local = parts[0] in self.files[index].definitions
        whole = any(binding.name is None for binding in bindings)
        return Symbol("reference", name if whole else parts[0], 0, "local" if local else "external")

    def _without_import(self, index: int, name: str) -> Symbol:
        """A name that neither the file nor the files it sees define, resolved among all files."""
        definers = self.definers.get(name, [])
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

    def _nearness(self, index: int, other: int) -> float:
        parts, other_parts = self.paths[index].split("/"), self.paths[other].split("/")
        if parts[:-1] == other_parts[:-1]:
            return SAME_FOLDER
        return SAME_TOP_FOLDER if parts[0] == other_parts[0] else ELSEWHERE
