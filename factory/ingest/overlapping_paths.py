"""The refusal of overlapping paths: a file that two paths of a dataset read would become two documents.

A path inside another one is no fault by itself, because patterns may leave its files to the inner path.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from factory.errors import ConfigurationError
from spark_udfs.ingest.address import place_of
from spark_udfs.ingest.place import Place


def refuse_overlap(paths: Iterable[str | Path | Place], files: Iterable[tuple[bytes, bytes]]) -> None:
    """Raise ConfigurationError if a file is read twice because one path is inside another.

    `files` are the address of a place and a name below it, once for each path that reads the file.
    """
    places = {place.address: place for place in map(place_of, paths)}
    if all(places.keys().isdisjoint(_addresses_above(address)) for address in places):
        return
    names: set[bytes] = set()
    for folder, name in files:
        file = folder + b"/" + name
        if file in names:
            around = (address for address in (file, *_addresses_above(file)) if address in places)
            inner, outer = (places[address].display() for address in islice(around, 2))
            raise ConfigurationError(
                f"`{inner}` is inside `{outer}`, and both paths read `{os.fsdecode(name)}`, which would be "
                "two documents. Name one of the two paths."
            )
        names.add(file)


def _addresses_above(address: bytes) -> Iterator[bytes]:
    """Yield the addresses above one, the innermost first."""
    while b"/" in address.rstrip(b"/"):
        address = address.rpartition(b"/")[0] or b"/"
        yield address
