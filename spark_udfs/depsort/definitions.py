"""Lookup of a repository's definitions by name: in a file, a module or a set of files, without types."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from spark_udfs.depsort.fixtures import remoteness
from spark_udfs.depsort.model import FileSymbols, Import, Modules
from spark_udfs.depsort.paths import parent

MAX_VARIANTS = 8  # files that define one name, such as variants for several systems


class Entity(NamedTuple):
    """A definition: its name and its files. Without a name, the module at `address`.

    `holds` marks a container of such values: a member that they lack is the container's own.
    """

    name: str
    files: tuple[int, ...]
    address: str | None = None
    holds: bool = False


class Definitions:
    """The definitions of one repository; files are numbered in order of path."""

    def __init__(self, modules: Modules, paths: Sequence[str], files: Sequence[FileSymbols]) -> None:
        self._modules = modules
        self._files = files
        self._folders = [parent(path) for path in paths]
        self._definers: dict[str, list[int]] = {}
        for index, file in enumerate(files):
            for name in file.definitions:
                self._definers.setdefault(name, []).append(index)
        self._bindings: list[dict[str, list[Import]] | None] = [None] * len(files)

    def _nearest(self, index: int, entity: Entity | None) -> Entity | None:
        """The definition in the nearest folders: a reference never means another copy of a class."""
        if entity is None or not entity.name or len(entity.files) == 1:
            return entity
        here = self._folders[index]
        distances = [remoteness(self._folders[file], here) for file in entity.files]
        least = min(distances)
        nearest = [f for f, distance in zip(entity.files, distances, strict=True) if distance == least]
        return entity._replace(files=tuple(nearest))

    def _class_at(self, index: int, dotted: str) -> Entity | None:
        """The class `a.b.Outer.Inner`, where `a.b` is a module."""
        entity, n_parts = self._qualified(index, dotted.split("."))
        whole = isinstance(entity, Entity) and entity.name and n_parts == dotted.count(".") + 1
        return entity if whole else None

    def _qualified(self, index: int, parts: Sequence[str]) -> tuple[Entity | None, int]:
        """The definition that starts with a module's full name, and the number of parts that name it."""
        for length in range(len(parts) - 1, 0, -1):
            address = self._modules.locate(".".join(parts[:length]), index)
            if address is None:
                continue
            entity = self._in_module(Entity("", tuple(self._modules.files(address)), address), parts[length])
            n_parts = length + 1
            while entity is not None and n_parts < len(parts):
                below = self._entity_among(f"{entity.name}.{parts[n_parts]}", entity.files)
                if below is None:
                    break
                entity, n_parts = below, n_parts + 1
            if entity is not None:
                return entity, n_parts
        return None, 1

    def _in_module(self, module: Entity, name: str) -> Entity | None:
        """The definition or submodule `name` of a module."""
        entity = self._entity_among(name, module.files)
        if entity is None and module.address is not None:
            below = self._modules.submodule(module.address, name)
            if below is not None:
                return Entity("", tuple(self._modules.files(below)), below)
        return entity

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
            for binding in self._files[index].imports:
                if name := binding.binds:
                    bindings.setdefault(name, []).append(binding)
            for name, binding in self._declared_names(index):
                if name not in bindings:
                    bindings[name] = [binding]
        return bindings

    def _declared_names(self, index: int) -> Iterator[tuple[str, Import]]:
        """The imports of packages with another name than the import appears to bind."""
        for binding in self._files[index].imports:
            if binding.name is None and (address := self._modules.locate(binding.module, index)) is not None:
                for file in self._modules.files(address)[:1]:
                    package = self._files[file].package
                    if package and package != binding.binds and "." not in package:
                        yield package, binding
