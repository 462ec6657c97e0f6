"""A copied or moved lake made a lake of its own at its new place, in steps that may be interrupted anywhere.

    1  write new metadata files next to the old    `factory.lake.relocation.metadata`
    2  verify the tables that they describe        `factory.lake.relocation.verification`
    3  take the claim of the warehouse             other homes are refused from here on
    4  note the old files in relocation.json
    5  name the new files in the catalog           one transaction
    6  drop the page indexes, which hold paths, and let the caller settle the blends
    7  write lake.json                             the lake opens from here on
    8  remove the old files, then relocation.json

Interrupted before 5, the lake is unchanged; before 7, every other command refuses it as before. Running again
completes it. No step reads or writes the place where the lake was made.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import obstore
from pyiceberg.io import FileIO, load_file_io

from factory.atomic_file import write_atomically
from factory.errors import ConfigurationError, FactoryError, NotFound, PublishConflict
from factory.frozen_model import FrozenModel
from factory.lake.catalog import damaged_catalog, pyiceberg_properties
from factory.lake.files.checked_io import check_pages
from factory.lake.files.checksums import sums_file
from factory.lake.files.location import local_path
from factory.lake.lock import locked
from factory.lake.lost_catalog import require_catalog_file
from factory.lake.names import TableName
from factory.lake.place import (
    is_below,
    is_ours,
    is_outside,
    read_claim,
    read_record,
    require_claim,
    take_claim,
    write_record,
)
from factory.lake.relocation.metadata import MetadataRewriter
from factory.lake.relocation.moves import Move, is_inside, spelled_alike, warehouse_of
from factory.lake.relocation.verification import Verified, data_files, load_table, verify
from factory.lake.sqlite import withheld
from factory.lake.store import object_store
from factory.settings import CATALOG_NAME, Settings

_LOCK_WAIT_S = 60
_ROWS = (
    "select table_namespace, table_name, metadata_location, previous_metadata_location from iceberg_tables "
    "where catalog_name = ? and metadata_location is not null order by 1, 2"
)
_RENAME = (
    "update iceberg_tables set metadata_location = ?, previous_metadata_location = ? "
    "where catalog_name = ? and table_namespace = ? and table_name = ? and metadata_location = ?"
)


class Journal(FrozenModel):
    """The warehouse's former locations, and the old metadata files that are still to be removed."""

    old: tuple[str, ...]
    obsolete: tuple[str, ...]


@dataclass
class Relocated:
    """The result: tables with new metadata, files written, and what reading the tables showed."""

    tables: list[TableName] = field(default_factory=list)
    files: int = 0
    rows: int = 0
    read_bytes: int = 0
    caveats: list[str] = field(default_factory=list)
    taken_from: str = ""
    """The home that held the warehouse before."""


@dataclass(frozen=True)
class CatalogEntry:
    """A table's row in the embedded catalog."""

    name: TableName
    metadata: str
    previous: str | None


@dataclass(frozen=True)
class Rewritten:
    """Verified new metadata, for the catalog to name: entry, metadata file, previous metadata file."""

    move: Move
    tables: list[tuple[CatalogEntry, str, str | None]]
    obsolete: list[str]


Settle = Callable[[Callable[[], Iterable[tuple[str, str]]]], None]
"""Adapts what else holds paths of data files; gets a function that yields their old and new locations."""
Observe = Callable[[str, int, int], None]
"""Is told the step and table under way, the number of steps that are done, and the number of all."""


def relocate(settings: Settings, *, take: bool, settle: Settle, observe: Observe) -> Relocated:
    """Make the lake in the home of `settings` a lake of the place they name.

    `take` hands a warehouse that belongs to another home to this one. Raises LakeMoved without it,
    ConfigurationError for a lake on servers, NotFound without a lake, LakeLocked while a run writes, and
    DamagedFile if the copy is incomplete or lacks its catalog; the lake is then unchanged.
    """
    if not settings.embedded:
        raise ConfigurationError(
            f"The catalog of this lake is on a server ({settings.catalog}), and its tables are where that "
            "server says: there is nothing to relocate. Set FACTORY_CATALOG=sqlite for an embedded lake."
        )
    require_catalog_file(settings)
    if not settings.files.catalog_database.exists() and not (take and is_outside(settings)):
        raise NotFound(f"There is no lake in {settings.home}. Set FACTORY_HOME to the folder of the copy.")
    if not take:
        require_claim(settings, read_record(settings))
    check_pages()
    with locked(settings, "factory relocate"):
        relocated = Relocated()
        entries = _entries(settings)
        _require_apart(settings, entries)
        _drop_stale_journal(settings, entries)
        pending = [entry for entry in entries if not is_below(entry.metadata, settings.warehouse_uri)]
        rewritten = _rewrite(settings, pending, relocated, observe) if pending else None
        relocated.taken_from = _take(settings)
        if rewritten is not None:
            _switch(settings, rewritten)
        _finish(settings, settle)
    return relocated


