"""A store in memory that always answers, for routines that a test steps through by hand."""

from __future__ import annotations

from typing import Any, TypeVar

from blender.global_batches.log.operations import (
    Create,
    Creation,
    Delete,
    Get,
    GetAll,
    List,
    Operation,
    Put,
    Routine,
)

Result = TypeVar("Result")


class MemoryStore:
    """Objects by their names."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}

    def answer(self, operation: Operation) -> Any:
        """Perform one operation."""
        match operation:
            case Get(name):
                return self.objects.get(name)
            case GetAll(names):
                return [self.objects.get(name) for name in names]
            case Create(name, body):
                if name in self.objects:
                    return Creation.TAKEN
                self.objects[name] = body
                return Creation.STORED
            case Put(name, body):
                self.objects[name] = body
            case Delete(deleted_names):
                for name in deleted_names:
                    self.objects.pop(name, None)
            case List(prefix):
                return [name for name in self.objects if name.startswith(prefix)]
        return None

    def run(self, routine: Routine[Result]) -> Result:
        """Run a routine to its end."""
        return Stepped(self, routine).finish()


class Stepped:
    """A routine of one process, performed up to the operation that a test names."""

    def __init__(self, store: MemoryStore, routine: Routine[Any]) -> None:
        self.store, self.routine = store, routine
        self.waits_for: Operation | None = None
        self.result: Any = None
        self.performed: list[Operation] = []
        self._send(None)

    def until(self, kind: type[Operation], name: str = "") -> Stepped:
        """Perform operations until the next one is of a kind, on a name; it is not performed yet."""
        while not (isinstance(self.waits_for, kind) and getattr(self.waits_for, "name", "").startswith(name)):
            self.step()
        return self

    def step(self) -> None:
        """Perform one operation."""
        assert self.waits_for is not None, "the routine has ended"
        self.performed.append(self.waits_for)
        self._send(self.store.answer(self.waits_for))

    def finish(self) -> Any:
        """Perform the rest; the result of the routine."""
        while self.waits_for is not None:
            self.step()
        return self.result

    def _send(self, answer: Any) -> None:
        try:
            self.waits_for = self.routine.send(answer)
        except StopIteration as end:
            self.waits_for, self.result = None, end.value
