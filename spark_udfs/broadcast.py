"""A value that Spark copies to every machine, for worker functions."""

from __future__ import annotations

from typing import Protocol, TypeVar

T_co = TypeVar("T_co", covariant=True)


class Shared(Protocol[T_co]):
    """An object with a `value`: a `SharedTable` of `factory.dedup.idf`, or any such object in a test."""

    @property
    def value(self) -> T_co:
        """The value, fetched once per worker."""
