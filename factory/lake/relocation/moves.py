"""Locations of files before and after a move of their warehouse."""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass

from factory.lake.files.location import SCHEME, local_path

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_OF_A_TABLE = re.compile(r"(.+)/[^/]+/[^/]+/metadata/[^/]+")  # warehouse, namespace, table


@dataclass(frozen=True)
class Move:
    """A move of a warehouse from the locations `old`, several spellings of one place, to `new`.

    Locations have no trailing slash. A local location keeps its scheme: `file:/old/x` becomes `file:/new/x`.
    """

    old: tuple[str, ...]
    new: str

    def moved(self, location: str) -> str:
        """Return a location after the move; one outside the old warehouse stays."""
        rest = self._rest(location)
        if rest is None:
            return location
        folder = local_path(self.new)
        if folder is None or local_path(location) is None:
            return self.new + rest
        return _scheme(location) + folder + rest

    def origins(self, location: str) -> list[str]:
        """Return the locations that move to `location`: one per spelling of the old warehouse."""
        return [Move((self.new,), old).moved(location) for old in self.old]

    def concerns(self, location: str) -> bool:
        """Whether a location is in the old warehouse."""
        return self._rest(location) is not None

    def renamed(self, location: str) -> str:
        """Return the moved location of a file that is rewritten, with a name that no other file has.

        The same file gets the same name in every attempt, so that an attempt after a killed one leaves
        nothing behind.
        """
        moved = self.moved(location)
        folder, _, name = moved.rpartition("/")
        fresh = str(uuid.uuid5(uuid.NAMESPACE_URL, spelled_alike(moved)))
        new_name = _UUID.sub(fresh, name, count=1)
        return f"{folder}/{new_name if new_name != name else f'{fresh}-{name}'}"

    def _rest(self, location: str) -> str | None:
        """Return the path of a location in the old warehouse, None for a location elsewhere."""
        if _below(location, self.new) is not None:
            return None
        rests = (_below(location, old) for old in self.old)
        return next((rest for rest in rests if rest is not None), None)


def spelled_alike(location: str) -> str:
    """Return one spelling for all locations of a file: engines write `file:/x` and `file:///x`."""
    return local_path(location) or location


def warehouse_of(metadata_location: str) -> str | None:
    """Return the warehouse that the location of a table's metadata file is in, None for an unusual one."""
    match = _OF_A_TABLE.fullmatch(metadata_location)
    return match[1] if match else None


def is_inside(location: str, warehouse: str) -> bool:
    """Whether a location is in a warehouse, by its text."""
    return _below(location, warehouse) is not None


def _below(location: str, warehouse: str) -> str | None:
    """Return the part of `location` after `warehouse`, empty or with its slash; None if it is elsewhere."""
    file, folder = local_path(location), local_path(warehouse)
    if (file is None) != (folder is None):
        return None
    whole, prefix = (location, warehouse) if file is None or folder is None else (file, folder)
    rest = whole.removeprefix(prefix)
    return rest if whole.startswith(prefix) and (not rest or rest.startswith("/")) else None


def _scheme(location: str) -> str:
    if location.startswith(SCHEME):
        return SCHEME
    return "file:" if location.startswith("file:") else ""
