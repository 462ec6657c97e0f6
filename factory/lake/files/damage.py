"""Find the damaged file of a table that cannot be read, and name it in a DamagedFile.

PyIceberg's parsers raise arbitrary errors that name no file. So if planning or reading a snapshot fails, its
files are read one by one until one fails: the manifest list, then manifests, then data files.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from pyiceberg.exceptions import ValidationError
from pyiceberg.manifest import read_manifest_list
from pyiceberg.table import FileScanTask, Table
from pyiceberg.table.snapshots import Snapshot

from factory.errors import DamagedFile, first_line
from factory.lake.files.location import SCHEME
from factory.lake.files.parquet import UNREADABLE, fault, gone, unread

UNPARSED = (
    *(ValueError, LookupError, TypeError, AttributeError, ArithmeticError, AssertionError),
    *(EOFError, MemoryError, RecursionError, NotImplementedError, struct.error, zlib.error),
    *(FileNotFoundError, ValidationError, DamagedFile),
)
"""What PyIceberg raises for missing files and for malformed bytes."""


def damaged_metadata(name: object, file: str | None, error: BaseException) -> DamagedFile:
    """Return the error for an unreadable metadata file."""
    return _of_table(name, _unread("metadata file", file, error))


@contextmanager
def planning(table: Table, snapshot: Snapshot | None) -> Iterator[None]:
    """Turn errors of planning a scan into DamagedFile with the damaged manifest."""
    try:
        yield
    except UNPARSED as error:
        require_manifests(table, snapshot)
        if isinstance(error, DamagedFile):
            raise _of_table(_name(table), str(error)) from error
        raise


def require_manifests(table: Table, snapshot: Snapshot | None) -> None:
    """Raise DamagedFile with the file's name if a manifest of a snapshot cannot be read."""
    if snapshot is None:
        return
    with _reading(table, "list of manifests", snapshot.manifest_list):
        manifests = list(read_manifest_list(table.io.new_input(snapshot.manifest_list)))
    for manifest in manifests:
        with _reading(table, "manifest", manifest.manifest_path):
            manifest.fetch_manifest_entry(table.io)


@contextmanager
def _reading(table: Table, what: str, file: str) -> Iterator[None]:
    try:
        yield
    except UNPARSED as error:
        raise _of_table(_name(table), _unread(what, file, error)) from error


@contextmanager
def scanning(table: Table, tasks: Iterable[FileScanTask], columns: Sequence[str]) -> Iterator[None]:
    """Turn errors of reading `columns` of planned files into DamagedFile with file, column and page."""
    try:
        yield
    except (*UNPARSED, *UNREADABLE) as error:
        for task in tasks:
            for file in (task.file, *task.delete_files):
                said = _fault(table, file.file_path, columns if file is task.file else ("*",), error)
                if said is not None:
                    raise _of_table(_name(table), said) from error
        raise


def _fault(table: Table, path: str, columns: Sequence[str], error: BaseException) -> str | None:
    """Return a sentence on the damage of a data file, None if it is sound."""
    named = path.removeprefix(SCHEME)
    try:
        # Bypass the table's file system: the damaged page says more than the damaged bytes.
        source = table.io.new_input(path)
        with source._filesystem.open_input_file(source._path) as file:
            found = fault(named, columns, file)
        if found is None:
            source.open().close()
        return found
    except FileNotFoundError:
        return str(gone(named))
    except DamagedFile as damaged:
        return str(damaged)
    except UNREADABLE:
        return unread(named, (), error) if not isinstance(error, OSError) else None


def _of_table(name: object, said: str) -> DamagedFile:
    """Return the error with the table's name and remedy in place of the file's."""
    fact, mark, remedy = said.partition(" Restore ")
    if not mark or "delete it" not in remedy:
        said = f"{fact} Restore the file, or make the table again: {_again(name)}."
    return DamagedFile(f"Table {name} is damaged. {said}")


def _unread(what: str, file: str | None, error: BaseException) -> str:
    """Return a sentence on a metadata file; our own errors name it already."""
    if isinstance(error, DamagedFile):
        return str(error)
    if isinstance(error, FileNotFoundError):
        return f"Its {what} {file} is gone."
    return f"Its {what} {file} cannot be read ({first_line(error)})."


def _again(name: object) -> str:
    return f"factory materialize {name}"


def _name(table: Table) -> str:
    return ".".join(table.name())
