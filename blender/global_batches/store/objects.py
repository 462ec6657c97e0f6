"""The objects of a namespace as the driver needs them, in a folder or in a bucket."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from blender.global_batches.log.operations import Creation


class NoAnswer(Exception):
    """The store did not answer, and may answer the same request later; the text is the cause.

    A create may have been carried out all the same.
    """


class Objects(Protocol):
    """The objects below one address; every name is relative to it.

    Every method raises NoAnswer, and a FactoryError of one sentence for a refusal that waiting cannot mend.
    """

    place: str
    """The subject of sentences about this store."""

    def get(self, name: str) -> bytes | None:
        """The bytes of an object; None if the store says that nothing has the name."""

    def get_all(self, names: Sequence[str]) -> list[bytes | None]:
        """The answers of `get` for each name, asked for at once where that is faster."""

    def read(self, name: str, offset: int, length: int) -> memoryview | None:
        """At most `length` bytes from `offset` on, fewer where the object ends; None as for `get`."""

    def create(self, name: str, body: bytes) -> Creation:
        """Store an object unless the name is taken, in one try.

        UNCLEAR if the store says so, at once; NoAnswer, after which the caller pauses, if it says nothing.
        """

    def put(self, name: str, body: bytes) -> None:
        """Store an object, or replace it."""

    def delete(self, names: Sequence[str]) -> None:
        """Remove the objects that exist; after an error some may be left."""

    def list(self, prefix: str) -> list[str]:
        """The names that begin with `prefix`, in any order."""