def _rewrite(
    settings: Settings, pending: Sequence[CatalogEntry], relocated: Relocated, observe: Observe
) -> Rewritten:
    """Write and verify new metadata of the `pending` tables, which have theirs elsewhere; all or none."""
    move, io = _move_of(settings, pending), _file_io(settings)
    rewriters = {entry.name: MetadataRewriter(io, move, str(entry.name)) for entry in pending}
    tables: list[tuple[CatalogEntry, str, str | None]] = []
    failures: list[FactoryError] = []
    for number, entry in enumerate(pending):
        observe(f"rewriting {entry.name}", number, 2 * len(pending))
        rewriter = rewriters[entry.name]
        try:
            metadata = rewriter.rewrite(entry.metadata)
        except FactoryError as error:
            failures.append(error)
            continue
        tables.append((entry, metadata, rewriter.new_location(entry.previous) if entry.previous else None))
    for number, (entry, metadata, _) in enumerate(tables, len(pending)):
        observe(f"verifying {entry.name}", number, 2 * len(pending))
        try:
            _count(relocated, verify(load_table(io, entry.name, metadata), move))
        except FactoryError as error:
            failures.append(error)
    if failures:
        for rewriter in rewriters.values():
            _remove(settings, rewriter.written)
        whole = f"The lake in {settings.home} was not relocated and is as it was."
        raise type(failures[0])("\n".join([whole, *map(str, failures)]))
    obsolete = [file for rewriter in rewriters.values() for file in rewriter.obsolete]
    relocated.tables, relocated.files = [entry.name for entry in pending], len(obsolete)
    return Rewritten(move, tables, obsolete)


def _take(settings: Settings) -> str:
    """Make the claim name this home; return the home that could use the warehouse before."""
    record, claim = read_record(settings), read_claim(settings)
    if claim is not None and is_ours(claim, record, settings):
        return ""
    take_claim(settings, record.lake if record else uuid.uuid4().hex)
    return f"{claim.home} on {claim.machine}" if claim is not None and is_outside(settings) else ""


def _switch(settings: Settings, rewritten: Rewritten) -> None:
    """Let the catalog name the new metadata, in one transaction."""
    if local_path(settings.warehouse_uri) is not None:
        os.sync()  # the catalog must not survive a power failure that the files do not
    journal = Journal(old=rewritten.move.old, obsolete=tuple(rewritten.obsolete))
    write_atomically(settings.files.relocation, journal.model_dump_json())
    with _catalog(settings) as connection, connection:
        connection.execute("begin immediate")
        for entry, metadata, previous in rewritten.tables:
            key = (CATALOG_NAME, *entry.name.identifier, entry.metadata)
            if connection.execute(_RENAME, (metadata, previous, *key)).rowcount != 1:
                raise PublishConflict(
                    f"Table {entry.name} was written while the lake was relocated, and its catalog is as it "
                    "was. End what works on the lake, and run `factory relocate` again."
                )


def _require_apart(settings: Settings, entries: Sequence[CatalogEntry]) -> None:
    """Raise ConfigurationError if the lake was made below its new warehouse.

    Every path of the original would then be one of the copy too.
    """
    record, new = read_record(settings), settings.warehouse_uri
    places = [record.warehouse] if record else [warehouse_of(entry.metadata) for entry in entries]
    for warehouse in filter(None, places):
        if is_inside(warehouse, new) and spelled_alike(warehouse) != spelled_alike(new):
            raise ConfigurationError(
                f"The lake was made in {warehouse}, which is inside {new}, so the files of the original and "
                "of the copy have the same paths. Copy the lake to a place beside the original."
            )


