"""The files that a chain of names passes through, found from the types that files declare.

`Context.engine.pool` starts at a type, a function or a variable that the file can name, and goes on to
members of whatever type the step before has. What a file says of the types of its own definitions
(`FileSymbols.types`, `FileSymbols.bases`) are chains again, read in that file; so a call on a value whose
type is declared in another file leads to the file that defines the method, through embedded types and base
classes. No expression is checked: collections stand for their elements and functions for their results.

A chain that leaves the repository ends there. One that stops at a value of unknown type leaves the rest to
be guessed by the names of members.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from spark_udfs.depsort.model import FileSymbols, Import, Modules

MAX_DEPTH = 12  # types of types of types; bases of bases
MAX_VARIANTS = 8  # files that define one name, as for several systems
HOLDS = "~"  # before a chain: a container of such values, whose own members lead to them
EXTENSION = "this"  # the owner of definitions that any value may be asked for
A_TYPE = ":"  # before a name in a type's position, which means no field and no method
INSIDE = "/"  # between the class a name is written in and the name, where the class may inherit it


class Entity(NamedTuple):
    """A definition: its name as its files write it, and those files. No name: the module at `place`.

    `holds` marks a container of such values: what is no member of theirs is one of its own.
    """

    name: str
    files: tuple[int, ...]
    place: str | None = None
    holds: bool = False


class Walk(NamedTuple):
    """The steps of a chain, each a dotted prefix with its files, and how it ended.

    `end` is None where every step was found, `external` where it left the repository, `builtin`, or
    `unknown` where what comes next could be anybody's; `outside` is the chain up to there.
    """

    steps: tuple[tuple[str, tuple[int, ...]], ...]
    end: str | None = None
    outside: str = ""


class TypedChains:
    """Chains of one repository; files are numbered as in `Modules`."""

    def __init__(
        self,
        modules: Modules,
        paths: Sequence[str],
        files: Sequence[FileSymbols],
        builtins: Sequence[frozenset[str]],
    ) -> None:
        self._modules = modules
        self._files = files
        self._folders = [path.split("/")[:-1] for path in paths]
        self._builtins = builtins  # of each file
        self._definers: dict[str, list[int]] = {}
        for index, file in enumerate(files):
            for name in file.definitions:
                self._definers.setdefault(name, []).append(index)
        self._has_extensions = any(name.startswith(f"{EXTENSION}.") for name in self._definers)
        self._bindings: list[dict[str, list[Import]] | None] = [None] * len(files)
        self._roots: dict[tuple[int, str], Entity | str | None] = {}
        self._types: dict[tuple[str, tuple[int, ...]], Entity | str | None] = {}
        self._bases: dict[tuple[str, tuple[int, ...]], tuple[Entity, ...]] = {}
        self._members: dict[tuple[str, tuple[int, ...], str], Entity | None] = {}

    def walk(self, index: int, chain: str) -> Walk:
        """What the chain `chain`, as a reference of file `index` has it, passes through."""
        steps: list[tuple[str, tuple[int, ...]]] = []
        found, used, parts = self._first(index, chain, 0)
        while isinstance(found, Entity):
            if not found.holds or not steps:
                steps.append((".".join(parts[:used]), found.files))
            if used == len(parts):
                return Walk(tuple(steps))
            found, used = self._step(found, parts[used], index, 0), used + 1
        for name in parts[max(used - 1, 1) :] if self._has_extensions else ():
            added = self.extension(index, name)
            if added is not None:
                steps.append((name, added.files))
        return Walk(tuple(steps), found or "unknown", ".".join(parts[:used]))

    def extension(self, index: int, name: str, depth: int = 0) -> Entity | None:
        """What file `index` sees that adds a member `name` to the values of other types."""
        if not self._has_extensions or f"{EXTENSION}.{name}" not in self._definers:
            return None
        bound = name if name in self._bindings_of(index) else f"{EXTENSION}.{name}"
        found = self._root(index, bound, depth)
        return found if isinstance(found, Entity) else None

    def imported(self, index: int, item: Import) -> tuple[bool, tuple[int, ...]]:
        """Whether an import lies inside the repository, and the files of the definition it names.

        One that names a package has no files but where it binds nothing and so is there for what they do.
        """
        if item.name == "*":
            owner = self._class_at(index, item.module)
            inside = owner is not None or self._modules.place(item.module, index) is not None
            return inside, owner.files if owner else ()
        found = self._nearest(index, self._imported(index, item, 0))
        if found is None:
            return False, ()
        return True, found.files if found.name or item.alias == "" else ()

    # Where a chain starts

    def _first(self, index: int, chain: str, depth: int) -> tuple[Entity | str | None, int, list[str]]:
        """The first entity of a chain, how many parts name it, and the parts."""
        held = chain.startswith(HOLDS)
        written_in, _, chain = chain.lstrip(HOLDS).rpartition(INSIDE)
        as_type = chain.startswith(A_TYPE)
        parts = chain.removeprefix(A_TYPE).split(".")
        found, used = self._start(index, written_in, parts, depth, as_type)
        return (found._replace(holds=True) if held and isinstance(found, Entity) else found), used, parts

    def _start(
        self, index: int, written_in: str, parts: Sequence[str], depth: int, as_type: bool
    ) -> tuple[Entity | str | None, int]:
        """The first entity of a chain and how many parts name it; else `external`, `builtin` or None."""
        while written_in:
            inherited = self._member(Entity(written_in, (index,)), parts[0], index, depth)
            if inherited is not None and not (as_type and self._is_value(inherited)):
                return inherited, 1
            written_in = written_in.rpartition(".")[0]
        found = self._root(index, parts[0], depth)
        used = 1
        if found is None:
            found, used = self._qualified(index, parts)
        while isinstance(found, Entity) and not found.name:
            if used == len(parts):
                return found, used
            found = self._in_module(found, parts[used])
            used += 1
        return found, used

    def _is_value(self, entity: Entity) -> bool:
        """Whether a definition has a type and so is none."""
        return any(entity.name in self._files[file].types for file in entity.files)

    def _root(self, index: int, name: str, depth: int) -> Entity | str | None:
        key = index, name
        if key not in self._roots:
            self._roots[key] = None  # a name that leads to itself leads nowhere
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
                found = self._nearest(index, self._imported(index, item, depth))
                if found is not None:
                    return found
                outside = True
            if outside:
                return "external"
        among = self._nearest(index, self._entity_among(name, self._modules.peers(index)))
        if among is not None:
            return among
        for item in self._files[index].imports:
            found = self._starred(index, item, name, depth) if item.name == "*" else None
            if found is not None:
                return self._nearest(index, found)
        return "builtin" if name in self._builtins[index] else None

    def _imported(self, index: int, item: Import, depth: int) -> Entity | None:
        place = self._modules.place(item.module, index)
        if item.name is None:
            if place is None:
                return self._class_at(index, item.module)
            return Entity("", tuple(self._modules.files(place)), place)
        if place is None:
            owner = self._class_at(index, item.module)
            return self._member(owner, item.name, index, depth) if owner else None
        return self._in_module(Entity("", tuple(self._modules.files(place)), place), item.name)

    def _starred(self, index: int, item: Import, name: str, depth: int) -> Entity | None:
        """What `import a.b.*` means by `name`, where `a.b` is a module or a class."""
        place = self._modules.place(item.module, index)
        if place is not None:
            return self._entity_among(name, self._modules.files(place))
        owner = self._class_at(index, item.module)
        return self._member(owner, name, index, depth) if owner else None

    def _nearest(self, index: int, entity: Entity | None) -> Entity | None:
        """The definition in the files nearest in the tree of folders: a copy of a class is not meant."""
        if entity is None or not entity.name or len(entity.files) == 1:
            return entity
        here = self._folders[index]
        shared = [n_shared(here, self._folders[file]) for file in entity.files]
        most = max(shared)
        nearest = [f for f, n in zip(entity.files, shared, strict=True) if n == most]
        return entity._replace(files=tuple(nearest))

    def _class_at(self, index: int, dotted: str) -> Entity | None:
        """The class `a.b.Outer.Inner`, where `a.b` is a module."""
        found, used = self._qualified(index, dotted.split("."))
        whole = isinstance(found, Entity) and found.name and used == dotted.count(".") + 1
        return found if whole else None

    def _qualified(self, index: int, parts: Sequence[str]) -> tuple[Entity | None, int]:
        for length in range(len(parts) - 1, 0, -1):
            place = self._modules.place(".".join(parts[:length]), index)
            if place is None:
                continue
            found = self._in_module(Entity("", tuple(self._modules.files(place)), place), parts[length])
            used = length + 1
            while found is not None and used < len(parts):
                below = self._entity_among(f"{found.name}.{parts[used]}", found.files)
                if below is None:
                    break
                found, used = below, used + 1
            if found is not None:
                return found, used
        return None, 1

    def _in_module(self, module: Entity, name: str) -> Entity | None:
        found = self._entity_among(name, module.files)
        if found is None and module.place is not None:
            below = self._modules.inside(module.place, name)
            if below is not None:
                return Entity("", tuple(self._modules.files(below)), below)
        return found

    def _entity_in(self, index: int, name: str) -> Entity | None:
        return Entity(name, (index,)) if name in self._files[index].definitions else None

    def _entity_among(self, name: str, files: Collection[int]) -> Entity | None:
        definers = self._definers.get(name)
        if definers is None:
            return None
        here = [f for f in definers if f in files]
        return Entity(name, tuple(here)) if 0 < len(here) <= MAX_VARIANTS else None

    def _bindings_of(self, index: int) -> dict[str, list[Import]]:
        bindings = self._bindings[index]
        if bindings is None:
            bindings = self._bindings[index] = {}
            for item in self._files[index].imports:
                if name := item.binds:
                    bindings.setdefault(name, []).append(item)
            for name, item in self._declared_names(index):
                if name not in bindings:
                    bindings[name] = [item]
        return bindings

    def _declared_names(self, index: int) -> Iterator[tuple[str, Import]]:
        """What packages call themselves, as far as it is not what the import was taken to bind."""
        for item in self._files[index].imports:
            if item.name is None and (place := self._modules.place(item.module, index)) is not None:
                for file in self._modules.files(place)[:1]:
                    package = self._files[file].package
                    if package and package != item.binds and "." not in package:
                        yield package, item

    # From one step to the next

    def _step(self, entity: Entity, name: str, index: int, depth: int) -> Entity | str | None:
        """Member `name` of an entity or of its type; else how the chain ends."""
        found = self._member(entity, name, index, depth)
        if found is not None:
            return found
        of_type = self._type(entity, depth)
        if isinstance(of_type, Entity):
            found = self._member(of_type, name, index, depth)
        if found is None:
            found = self.extension(index, name, depth)
        if found is None and isinstance(of_type, Entity):
            return of_type if of_type.holds else None
        return found or (entity if entity.holds else of_type)

    def _type(self, entity: Entity, depth: int) -> Entity | str | None:
        """The type of a value or of a function's result."""
        key = entity.name, entity.files
        if key not in self._types:
            self._types[key] = None  # a type that leads to itself is none
            for file in entity.files:
                chain = self._files[file].types.get(entity.name)
                found = self._reach(file, chain, depth + 1) if chain else None
                if found is not None:
                    self._types[key] = found
                    break
        return self._types[key]

    def _reach(self, index: int, chain: str, depth: int) -> Entity | str | None:
        """The type at the end of a chain written in file `index`."""
        if depth > MAX_DEPTH:
            return None
        found, used, parts = self._first(index, chain, depth)
        while isinstance(found, Entity) and used < len(parts):
            found, used = self._step(found, parts[used], index, depth + 1), used + 1
        if isinstance(found, Entity):
            further = self._type(found, depth + 1)
            return found if further is None else further
        return found

    def _member(self, owner: Entity, name: str, index: int, depth: int) -> Entity | None:
        """Member `name` of a type, as file `index` sees it, or of what the type is made from."""
        key = owner.name, owner.files, name
        if key not in self._members:
            self._members[key] = None
            self._members[key] = self._find_member(owner, name, depth)
        found = self._members[key]
        if found is None:
            peers = self._modules.peers(index)
            if any(file in peers for file in owner.files):  # what tests add to the types they test
                found = self._entity_among(f"{owner.name}.{name}", peers)
        return found

    def _find_member(self, owner: Entity, name: str, depth: int) -> Entity | None:
        member = f"{owner.name}.{name}"
        found = self._entity_among(member, owner.files)
        if found is None and owner.files:
            found = self._entity_among(member, self._modules.peers(owner.files[0]))
        if found is not None or depth > MAX_DEPTH:
            return found
        for base in self._bases_of(owner, depth):
            found = self._member(base, name, base.files[0], depth + 1)
            if found is not None:
                return found
        return None

    def _bases_of(self, owner: Entity, depth: int) -> tuple[Entity, ...]:
        key = owner.name, owner.files
        if key not in self._bases:
            self._bases[key] = ()
            chains = [
                (file, chain) for file in owner.files for chain in self._files[file].bases.get(owner.name, ())
            ]
            reached = (self._reach(file, chain, depth + 1) for file, chain in chains)
            self._bases[key] = tuple(it for it in reached if isinstance(it, Entity) and it.files)
        return self._bases[key]


def n_shared(one: Sequence[str], other: Sequence[str]) -> int:
    """How many folders two files have in common, from the top."""
    for number, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return number
    return min(len(one), len(other))
