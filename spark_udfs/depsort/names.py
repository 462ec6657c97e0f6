"""Resolution of names to the files that define them, through aliases and re-exports.

A name is looked up in the modules that a file imports, among its peers (the other files of its package), and
in the files it sees through star imports and includes. A name that is only declared where it is found (a
prototype) resolves to the file that defines it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from spark_udfs.depsort.fixtures import fixture_of, remoteness
from spark_udfs.depsort.model import FileSymbols, Import, Language
from spark_udfs.depsort.paths import n_shared, parent

MAX_DEFINERS = 5  # a name with more definers is ambiguous
MAX_HOPS = 32  # re-exports followed in a row
MAX_INCLUDERS = 12  # includers searched for the names that a header uses
MAX_SEEN = 4_000  # files followed through star imports of star imports


class Meaning(NamedTuple):
    """The files that define a name, the files that re-export it, and its address if it is a module."""

    files: tuple[int, ...]
    via: tuple[int, ...] = ()
    address: str | None = None


@dataclass(frozen=True)
class Family:
    """The files of one family of languages in a repository, in order of path."""

    languages: Sequence[Language]  # of each file
    paths: Sequence[str]
    files: Sequence[FileSymbols]
    manifests: Mapping[str, str]


class NameResolver:
    """The names in the files of one family of languages; files are numbered in order of path."""

    def __init__(self, family: Family) -> None:
        self.languages, self.paths = family.languages, family.paths
        self.files = files = family.files
        self.modules = self.languages[0].modules(self.paths, files, family.manifests)
        self.bindings = [_bindings(file.imports) for file in files]
        self._stars = [[i for i in file.imports if i.name == "*"] for file in files]
        self._star_files: list[Sequence[Sequence[int]] | None] = [None] * len(files)
        self._found: dict[tuple[str, str], Meaning | None] = {}
        self._open: set[tuple[str, str]] = set()
        self._at: dict[str, frozenset[int]] = {}
        self.named_in: dict[str, list[int]] = {}  # name -> the files that define or declare it
        self.definers: dict[str, list[int]] = {}  # name, also `Class.member`, -> the files that define it
        for index, file in enumerate(files):
            for name in file.definitions.keys() | file.declarations.keys():
                if "." not in name:
                    self.named_in.setdefault(name, []).append(index)
                if name in file.definitions and name not in file.private:
                    self.definers.setdefault(name, []).append(index)
        self._fixtures = [fixture_of(path) for path in self.paths]
        self._bound = {name for bindings in self.bindings for name in bindings}
        self._includers: dict[int, list[int]] | None = None
        self.visible = lru_cache(1024)(self._files_seen_by)
        self.including = lru_cache(64)(self._files_including)

    def imported_name(self, address: str, name: str, hops: int = 0) -> Meaning | None:
        """`from address import name`; an unknown name is assumed to be defined by the module's file."""
        meaning = self.lookup(address, name, hops)
        if meaning is None and len(files := self.modules.files(address)) == 1:
            return Meaning(tuple(files))
        return meaning

    def lookup(self, address: str, name: str, hops: int = 0) -> Meaning | None:
        """The meaning of `name` in the module at `address`."""
        if name not in self.named_in and name not in self._bound:
            return self._submodule(address, name)
        key = address, name
        if key in self._open or hops > MAX_HOPS:
            return self._submodule(address, name)
        if key not in self._found:
            self._open.add(key)
            self._found[key] = self._at_address(address, name, hops) or self._submodule(address, name)
            self._open.discard(key)
        return self._found[key]

    def _at_address(self, address: str, name: str, hops: int) -> Meaning | None:
        """The meaning of `name` in the files at `address`; a single file may also re-export it."""
        files = self.modules.files(address)
        if len(files) == 1:
            return self._in_file(files[0], name, hops)
        if address not in self._at:
            self._at[address] = frozenset(files)
        here = [f for f in self.named_in.get(name, ()) if f in self._at[address]]
        return Meaning(self.definers_among(name, here)) if here else None

    def _in_file(self, file: int, name: str, hops: int) -> Meaning | None:
        own = self.files[file]
        meanings = []
        if name in own.definitions or name in own.declarations:
            meanings.append(Meaning(self.definers_among(name, [file])))
        meanings += self.re_exported(file, name, hops)
        if not meanings and (meaning := self.through_stars(file, name, hops)) is not None:
            meanings.append(Meaning(meaning.files, (file, *meaning.via), meaning.address))
        return _union(meanings)

    def re_exported(self, file: int, name: str, hops: int) -> Iterator[Meaning]:
        """The meanings of the imports of `file` that bind `name`; without others the deferred ones."""
        bindings = self.bindings[file].get(name, [])
        for binding in [i for i in bindings if not i.deferred] or bindings:
            meaning = self.follow(binding, file, hops + 1)
            if meaning is not None:
                yield Meaning(meaning.files, (file, *meaning.via), meaning.address)

    def definers_among(self, name: str, files: Sequence[int]) -> tuple[int, ...]:
        """The definers of `name` among `files`, which all mention it; elsewhere if these only declare it."""
        definers = tuple(f for f in files if name in self.files[f].definitions)
        return definers or tuple(self.nearest_definers(name, files)) or tuple(files)

    def nearest_definers(self, name: str, files: Sequence[int]) -> Sequence[int]:
        """The definers of a name that `files` declare; of several (one per program) the nearest."""
        definers = self.definers.get(name, ())
        if len(definers) > 1:
            distances = {f: min(self._remoteness(f, other) for other in files) for f in definers}
            least = min(distances.values())
            definers = [f for f in definers if distances[f] == least]
        return definers if len(definers) <= MAX_DEFINERS else ()

    def follow(self, binding: Import, file: int, hops: int = 0) -> Meaning | None:
        """The meaning of the name that `binding` binds in `file`."""
        module = binding.module if binding.alias or binding.name else binding.module.partition(".")[0]
        address = self.modules.locate(module, file)
        if address is None:
            return None
        if binding.name is None:
            return self.module(address)
        return self.nearest_meaning(file, address, self.imported_name(address, binding.name, hops))

    def nearest_meaning(self, index: int, address: str, meaning: Meaning | None) -> Meaning | None:
        """`meaning` of a name of the namespace `address` with the nearest of the files that define it alone.

        Several packages of a repository may define the name, in files that declare the same namespace.
        """
        if meaning is None or len(meaning.files) < 2 or len(self.modules.files(address)) < 2:
            return meaning
        distances = [self._remoteness(file, index) for file in meaning.files]
        least = min(distances)
        nearest = (f for f, distance in zip(meaning.files, distances, strict=True) if distance == least)
        return meaning._replace(files=tuple(nearest))

    def through_stars(self, file: int, name: str, hops: int) -> Meaning | None:
        """The meaning of `name` in the files that `file` sees through star imports."""
        seen = self.visible(file)
        if not seen:
            return None
        definers = [f for f in self.named_in.get(name, ()) if f in seen and self._exported(f, name)]
        if definers:
            return Meaning(
                self.definers_among(name, definers), seen[definers[0]] if len(definers) == 1 else ()
            )
        if name not in self._bound:
            return None
        for target in seen:
            if name in self.bindings[target] and self._exported(target, name):
                for meaning in self.re_exported(target, name, hops + 1):
                    return Meaning(meaning.files, (*seen[target], *meaning.via), meaning.address)
        return None

    def seen_by_includers(self, file: int, name: str) -> Meaning | None:
        """The meaning of `name` in the files that include `file`, and in their other includes."""
        definers = self.definers.get(name, ())
        if not 0 < len(definers) <= MAX_DEFINERS or name in self.files[file].declarations:
            return None
        seen = [self.visible(includer) for includer in self.including(file)]
        here = [f for f in definers if any(f in files for files in seen) and file not in self.visible(f)]
        return Meaning(tuple(here)) if here else None

    def declaring_headers(self, file: int, name: str, definers: Sequence[int]) -> Sequence[int]:
        """The headers with prototypes that declare to `file` a name that other files define."""
        if not self.languages[file].textual_imports or name in self.files[file].declarations:
            return ()
        seen = self.visible(file)
        if any(definer in seen for definer in definers):
            return ()
        headers = [f for f in self.named_in.get(name, ()) if f in seen and name in self.files[f].declarations]
        return headers if len(headers) <= MAX_DEFINERS else ()

    def _files_including(self, file: int) -> Sequence[int]:
        """The files that include `file`, directly or through others, nearest first."""
        if self._includers is None:
            self._includers = {}
            for source in range(len(self.files)):
                for files in self._star_targets(source):
                    for target in files:
                        self._includers.setdefault(target, []).append(source)
        includers = {file: None}
        for included_file in (pending := [file]):
            for source in self._includers.get(included_file, ()):
                if source not in includers and len(includers) <= MAX_INCLUDERS:
                    includers[source] = None
                    pending.append(source)
        return list(includers)[1:]

    def _files_seen_by(self, file: int) -> dict[int, tuple[int, ...]]:
        """The files that `file` sees through star imports, nearest first, with the file that imports each."""
        seen: dict[int, tuple[int, ...]] = {}
        pending: list[tuple[int, tuple[int, ...]]] = [(file, ())]
        for source, way in pending:
            for files in self._star_targets(source):
                for target in files:
                    if target != file and target not in seen and len(seen) < MAX_SEEN:
                        seen[target] = way
                        if len(files) == 1:
                            pending.append((target, (target,)))
        return seen

    def _star_targets(self, file: int) -> Sequence[Sequence[int]]:
        """The files that each star import of `file` names."""
        targets = self._star_files[file]
        if targets is None:
            addresses = (self.modules.locate(star.module, file) for star in self._stars[file])
            targets = [self.modules.files(address) for address in addresses if address is not None]
            self._star_files[file] = targets
        return targets

    def _exported(self, file: int, name: str) -> bool:
        exports = self.files[file].exports
        if exports is not None:
            return name in exports
        return not (name.startswith("_") and self.languages[file].underscore_hides)

    def _submodule(self, address: str, name: str) -> Meaning | None:
        below = self.modules.submodule(address, name)
        return None if below is None else self.module(below)

    def module(self, address: str) -> Meaning:
        return Meaning(tuple(self.modules.files(address)), (), address)

    def among_peers(self, index: int, name: str) -> Meaning | None:
        """The meaning of `name` among the files that `index` sees without an import."""
        definers = self.named_in.get(name)
        peers = self.modules.peers(index) if definers else ()
        if not definers or not peers:
            return None
        here = [f for f in definers if f in peers and f != index and name not in self.files[f].private]
        near = self.nearest(index, here)
        return Meaning(self.definers_among(name, near)) if near else None

    def within_reach(self, index: int, file: int) -> bool:
        """Whether a name without an import may mean `file`, which builds and test fixtures can rule out."""
        same_fixture = self._fixtures[file] in (None, self._fixtures[index])
        return same_fixture and not self.modules.never_built_together(index, file)

    def nearest(self, index: int, files: Sequence[int]) -> Sequence[int]:
        """The definers of a name without an import that share most folders with `index`."""
        candidates = [f for f in files if self.within_reach(index, f)]
        if len(candidates) < 2:
            return candidates
        shared = [self.folders_shared(index, f) for f in candidates]
        most = max(shared)
        return [f for f, n in zip(candidates, shared, strict=True) if n == most]

    def walk(self, meaning: Meaning | None, parts: Sequence[str]) -> tuple[Meaning | None, int]:
        """The end of a chain that starts at `meaning`, and the number of its parts that were followed."""
        length = 1
        while meaning is not None and meaning.address is not None and length < len(parts):
            below = self.lookup(meaning.address, parts[length])
            if below is None:
                break
            meaning, length = below, length + 1
        return meaning, length

    def _remoteness(self, file: int, importer: int) -> tuple[bool, int]:
        return remoteness(parent(self.paths[file]), parent(self.paths[importer]))

    def folders_shared(self, file: int, other: int) -> int:
        return n_shared(self.paths[file].split("/")[:-1], self.paths[other].split("/")[:-1])


def _bindings(imports: Iterable[Import]) -> dict[str, list[Import]]:
    bindings: dict[str, list[Import]] = {}
    for binding in imports:
        if (name := binding.binds) is not None:
            bindings.setdefault(name, []).append(binding)
    return bindings


def _union(meanings: Sequence[Meaning]) -> Meaning | None:
    """One meaning out of several, for a name with fallback imports."""
    if len(meanings) < 2:
        return meanings[0] if meanings else None
    return Meaning(
        tuple(dict.fromkeys(f for meaning in meanings for f in meaning.files)),
        tuple(dict.fromkeys(f for meaning in meanings for f in meaning.via)),
        next((meaning.address for meaning in meanings if meaning.address is not None), None),
    )
