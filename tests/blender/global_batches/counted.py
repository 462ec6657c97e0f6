"""A reader whose requests a test counts."""

from __future__ import annotations

from collections import Counter
from typing import Any

from blender.global_batches.reader import BatchReader
from blender.global_batches.store.namespace_store import NamespaceStore


class Requests:
    """The ranges that were read of objects, and the operations of routines; patched into a store."""

    def __init__(self, store: NamespaceStore) -> None:
        self.ranges: list[tuple[str, int, int]] = []
        self.operations: Counter[str] = Counter()
        self._read, self._answer = store.read, store._answer
        store.read = self._counted_read  # type: ignore[method-assign]
        store._answer = self._counted_answer  # type: ignore[method-assign]

    def _counted_read(self, name: str, offset: int, length: int) -> memoryview | None:
        self.ranges.append((name, offset, length))
        return self._read(name, offset, length)

    def _counted_answer(self, operation: Any) -> Any:
        names = getattr(operation, "names", None) or (getattr(operation, "name", "") or operation.prefix,)
        self.operations.update(name.partition("/")[0] for name in names)
        return self._answer(operation)


def counted(reader: BatchReader) -> Requests:
    """Count the requests of a reader from now on."""
    return Requests(reader._store)