def _drop_stale_journal(settings: Settings, entries: Sequence[CatalogEntry]) -> None:
    """Remove a journal of a switch that did not happen, or of files elsewhere: in use, or not ours.

    A lake that goes back to its former place, moved or by a link, no longer needs the switch. The catalog
    then names old files, perhaps by way of the link.
    """
    journal = _journal(settings)
    if journal is None:
        return
    used = {os.path.realpath(spelled_alike(entry.metadata)) for entry in entries}
    obsolete = {os.path.realpath(spelled_alike(location)) for location in journal.obsolete}
    inside = all(is_inside(location, settings.warehouse_uri) for location in journal.obsolete)
    if used & obsolete or not inside:
        settings.files.relocation.unlink()


def _move_of(settings: Settings, pending: Sequence[CatalogEntry]) -> Move:
    """Return the move from the places that the record and the tables name."""
    record = read_record(settings)
    named = [record.warehouse] if record else []
    for entry in pending:
        warehouse = warehouse_of(entry.metadata)
        if warehouse is None:
            raise ConfigurationError(
                f"The metadata of table {entry.name} is at {entry.metadata}, where no warehouse has it. "
                "Make the table again where the lake was made, then copy the lake again."
            )
        named.append(warehouse)
    return Move(tuple(dict.fromkeys(named)), settings.warehouse_uri)


def _count(relocated: Relocated, verified: Verified) -> None:
    relocated.rows += verified.rows
    relocated.read_bytes += verified.read_bytes
    if verified.caveat:
        relocated.caveats.append(verified.caveat)


def _finish(settings: Settings, settle: Settle) -> None:
    """Record the new place and remove the leftovers of the old one."""
    journal = _journal(settings)
    if journal is not None:
        shutil.rmtree(settings.files.page_index, ignore_errors=True)
        settle(lambda: _moved_files(settings, Move(journal.old, settings.warehouse_uri)))
    record, claim = read_record(settings), read_claim(settings)
    assert claim is not None, "the claim was taken first"
    if record is not None or settings.files.catalog_database.exists():
        write_record(settings, record.lake if record else claim.lake)
    # A new home without a catalog gets its record with the catalog, so that it does not look like a lost one.
    if journal is not None:
        _remove(settings, journal.obsolete)
        settings.files.relocation.unlink()


def _journal(settings: Settings) -> Journal | None:
    try:
        return Journal.model_validate_json(settings.files.relocation.read_bytes())
    except FileNotFoundError:
        return None


def _moved_files(settings: Settings, move: Move) -> Iterator[tuple[str, str]]:
    """Yield the old and the new location of every data file."""
    io = _file_io(settings)
    for entry in _entries(settings):
        for location in data_files(load_table(io, entry.name, entry.metadata)):
            for origin in move.origins(location):
                yield origin, location


def _entries(settings: Settings) -> list[CatalogEntry]:
    if not settings.files.catalog_database.exists():
        return []
    with _catalog(settings) as connection:
        (verdict,) = connection.execute("pragma integrity_check(1)").fetchone()
        if verdict != "ok":
            raise damaged_catalog(settings, verdict)
        rows = connection.execute(_ROWS, (CATALOG_NAME,)).fetchall()
    return [CatalogEntry(TableName(*name), metadata, previous) for *name, metadata, previous in rows]


@contextmanager
def _catalog(settings: Settings) -> Iterator[sqlite3.Connection]:
    """Open the catalog's database; raises DamagedFile or MachineError."""
    database = settings.files.catalog_database
    try:
        with closing(sqlite3.connect(database, timeout=_LOCK_WAIT_S, isolation_level=None)) as connection:
            yield connection
    except sqlite3.DatabaseError as error:
        raise withheld(database, error) or damaged_catalog(settings, str(error)) from error


def _file_io(settings: Settings) -> FileIO:
    return load_file_io(pyiceberg_properties(settings), settings.warehouse_uri)


def _remove(settings: Settings, locations: Iterable[str]) -> None:
    """Remove files of the warehouse with their checksum files; missing ones need nothing."""
    for location in locations:
        assert is_inside(location, settings.warehouse_uri), location
        path = local_path(location)
        if path is not None:
            Path(path).unlink(missing_ok=True)
            Path(sums_file(path)).unlink(missing_ok=True)
        else:
            with suppress(FileNotFoundError):
                obstore.delete(object_store(settings), location.removeprefix(settings.warehouse_uri))
