"""The files that a chain of names passes through, by the types that files declare.

`Context.engine.pool` starts at a type, a function or a variable that the file can name. Each further part is
a member of the type of the part before it. The types and bases of definitions (`FileSymbols.types`, `.bases`)
are chains too, resolved in the file that declares them. So a call on a value leads to the file that defines
the method, through embedded types and base classes, even if another file declares the type of the value.
Expressions are not type-checked: a collection has the type of its elements, a function the type of its
result.

A chain ends where it leaves the repository. Where it stops at a value of unknown type, extensions can still
define its further members.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from spark_udfs.depsort.definitions import Definitions, Entity
from spark_udfs.depsort.model import FileSymbols, Import, Modules

MAX_DEPTH = 12  # steps to types of types, and to bases of bases
HOLDS = "~"  # before a chain: a container of such values; its own members lead to them too
EXTENSION = "this"  # the owner of extensions, members that any value may have
A_TYPE = ":"  # before a name in a type's position, which never means a field or method
EXPECTED = "^"  # before a name that this file defines and another file of its package declares for it
INSIDE = "/"  # between a class and a name used in it that the class may inherit


class Walk(NamedTuple):
    """The steps of a chain, each a dotted prefix with its files, and how it ended.

    `end` is None where every step was found, `external` where the chain left the repository, `builtin`, or
    `unknown` where the next type is unknown. `outside` is the chain up to there.
    """

    steps: tuple[tuple[str, tuple[int, ...]], ...]
    end: str | None = None
    outside: str = ""


class TypedChains(Definitions):
    """The chains of one repository; files are numbered in order of path."""

    def __init__(
        self,
        modules: Modules,
        paths: Sequence[str],
        files: Sequence[FileSymbols],
        builtins: Sequence[frozenset[str]],
    ) -> None:
        super().__init__(modules, paths, files)
        self._builtins = builtins  # of each file
        self._has_extensions = any(name.startswith(f"{EXTENSION}.") for name in self._definers)
        self._declarers: dict[str, list[int]] = {}
        for index, file in enumerate(files):
            for name in file.declarations:
                self._declarers.setdefault(name, []).append(index)
        self._roots: dict[tuple[int, str], Entity | str | None] = {}
        self._types: dict[tuple[str, tuple[int, ...]], Entity | str | None] = {}
        self._bases: dict[tuple[str, tuple[int, ...]], tuple[Entity, ...]] = {}
        self._members: dict[tuple[str, tuple[int, ...], str], Entity | None] = {}

    def walk(self, index: int, chain: str) -> Walk:
        """The steps of a chain that file `index` refers to."""
        steps: list[tuple[str, tuple[int, ...]]] = []
        meaning, n_parts, parts = self._first(index, chain, 0)
        while isinstance(meaning, Entity):
            if not meaning.holds or not steps:
                steps.append((".".join(parts[:n_parts]), meaning.files))
            if n_parts == len(parts):
                return Walk(tuple(steps))
            meaning, n_parts = self._step(meaning, parts[n_parts], index, 0), n_parts + 1
        for name in parts[max(n_parts - 1, 1) :] if self._has_extensions else ():
            added = self.extension(index, name)
            if added is not None:
                steps.append((name, added.files))
        return Walk(tuple(steps), meaning or "unknown", ".".join(parts[:n_parts]))

    def extension(self, index: int, name: str, depth: int = 0) -> Entity | None:
        """The extension `name` that file `index` sees, None where it sees none."""
        if not self._has_extensions or f"{EXTENSION}.{name}" not in self._definers:
            return None
        bound = name if name in self._bindings_of(index) else f"{EXTENSION}.{name}"
        meaning = self._root(index, bound, depth)
        return meaning if isinstance(meaning, Entity) else None

    def imported(self, index: int, item: Import) -> tuple[bool, tuple[int, ...]]:
        """Whether an import names something in the repository, and the files of the definition it names.

        An import of a package has no files, except one that binds nothing: it runs the package's files.
        """
        if item.name == "*":
            owner = self._class_at(index, item.module)
            inside = owner is not None or self._modules.locate(item.module, index) is not None
            return inside, owner.files if owner else ()
        entity = self._nearest(index, self._imported(index, item, 0))
        if entity is None:
            return False, ()
        return True, entity.files if entity.name or item.alias == "" else ()

    def expected(self, index: int, name: str) -> tuple[int, ...]:
        """The nearest files of the package that declare a definition of file `index` without a body."""
        peers = self._modules.peers(index)
        files = tuple(file for file in self._declarers.get(name, ()) if file in peers and file != index)
        nearest = self._nearest(index, Entity(name, files)) if files else None
        return nearest.files if nearest else ()

    # Where a chain starts

    def _first(self, index: int, chain: str, depth: int) -> tuple[Entity | str | None, int, list[str]]:
        """The first entity of a chain, the number of parts that name it, and all parts."""
        holds = chain.startswith(HOLDS)
        written_in, _, chain = chain.lstrip(HOLDS).rpartition(INSIDE)
        as_type = chain.startswith(A_TYPE)
        parts = chain.removeprefix(A_TYPE).split(".")
        meaning, n_parts = self._start(index, written_in, parts, depth, as_type)
        if holds and isinstance(meaning, Entity):
            meaning = meaning._replace(holds=True)
        return meaning, n_parts, parts

    def _start(
        self, index: int, written_in: str, parts: Sequence[str], depth: int, as_type: bool
    ) -> tuple[Entity | str | None, int]:
        """The first entity of a chain (or `external`, `builtin`, None), and the number of parts naming it."""
        while written_in:
            inherited = self._member(Entity(written_in, (index,)), parts[0], index, depth)
            if inherited is not None and not (as_type and self._is_value(inherited)):
                return inherited, 1
            written_in = written_in.rpartition(".")[0]
        meaning = self._root(index, parts[0], depth)
        n_parts = 1
        if meaning is None:
            meaning, n_parts = self._qualified(index, parts)
        while isinstance(meaning, Entity) and not meaning.name:
            if n_parts == len(parts):
                return meaning, n_parts
            meaning = self._in_module(meaning, parts[n_parts])
            n_parts += 1
        return meaning, n_parts

    def _is_value(self, entity: Entity) -> bool:
        """Whether a definition has a type, so that it is not a type itself."""
        return any(entity.name in self._files[file].types for file in entity.files)

    def _root(self, index: int, name: str, depth: int) -> Entity | str | None:
        key = index, name
        if key not in self._roots:
            self._roots[key] = None  # ends the recursion of a name that leads to itself
            self._roots[key] = self._find_root(index, name, depth)
        return self._roots[key]

    def _find_root(self, index: int, name: str, depth: int) -> Entity | str | None:
        own = self._entity_in(index, name)
        if own is not None:
            return own
        bindings = self._bindings_of(index).get(name)
        if bindings:
            outside = False
            for item in bindings:
                entity = self._nearest(index, self._imported(index, item, depth))
                if entity is not None:
                    return entity
                outside = True
            if outside:
                return "external"
        among = self._nearest(index, self._entity_among(name, self._modules.peers(index)))
        if among is not None:
            return among
        for item in self._files[index].imports:
            entity = self._starred(index, item, name, depth) if item.name == "*" else None
            if entity is not None:
                return self._nearest(index, entity)
        return "builtin" if name in self._builtins[index] else None

    def _imported(self, index: int, item: Import, depth: int) -> Entity | None:
        address = self._modules.locate(item.module, index)
        if item.name is None:
            if address is None:
                return self._class_at(index, item.module)
            return Entity("", tuple(self._modules.files(address)), address)
        if address is None:
            owner = self._class_at(index, item.module)
            return self._member(owner, item.name, index, depth) if owner else None
        return self._in_module(Entity("", tuple(self._modules.files(address)), address), item.name)

    def _starred(self, index: int, item: Import, name: str, depth: int) -> Entity | None:
        """The meaning of `name` after `import a.b.*`, where `a.b` is a module or a class."""
        address = self._modules.locate(item.module, index)
        if address is not None:
            return self._entity_among(name, self._modules.files(address))
        owner = self._class_at(index, item.module)
        return self._member(owner, name, index, depth) if owner else None

    # From one step to the next

    def _step(self, entity: Entity, name: str, index: int, depth: int) -> Entity | str | None:
        """Member `name` of an entity or of its type, or how the chain ends there."""
        member = self._member(entity, name, index, depth)
        if member is not None:
            return member
        of_type = self._type(entity, depth)
        if isinstance(of_type, Entity):
            member = self._member(of_type, name, index, depth)
        if member is None:
            member = self.extension(index, name, depth)
        if member is None and isinstance(of_type, Entity):
            return of_type if of_type.holds else None
        return member or (entity if entity.holds else of_type)

    def _type(self, entity: Entity, depth: int) -> Entity | str | None:
        """The type of a value or of a function's result."""
        key = entity.name, entity.files
        if key not in self._types:
            self._types[key] = None  # ends the recursion of a type that leads to itself
            for file in entity.files:
                chain = self._files[file].types.get(entity.name)
                of_type = self._reach(file, chain, depth + 1) if chain else None
                if of_type is not None:
                    self._types[key] = of_type
                    break
        return self._types[key]

    def _reach(self, index: int, chain: str, depth: int) -> Entity | str | None:
        """The type at the end of a chain written in file `index`."""
        if depth > MAX_DEPTH:
            return None
        meaning, n_parts, parts = self._first(index, chain, depth)
        while isinstance(meaning, Entity) and n_parts < len(parts):
            meaning, n_parts = self._step(meaning, parts[n_parts], index, depth + 1), n_parts + 1
        if isinstance(meaning, Entity):
            further = self._type(meaning, depth + 1)
            return meaning if further is None else further
        return meaning

    def _member(self, owner: Entity, name: str, index: int, depth: int) -> Entity | None:
        """Member `name` of a type or of its bases, as file `index` sees it."""
        key = owner.name, owner.files, name
        if key not in self._members:
            self._members[key] = None
            self._members[key] = self._find_member(owner, name, depth)
        member = self._members[key]
        if member is None:
            peers = self._modules.peers(index)
            if any(file in peers for file in owner.files):  # members that tests add to the types they test
                member = self._entity_among(f"{owner.name}.{name}", peers)
        return member

    def _find_member(self, owner: Entity, name: str, depth: int) -> Entity | None:
        member = f"{owner.name}.{name}"
        entity = self._entity_among(member, owner.files)
        if entity is None and owner.files:
            entity = self._entity_among(member, self._modules.peers(owner.files[0]))
        if entity is not None or depth > MAX_DEPTH:
            return entity
        for base in self._bases_of(owner, depth):
            entity = self._member(base, name, base.files[0], depth + 1)
            if entity is not None:
                return entity
        return None

    def _bases_of(self, owner: Entity, depth: int) -> tuple[Entity, ...]:
        key = owner.name, owner.files
        if key not in self._bases:
            self._bases[key] = ()
            chains = [
                (file, chain) for file in owner.files for chain in self._files[file].bases.get(owner.name, ())
            ]
            reached = (self._reach(file, chain, depth + 1) for file, chain in chains)
            self._bases[key] = tuple(base for base in reached if isinstance(base, Entity) and base.files)
        return self._bases[key]
