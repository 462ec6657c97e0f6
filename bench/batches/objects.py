"""Objects of a namespace for benches: in memory, where a long log is made, and counted, where it is read."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from blender.global_batches.log.operations import Creation
from blender.global_batches.store.folder import Folder


class Memory:
    """Objects by their names."""

    place = "The memory"

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}

    def get(self, name: str) -> bytes | None:
        """The bytes of an object, or None."""
        return self.objects.get(name)

    def get_all(self, names: Sequence[str]) -> list[bytes | None]:
        """The bytes of each object, or None."""
        return [self.objects.get(name) for name in names]

    def read(self, name: str, offset: int, length: int) -> memoryview | None:
        """At most `length` bytes from `offset` on, or None."""
        body = self.objects.get(name)
        return None if body is None else memoryview(body)[offset : offset + length]

    def create(self, name: str, body: bytes) -> Creation:
        """Store an object unless the name is taken."""
        return Creation.STORED if self.objects.setdefault(name, body) is body else Creation.TAKEN

    def put(self, name: str, body: bytes) -> None:
        """Store an object, or replace it."""
        self.objects[name] = body

    def delete(self, names: Sequence[str]) -> None:
        """Remove objects."""
        for name in names:
            self.objects.pop(name, None)

    def list(self, prefix: str) -> list[str]:
        """The names that begin with `prefix`."""
        return [name for name in self.objects if name.startswith(prefix)]


@dataclass
class Calls:
    """What was read from a store."""

    requests: int = 0
    """Names that were asked for, also those that nothing has, and lists."""
    round_trips: int = 0
    """Waits for an answer; requests that are sent at once are one."""
    n_bytes: int = 0


class CountedFolder(Folder):
    """A folder whose reads of whole objects are counted, and its lists."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.calls = Calls()

    def get_all(self, names: Sequence[str]) -> list[bytes | None]:
        """Count and pass on; `get` is one of these."""
        bodies = super().get_all(names)
        self._count(len(names), sum(len(body) for body in bodies if body is not None))
        return bodies

    def list(self, prefix: str) -> builtins.list[str]:
        """Count and pass on."""
        names = super().list(prefix)
        self._count(1, sum(map(len, names)))
        return names

    def _count(self, requests: int, n_bytes: int) -> None:
        self.calls.requests += requests
        self.calls.round_trips += 1
        self.calls.n_bytes += n_bytes
