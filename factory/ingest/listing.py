"""Items of work for the executors: the files to read, their folder, and the origin of their documents.

The driver lists names, and opens no file but `.json.gz` and the like in folders of records: their first line
tells a list from records. It lists links but never follows them, so that a loop of links ends and
the reader records the link itself as rejected.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice

import pyarrow as pa

from factory.errors import ConfigurationError
from spark_udfs.ingest.globs import compiled
from spark_udfs.ingest.json_document import is_json_document
from spark_udfs.ingest.place import FilePart, Place
from spark_udfs.ingest.remote.files import RemoteFiles
from spark_udfs.ingest.rows import Origin
from spark_udfs.ingest.work import WORK

NAMES_PER_ITEM = 64  # text files; a file of many records is one item
UNWANTED = ("**/.git/**", "**/.git", "**/__pycache__/**")


@dataclass(frozen=True)
class Work:
    """Files of a place that one reader turns into documents of one origin, or a part of one file."""

    format: str
    origin: Origin
    place: Place
    names: tuple[bytes, ...]
    part: FilePart | None = None


def in_items(format: str, origin: Origin, place: Place, names: Iterable[bytes], size: int) -> Iterator[Work]:
    """Yield items of `size` names each, in order."""
    rest = iter(names)
    while chunk := tuple(islice(rest, size)):
        yield Work(format, origin, place, chunk)


def first_names(work: Iterable[Work], limit: int | None) -> Iterator[Work]:
    """Yield the items up to the first `limit` names, all without a limit; later names are not even listed."""
    n_left = limit
    for files in work:
        yield files if n_left is None else replace(files, names=files.names[:n_left])
        if n_left is not None and (n_left := n_left - len(files.names)) <= 0:
            return


def first_records(limit: int) -> str:
    """Return the phrase for the records that a limit reads."""
    return "the first record" if limit == 1 else f"the first {limit:,} records"


def as_table(work: Iterable[Work]) -> pa.Table:
    """Return the items as Arrow rows of `WORK`, numbered in their order."""
    rows = [
        {
            "number": number,
            "format": item.format,
            **asdict(item.origin),
            "metadata": list(item.origin.metadata.items()),
            "place": pickle.dumps(_of_one_commit(item.place)),
            "names": list(item.names),
            "part": None if item.part is None else pickle.dumps(item.part),
        }
        for number, item in enumerate(work)
    ]
    return pa.Table.from_pylist(rows, schema=WORK)


def _of_one_commit(place: Place) -> Place:
    return place.of_one_commit() if isinstance(place, RemoteFiles) else place


def files_below(
    place: Place, include: Sequence[str], exclude: Sequence[str], *, deep: bool = True
) -> Iterator[bytes]:
    """Yield the names of a place that match a pattern of `include` and none of `exclude`, in a fixed order.

    Without `deep` these are the names in the place itself. In a pattern `**/` is any number of folders; `*`
    and `?` stay within one name. Linked folders and folders that cannot be listed come as names themselves,
    and their reader records why. Raises ConfigurationError if the place is not a folder.
    """
    if place.kind() != "folder":
        raise ConfigurationError(f"`{place.display()}` is not a folder. Name a folder of files to read.")
    wanted, unwanted = compiled(include), compiled(exclude)
    for name in place.walk(lambda folder: unwanted.fullmatch(folder) is None, deep=deep):
        if name.endswith(b"/"):
            yield name[:-1]
        elif wanted.fullmatch(name) and not unwanted.fullmatch(name):
            yield name


def parents_of(name: bytes) -> Iterator[bytes]:
    """Yield the folders above a path as `exclude` sees them, with a slash at the end, the outermost first."""
    end = name.find(b"/")
    while end >= 0:
        yield name[: end + 1]
        end = name.find(b"/", end + 1)


def record_files_below(place: Place, patterns: Sequence[str]) -> Iterator[bytes]:
    """Yield the names of the files of records of a place, as `files_below` does.

    A compressed `.json` file that is one JSON list or object over several lines is left out.
    """
    return (name for name in files_below(place, patterns, UNWANTED) if not is_json_document(place, name))
