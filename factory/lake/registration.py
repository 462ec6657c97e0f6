"""Register the user's own Parquet files as an Iceberg table without copying: `registered.<dataset>`.

Nothing writes to the files, and the table has `gc.enabled=false`, so that neither snapshot expiry nor
`DROP TABLE ... PURGE` deletes them. (PyIceberg's `purge_table` ignores that property; the platform never
calls it.)
"""

from __future__ import annotations

import os
import stat
import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from threading import Lock
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.exceptions import ValidationError

from factory.errors import DamagedFile
from factory.lake.catalog import make_namespace
from factory.lake.files.location import SCHEME, local_path
from factory.lake.files.storage import opened
from factory.lake.lineage import Lineage
from factory.lake.names import TableName
from factory.lake.tables import Lake

if TYPE_CHECKING:
    from pyiceberg.io import FileIO
    from pyiceberg.schema import Schema
    from pyiceberg.table.metadata import TableMetadata

_PROPERTIES = {"format-version": "2", "gc.enabled": "false"}
_NOT_IN_A_LOCATION = "#?%"  # the table stores the path unescaped, and engines interpret these characters
_NOWHERE = f"{SCHEME}/nowhere"  # name of a table that is never committed
_FIELD_ID = b"PARQUET:field_id"
# What PyIceberg raises for columns and files it cannot take.
_REFUSED = (
    OSError,
    ValueError,
    TypeError,
    NotImplementedError,
    pa.ArrowException,
    ValidationError,
    RecursionError,
)


class FooterFacts(NamedTuple):
    """Why a file alone is not suitable, or its columns and its number of rows."""

    trouble: str | None
    columns: pa.Schema | None = None
    n_rows: int = 0


class Candidates:
    """Parquet files to register together: the suitable ones, and a reason for each of the others.

    A file is suitable if Iceberg can add it unchanged, its column `text` holds plain strings, and its columns
    match the first suitable file. Only footers are read, with the lake's options `storage` if they are in a
    store; files are offered in their order, and their footers may be read before.
    """

    def __init__(self, text: str, storage: Mapping[str, str] = MappingProxyType({})) -> None:
        self._text, self.storage = text, storage
        self._lock = Lock()
        self._columns_of_table: pa.Schema | None = None
        self._table: TableMetadata | None = None
        self._io: dict[str, FileIO] = {}
        self.columns: pa.Schema | None = None
        self.files: list[str] = []
        self.refused: dict[str, str] = {}
        self.rows = 0  # of the suitable files

    def offer(self, file: str, name: str, footer: FooterFacts | None = None) -> bool:
        """Whether the file at a location, with a `footer` that may have been read, is suitable.

        `name` is its name in `refused`.
        """
        footer = footer or self.footer(file)
        trouble = footer.trouble
        if trouble is None and self.columns is not None and footer.columns != self.columns:
            trouble = "its columns are not those of the first file"
        if trouble is not None:
            self.refused[name] = trouble
            return False
        self.files.append(file)
        self.columns = footer.columns
        self.rows += footer.n_rows
        return True

    def footer(self, file: str) -> FooterFacts:
        """Read the footer of the file at a location; several threads may do so at once."""
        from pyiceberg.io.pyarrow import UnsupportedPyArrowTypeException

        try:
            return self._footer(file)
        except (*_REFUSED, UnsupportedPyArrowTypeException) as error:
            return FooterFacts(f"Iceberg cannot take it as it is: {' '.join(str(error).split())}")
        except (struct.error, ArithmeticError):  # from the bounds that the footer states
            return FooterFacts("a column has a number or a time beyond the range of its type in Iceberg")

    def _footer(self, file: str) -> FooterFacts:
        from pyiceberg.io.pyarrow import parquet_file_to_data_file

        path = local_path(file)
        shown = path or file
        if path is not None and not stat.S_ISREG(os.lstat(path).st_mode):
            return FooterFacts("it is not a regular file")
        if set(shown) & set(_NOT_IN_A_LOCATION) or not shown.isprintable():
            return FooterFacts(f"its path holds one of `{_NOT_IN_A_LOCATION}`, or an unprintable character")
        with opened(file, self.storage) as stream:
            found = pq.read_schema(stream)
        if any(_FIELD_ID in (of.metadata or {}) for of in found):
            return FooterFacts("its columns carry the ids of another Iceberg table")
        if twice := [name for name, n in Counter(found.names).items() if n > 1]:
            return FooterFacts(f"it has two columns `{twice[0]}`")
        if self._text not in found.names or not _is_string(found.field(self._text).type):
            return FooterFacts(f"it has no column `{self._text}` of plain strings")
        columns = pa.schema([of.with_nullable(True).remove_metadata() for of in found])
        table = self._table_of(columns)
        data_file = parquet_file_to_data_file(self._io_of(file), table, file)  # as `add_files` does
        return FooterFacts(None, columns, data_file.record_count)

    def _table_of(self, columns: pa.Schema) -> TableMetadata:
        with self._lock:
            if self._columns_of_table != columns:
                self._columns_of_table, self._table = columns, _table_of(columns)
            assert self._table is not None
            return self._table

    def _io_of(self, file: str) -> FileIO:
        """Return the reader of a file; files of one scheme share its client."""
        from pyiceberg.io import load_file_io

        scheme = file.partition(":")[0]
        with self._lock:
            if scheme not in self._io:
                self._io[scheme] = load_file_io(dict(self.storage), file)
            return self._io[scheme]


def _is_string(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def _table_of(columns: pa.Schema) -> TableMetadata:
    """Return a table with `columns` that is never committed, to test which files fit it."""
    from pyiceberg.catalog.memory import InMemoryCatalog

    catalog = InMemoryCatalog("throwaway", warehouse=_NOWHERE)
    made = catalog.create_table_transaction(("none", "none"), columns, _NOWHERE, properties=_PROPERTIES)
    return made.table_metadata


def register(
    lake: Lake, table: TableName, files: Sequence[str], columns: pa.Schema, lineage: Lineage
) -> None:
    """Make `table` hold exactly the rows of `files`, in one commit.

    A table with other columns than the files is recreated; the lake reads nothing from it, and the files
    stay. If interrupted in between, the lake lacks the table until the next call.
    """
    from pyiceberg.expressions import AlwaysTrue

    make_namespace(lake.catalog, table.namespace)
    wanted = _plain(_table_of(columns).schema())
    if lake.exists(table) and _columns_of(lake, table) != wanted:
        forget(lake, table)
    created = not lake.exists(table)
    with (
        lake.catalog.create_table_transaction(table.identifier, columns, properties=_PROPERTIES)
        if created
        else lake.table(table).transaction()
    ) as change:
        if not created:
            change.delete(AlwaysTrue())
        change.add_files(
            list(files), snapshot_properties=lineage.to_properties(), check_duplicate_files=False
        )


def _columns_of(lake: Lake, table: TableName) -> list[tuple[str, str]] | None:
    """Return the columns of a table, None if its metadata is damaged."""
    try:
        return _plain(lake.table(table).schema())
    except DamagedFile:
        return None


def _plain(schema: Schema) -> list[tuple[str, str]]:
    return [(field.name, str(field.field_type)) for field in schema.fields]


def forget(lake: Lake, table: TableName) -> None:
    """Drop a table of registered files, if it exists; the files stay."""
    if lake.exists(table):
        lake.catalog.drop_table(table.identifier)
