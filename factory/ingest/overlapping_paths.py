"""The refusal of files that would become two documents, because two paths read them or a store lists two.

A path inside another one is no fault by itself, because patterns may leave its files to the inner path. A
bucket may hold `a`, `a/` and `/a`, which its client calls `a` all three.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from factory.errors import ConfigurationError
from spark_udfs.ingest.address import place_of
from spark_udfs.ingest.place import Place
from spark_udfs.ingest.remote.files import RemoteFiles


def refuse_overlap(paths: Iterable[str | Path | Place], files: Iterable[tuple[bytes, bytes]]) -> None:
    """Raise ConfigurationError if a file would be read twice.

    `files` are the address of a place and a name below it, once for each path that reads the file.
    """
    each_once = dict.fromkeys(map(place_of, paths))
    places = {place.address: place for place in each_once}
    is_remote = any(isinstance(place, RemoteFiles) for place in each_once)
    if not is_remote and all(places.keys().isdisjoint(_addresses_above(address)) for address in places):
        return
    names: set[bytes] = set()
    for folder, name in files:
        file = folder + b"/" + name
        if file in names:
            around = [address for address in (file, *_addresses_above(file)) if address in places]
            if len(around) < 2:
                raise ConfigurationError(
                    f"The store lists `{os.fsdecode(file)}` twice, because it also holds that name with a "
                    "slash before or behind it. Rename that object, or remove it."
                )
            inner, outer = (places[address].display() for address in around[:2])
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
