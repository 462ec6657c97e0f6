"""A value that Spark brings to every machine, as the functions of the workers see it."""

from __future__ import annotations

from typing import Protocol, TypeVar

T_co = TypeVar("T_co", covariant=True)


class Shared(Protocol[T_co]):
    """Something with a `value`: a `SharedTable` of `factory.dedup.idf`, or in a test any such object."""

    @property
    def value(self) -> T_co:
        """The value, fetched once a worker."""
