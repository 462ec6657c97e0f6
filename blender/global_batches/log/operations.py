"""The five operations of an object store on which the protocol rests, and routines that ask for them.

    def newest(name: str) -> Routine[bytes]:
        body = yield from get(name)                     # bytes, or None if nothing has the name
        ...
    store.run(newest("floor/1"))                        # a driver answers each operation

A routine is a generator: it yields one operation at a time and is sent the answer. So the code that runs
against a store is also stepped through call by call, in any interleaving, by its tests.

Safety rests on reads by name and on `Create` alone. A `List` may forget names, and a `Put` or `Delete` may
take effect late or twice, without harm.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias, TypeVar

Result = TypeVar("Result")

_DELETED_AT_ONCE = 1000  # the most names of one request to S3


@dataclass(frozen=True, slots=True)
class Get:
    """Answered by the bytes of an object, or by None if nothing has the name."""

    name: str


@dataclass(frozen=True, slots=True)
class GetAll:
    """Answered by a list with the answer of `Get` for each name; they are asked for in any order."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Create:
    """Store an object unless the name is taken. Answered by a `Creation`."""

    name: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Put:
    """Store an object under a name that no other process uses. Answered by None."""

    name: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove the objects that exist, in any order. Answered by None once all of them are gone."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class List:
    """Answered by names that begin with `prefix`, in any order; some may be missing from the answer."""

    prefix: str


class Creation(Enum):
    """The store's answer to a create. Only `STORED` is believed: after the others the name is read back."""

    STORED = "stored"
    TAKEN = "taken"
    UNCLEAR = "unclear"


Operation: TypeAlias = Get | GetAll | Create | Put | Delete | List
Routine: TypeAlias = Generator[Operation, Any, Result]


def get(name: str) -> Routine[bytes | None]:
    """The bytes of an object, or None."""
    body: bytes | None = yield Get(name)
    return body


def get_all(names: Sequence[str]) -> Routine[list[bytes | None]]:
    """The bytes of each object, or None; one request a name, all at once."""
    bodies: list[bytes | None] = yield GetAll(tuple(names))
    return bodies


def put(name: str, body: bytes) -> Routine[None]:
    """Store an object under a name of one's own."""
    yield Put(name, body)


def delete(names: Iterable[str]) -> Routine[None]:
    """Remove objects, 1,000 a request."""
    remaining = list(names)
    while remaining:
        yield Delete(tuple(remaining[:_DELETED_AT_ONCE]))
        del remaining[:_DELETED_AT_ONCE]


def list_names(prefix: str) -> Routine[list[str]]:
    """Names that begin with `prefix`; some may be missing."""
    names: list[str] = yield List(prefix)
    return names


class Verdict(Enum):
    """The owner of the object under a created name."""

    OURS = "ours"
    NOT_OURS = "not ours"
    UNKNOWN = "unknown"
    """Nothing has the name: the request was lost, or is late and may still arrive."""


def create(name: str, body: bytes) -> Routine[Verdict]:
    """Store an object unless the name is taken, and find the owner of its object.

    An error of a store does not tell the winner: if the store's own client repeats a request after a lost
    answer, it reports a taken name. So the name is read back.
    """
    creation: Creation = yield Create(name, body)
    if creation is Creation.STORED:
        return Verdict.OURS
    stored = yield from get(name)
    if stored is None:
        return Verdict.UNKNOWN
    return Verdict.OURS if stored == body else Verdict.NOT_OURS


def ensure(name: str, body: bytes) -> Routine[None]:
    """Store an object, unless another process has, and know that one is there."""
    while (yield from create(name, body)) is Verdict.UNKNOWN:
        pass
