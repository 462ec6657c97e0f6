"""What a name means at a place of a repository: the files that define it, through whatever passes it on.

A name is looked up in the modules that a file imports, among its peers (the other files of its package), and
in what it sees through star imports and includes. Aliases and chains of re-exports are followed; a name that
is only announced where it is found (a prototype) means the file that makes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from spark_udfs.depsort.fixtures import fixture_of
from spark_udfs.depsort.model import FileSymbols, Import, Language
from spark_udfs.depsort.type_chains import n_shared

MAX_DEFINERS = 5  # a name defined in more files says nothing about which is meant
MAX_HOPS = 32  # re-exports followed in one chain
MAX_INCLUDERS = 12  # files looked at for what a header knows from those that include it
MAX_SEEN = 4_000  # files followed through star imports of star imports


class Found(NamedTuple):
    """What a name means: its defining files, the files passed on the way, its place if it is a module."""

    files: tuple[int, ...]
    passed: tuple[int, ...] = ()
    place: str | None = None


class NameResolver:
    """The names of the files of one family of languages; numbers below are the files' positions by path."""

    def __init__(
        self,
        kinds: Sequence[Language],
        paths: Sequence[str],
        files: Sequence[FileSymbols],
        manifests: Mapping[str, str],
    ) -> None:
        self.languages = kinds  # of each file
        self.paths = paths
        self.files = files
        self.modules = kinds[0].modules(paths, files, manifests)
        self.bindings = [_bindings(file.imports) for file in files]
        self._stars = [[i for i in file.imports if i.name == "*"] for file in files]
        self._star_files: list[Sequence[Sequence[int]] | None] = [None] * len(files)
        self._found: dict[tuple[str, str], Found | None] = {}
        self._open: set[tuple[str, str]] = set()
        self._at: dict[str, frozenset[int]] = {}
        self.plain: dict[str, list[int]] = {}  # name -> the files that define or declare it
        self.makers: dict[str, list[int]] = {}  # name, also `Class.member`, -> the files that define it
        for index, file in enumerate(files):
            for name in file.definitions.keys() | file.declarations.keys():
                if "." not in name:
                    self.plain.setdefault(name, []).append(index)
                if name in file.definitions and name not in file.private:
                    self.makers.setdefault(name, []).append(index)
        self._fixtures = [fixture_of(path) for path in paths]
        self._bound = {name for bindings in self.bindings for name in bindings}
        self._includers: dict[int, list[int]] | None = None
        self.visible = lru_cache(1024)(self._seen_from)
        self.including = lru_cache(64)(self._files_including)

    def imported_name(self, place: str, name: str, hops: int = 0) -> Found | None:
        """`from place import name`: a name nothing is known of is taken to be made by the file itself."""
        found = self.lookup(place, name, hops)
        if found is None and len(files := self.modules.files(place)) == 1:
            return Found(tuple(files))
        return found

    def lookup(self, place: str, name: str, hops: int = 0) -> Found | None:
        """The meaning of `name` in the module at `place`."""
        if name not in self.plain and name not in self._bound:
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
        files = self.modules.files(place)
        if len(files) == 1:
            return self._in_file(files[0], name, hops)
        if place not in self._at:
            self._at[place] = frozenset(files)
        here = [f for f in self.plain.get(name, ()) if f in self._at[place]]
        return Found(self.with_makers(name, here)) if here else None

    def _in_file(self, file: int, name: str, hops: int) -> Found | None:
        own = self.files[file]
        meanings = []
        if name in own.definitions or name in own.declarations:
            meanings.append(Found(self.with_makers(name, [file])))
        meanings += self.passed_on(file, name, hops)
        if not meanings and (found := self.through_stars(file, name, hops)) is not None:
            meanings.append(Found(found.files, (file, *found.passed), found.place))
        return _union(meanings)

    def passed_on(self, file: int, name: str, hops: int) -> Iterator[Found]:
        """What the imports of `file` that bind `name` mean; the deferred ones if there are no others."""
        bindings = self.bindings[file].get(name, [])
        for item in [i for i in bindings if not i.deferred] or bindings:
            found = self.follow(item, file, hops + 1)
            if found is not None:
                yield Found(found.files, (file, *found.passed), found.place)

    def with_makers(self, name: str, files: Sequence[int]) -> tuple[int, ...]:
        """Those of `files`, where `name` was found, that make it; if all only announce it, those that do."""
        made = tuple(f for f in files if name in self.files[f].definitions)
        return made or tuple(self.makers_for(name, files)) or tuple(files)

    def makers_for(self, name: str, files: Sequence[int]) -> Sequence[int]:
        """The files that make what `files` announce: of several, one for each program, the nearest."""
        makers = self.makers.get(name, ())
        if len(makers) > 1:
            shared = {f: max(self.folders_shared(f, other) for other in files) for f in makers}
            most = max(shared.values())
            makers = [f for f in makers if shared[f] == most]
        return makers if len(makers) <= MAX_DEFINERS else ()

    def follow(self, item: Import, file: int, hops: int = 0) -> Found | None:
        """The meaning of the name that `item` binds in `file`."""
        module = item.module if item.alias or item.name else item.module.partition(".")[0]
        place = self.modules.place(module, file)
        if place is None:
            return None
        return self.imported_name(place, item.name, hops) if item.name else self.module(place)

    def through_stars(self, file: int, name: str, hops: int) -> Found | None:
        """What the files that `file` sees through star imports define or pass on under `name`."""
        seen = self.visible(file)
        if not seen:
            return None
        definers = [f for f in self.plain.get(name, ()) if f in seen and self._exported(f, name)]
        if definers:
            return Found(self.with_makers(name, definers), seen[definers[0]] if len(definers) == 1 else ())
        if name not in self._bound:
            return None
        for target in seen:
            if name in self.bindings[target] and self._exported(target, name):
                for found in self.passed_on(target, name, hops + 1):
                    return Found(found.files, (*seen[target], *found.passed), found.place)
        return None

    def known_before(self, file: int, name: str) -> Found | None:
        """What `file` knows by `name` from the files that include it, and from what else they include."""
        makers = self.makers.get(name, ())
        if not 0 < len(makers) <= MAX_DEFINERS or name in self.files[file].declarations:
            return None
        seen = [self.visible(includer) for includer in self.including(file)]
        here = [
            maker for maker in makers if any(maker in it for it in seen) and file not in self.visible(maker)
        ]
        return Found(tuple(here)) if here else None

    def announcers(self, file: int, name: str, makers: Sequence[int]) -> Sequence[int]:
        """The headers by whose prototypes `file` knows what others make."""
        if not self.languages[file].textual_imports or name in self.files[file].declarations:
            return ()
        seen = self.visible(file)
        if any(maker in seen for maker in makers):
            return ()
        found = [f for f in self.plain.get(name, ()) if f in seen and name in self.files[f].declarations]
        return found if len(found) <= MAX_DEFINERS else ()

    def _files_including(self, file: int) -> Sequence[int]:
        """The nearest files that include `file`, directly or through others, nearest first."""
        if self._includers is None:
            self._includers = {}
            for source in range(len(self.files)):
                for files in self._starred(source):
                    for target in files:
                        self._includers.setdefault(target, []).append(source)
        found = {file: None}
        for one in (pending := [file]):
            for source in self._includers.get(one, ()):
                if source not in found and len(found) <= MAX_INCLUDERS:
                    found[source] = None
                    pending.append(source)
        return list(found)[1:]

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
            places = (self.modules.place(item.module, file) for item in self._stars[file])
            found = [self.modules.files(place) for place in places if place is not None]
            self._star_files[file] = found
        return found

    def _exported(self, file: int, name: str) -> bool:
        exports = self.files[file].exports
        if exports is not None:
            return name in exports
        return not (name.startswith("_") and self.languages[file].underscore_hides)

    def _submodule(self, place: str, name: str) -> Found | None:
        below = self.modules.inside(place, name)
        return None if below is None else self.module(below)

    def module(self, place: str) -> Found:
        return Found(tuple(self.modules.files(place)), (), place)

    def among_peers(self, index: int, name: str) -> Found | None:
        """The files that define `name` among those that `index` sees without an import."""
        definers = self.plain.get(name)
        peers = self.modules.peers(index) if definers else ()
        if not definers or not peers:
            return None
        here = [f for f in definers if f in peers and f != index and name not in self.files[f].private]
        near = self.nearest(index, here)
        return Found(self.with_makers(name, near)) if near else None

    def within_reach(self, index: int, file: int) -> bool:
        """Whether a name that nothing imports may mean `file`, which another test fixture's never does."""
        return self._fixtures[file] in (None, self._fixtures[index]) and not self.modules.apart(index, file)

    def nearest(self, index: int, files: Sequence[int]) -> Sequence[int]:
        """Of `files` that make one name without an import, those that share most folders with `index`."""
        found = [f for f in files if self.within_reach(index, f)]
        if len(found) < 2:
            return found
        shared = [self.folders_shared(index, f) for f in found]
        most = max(shared)
        return [f for f, n in zip(found, shared, strict=True) if n == most]

    def walk(self, found: Found | None, parts: Sequence[str]) -> tuple[Found | None, int]:
        """Where a chain that starts at `found` leads, and how many of its parts were followed."""
        length = 1
        while found is not None and found.place is not None and length < len(parts):
            below = self.lookup(found.place, parts[length])
            if below is None:
                break
            found, length = below, length + 1
        return found, length

    def folders_shared(self, one: int, other: int) -> int:
        return n_shared(self.paths[one].split("/")[:-1], self.paths[other].split("/")[:-1])


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
