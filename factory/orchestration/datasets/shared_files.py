"""Files that two datasets read: their documents are the same, twice in a lake and in a blend of both."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from factory.counted import counted
from spark_udfs.ingest.place import Place


def whole_address(place: Place, name: bytes) -> bytes:
    """Return the address of a file below a canonical place, with the query of a web address."""
    return os.fsencode(place.display(name))


@dataclass
class SharedFiles:
    """How many files two datasets share, and one of them."""

    example: bytes
    n_files: int = 0


def shared_file_warnings(
    files_by_dataset: Mapping[str, Iterable[tuple[Place, bytes]]], folder: bytes
) -> Iterator[str]:
    """Yield a sentence for each pair of datasets that read the same files, names below canonical places.

    The example is named relative to `folder`. Links are no documents, so they do not count.
    """
    readers_of: dict[bytes, tuple[str, ...]] = {}
    by_pair: dict[tuple[str, str], SharedFiles] = {}
    for dataset, files in files_by_dataset.items():
        for place, name in files:
            path = whole_address(place, name)
            readers = readers_of.get(path, ())
            if readers and place.is_link(name):
                continue
            for reader in readers:
                by_pair.setdefault((reader, dataset), SharedFiles(path)).n_files += 1
            readers_of[path] = (*readers, dataset)
    for (first, second), common in by_pair.items():
        example = os.fsdecode(common.example.removeprefix(folder + b"/"))
        which = f"`{example}`"
        if common.n_files > 1:
            which = f"{counted(common.n_files, 'file')}, such as {which}"
        yield (
            f"`{first}` and `{second}` both read {which}. Give each dataset files of its own; for other "
            f"filters of the same documents, give `{first}` a variant (`variants`)."
        )
