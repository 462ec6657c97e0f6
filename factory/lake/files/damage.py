"""Find the damaged file of a table that cannot be read, and name it in a DamagedFile.

PyIceberg's parsers raise arbitrary errors that name no file. So if planning or reading a snapshot fails, its
files are read one by one until one fails: the manifest list, then manifests, then data files.
"""

from __future__ import annotations

import struct
import zlib
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyiceberg.exceptions import ResolveError, ValidationError

from factory.errors import DamagedFile, first_line
from factory.lake.files.location import SCHEME
from factory.lake.files.parquet import UNREADABLE, fault, raise_undamaged

if TYPE_CHECKING:
    from pyiceberg.table import FileScanTask, Table
    from pyiceberg.table.snapshots import Snapshot

UNPARSED = (
    *(ValueError, LookupError, TypeError, AttributeError, ArithmeticError, AssertionError),
    *(EOFError, MemoryError, RecursionError, NotImplementedError, struct.error, zlib.error),
    *(FileNotFoundError, ValidationError, ResolveError, DamagedFile),
    SystemError,  # PyIceberg's compiled decoder asks for a string of negative length
)
"""What PyIceberg raises for missing files and for malformed bytes."""


def damaged_metadata(name: object, file: str | None, error: BaseException) -> DamagedFile:
    """Return the error for an unreadable metadata file."""
    return damaged_table(name, _unread("metadata file", file, error))


@contextmanager
def planning(table: Table, snapshot: Snapshot | None) -> Iterator[None]:
    """Turn errors of planning a scan into DamagedFile with the damaged manifest."""
    try:
        yield
    except UNPARSED as error:
        require_manifests(table, snapshot)
        if isinstance(error, DamagedFile):
            raise damaged_table(_name(table), str(error)) from error
        raise


def require_manifests(table: Table, snapshot: Snapshot | None) -> None:
    """Raise DamagedFile with the file's name if the files of a snapshot cannot be planned."""
    from pyiceberg.manifest import read_manifest_list

    if snapshot is None:
        return
    listed_by = snapshot.manifest_list
    with _reading(table, "list of manifests", listed_by):
        manifests = list(read_manifest_list(table.io.new_input(listed_by)))
    for manifest in manifests:
        path = manifest.manifest_path
        with _reading(table, "manifest", f"{path}, which {listed_by} lists,"):
            table.io.new_input(path).open().close()
        with _reading(table, "manifest", path):
            manifest.fetch_manifest_entry(table.io)
    with _reading(table, "list of manifests", f"{listed_by}, or a manifest that it lists,"):
        deque(table.scan(snapshot_id=snapshot.snapshot_id).plan_files(), maxlen=0)


@contextmanager
def _reading(table: Table, what: str, file: str) -> Iterator[None]:
    try:
        yield
    except UNPARSED as error:
        raise damaged_table(_name(table), _unread(what, file, error)) from error


@contextmanager
def scanning(table: Table, tasks: Iterable[FileScanTask], columns: Sequence[str]) -> Iterator[None]:
    """Turn errors of reading `columns` of planned files into DamagedFile with file, column and page.

    Raises MachineError if every file turns out to be whole, as after a store that did not answer.
    """
    try:
        yield
    except DamagedFile as error:  # by a reader that knew its file
        raise damaged_table(_name(table), str(error)) from error
    except (*UNPARSED, *UNREADABLE) as error:
        _require_files(table, tasks, columns)
        raise_undamaged(f"Table {_name(table)}", error)


def require_files(table: Table, snapshot_id: int) -> None:
    """Raise DamagedFile for the first file of a snapshot that cannot be read; all its data files are read."""
    with planning(table, table.snapshot_by_id(snapshot_id)):
        tasks = list(table.scan(snapshot_id=snapshot_id).plan_files())
    _require_files(table, tasks, ("*",))


def _require_files(table: Table, tasks: Iterable[FileScanTask], columns: Sequence[str]) -> None:
    for task in tasks:
        for file in (task.file, *task.delete_files):
            sentence = _fault(table, file.file_path, columns if file is task.file else ("*",))
            if sentence is not None:
                raise damaged_table(_name(table), sentence)


def _fault(table: Table, path: str, columns: Sequence[str]) -> str | None:
    """Return a sentence on the damage of a data file, None if it is whole."""
    named = path.removeprefix(SCHEME)
    try:
        # Bypass the table's file system: the damaged page says more than the damaged bytes.
        source = table.io.new_input(path)
        file = source._filesystem.open_input_file(source._path)
    except FileNotFoundError:
        return f"File {named}{_lister(table, path)} is gone."
    except ValueError as error:  # a path that no file system takes
        return f"File {named}{_lister(table, path)} cannot be opened ({first_line(error)})."
    with file:
        sentence = fault(named, columns, file)
    if sentence is None:
        try:
            source.open().close()
        except DamagedFile as damaged:
            return str(damaged)
    return sentence


def _lister(table: Table, path: str) -> str:
    """Return a clause with the newest manifest that lists a data file; damage may have changed the name."""
    for snapshot in reversed(table.snapshots()):
        for manifest in snapshot.manifests(table.io):
            if any(entry.data_file.file_path == path for entry in manifest.fetch_manifest_entry(table.io)):
                return f", which {manifest.manifest_path} lists,"
    return ""


def damaged_table(name: object, said: str) -> DamagedFile:
    """Return the error of a sentence on a file, with the table's name and remedy in place of the file's."""
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
