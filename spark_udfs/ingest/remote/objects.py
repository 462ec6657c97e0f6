"""The objects of a bucket, a web server or a repository of the Hub: what `RemoteFiles` asks of each.

Objects are read by ranges, so a reader can seek, and a connection that breaks is continued where it broke.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol, TypeVar

from factory.errors import MachineError

TRIES = 5
_FIRST_PAUSE_S = 0.2
_MOST_PAUSE_S = 300  # the Hub counts requests by five minutes

T = TypeVar("T")


class RemoteFailure(MachineError):
    """A store or a server does not answer, and asking again did not help."""


class Interrupted(Exception):
    """An answer ended early, or there was none, and asking again may help; the message has the cause.

    `pause_s` is the time that the server wants to be left alone.
    """

    def __init__(self, cause: str, pause_s: float = 0) -> None:
        super().__init__(cause)
        self.pause_s = min(pause_s, _MOST_PAUSE_S)


class ObjectChanged(Exception):
    """An object is not the one that its state describes."""


class ObjectState(NamedTuple):
    """The facts that a store tells about an object without its content.

    `e_tag` is None for servers that have none. Without ranges a server gives an object from its begin only.
    """

    n_bytes: int
    e_tag: str | None
    modified_ns: int
    has_ranges: bool = True

    def is_other_than(self, before: ObjectState) -> bool:
        """Whether the object has changed since an earlier state."""
        if self.e_tag and before.e_tag:
            return (self.n_bytes, self.e_tag) != (before.n_bytes, before.e_tag)
        return (self.n_bytes, self.modified_ns) != (before.n_bytes, before.modified_ns)


class RemoteObjects(Protocol):
    """The objects at one root, such as `s3://bucket`; names are relative to it.

    Each method raises RemoteFailure if the store does not answer, and ConfigurationError if it refuses.
    """

    def state(self, name: str) -> ObjectState | None:
        """Return the state of an object, None if there is none."""

    def below(self, prefix: str) -> Iterator[tuple[str, ObjectState]]:
        """Yield the objects with names that begin with `prefix`, in the order of the store, as listed."""

    def folder(self, prefix: str) -> list[str]:
        """Return the names directly below `prefix`, which is empty or ends with `/`; folders end with `/`."""

    def obstacle(self, name: str) -> str | None:
        """Return why a name that was listed cannot be asked for, None if its object is gone."""

    def pieces(self, name: str, begin: int, end: int, state: ObjectState) -> Iterator[bytes]:
        """Yield the bytes from `begin` to `end` of an object with that state.

        Raises FileNotFoundError, ObjectChanged for another state, and Interrupted.
        """


def persistent(ask: Callable[[], T], address: str) -> T:
    """Return the answer, after a pause if it is interrupted; raises RemoteFailure after several tries."""
    for number in range(TRIES):
        pause(number)
        try:
            return ask()
        except Interrupted as interruption:
            cause = str(interruption)
            if number < TRIES - 1:
                time.sleep(interruption.pause_s)
    raise RemoteFailure(f"`{address}` does not answer ({cause}). Run again when it does, or correct it.")


def pause(n_tries: int) -> None:
    """Wait before another try, longer each time; not before the first."""
    if n_tries:
        time.sleep(_FIRST_PAUSE_S * 2 ** (n_tries - 1))
