"""How a table of the lake is declared: a schema, its layout, and the columns that stages share.

A schema is declared once, in Arrow, and rendered for PyIceberg (which creates the table) and for Spark
(which fills it); nothing is inferred from data. Changes are additive, because an Iceberg schema is not
branched.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

# Columns about the storage of content, not content: a row's location, or the text of a token that several
# bags share.
UNFINGERPRINTED = frozenset({"partition", "token_texts"})


@dataclass(frozen=True)
class TableSchema:
    """The columns and layout of a table.

    `key` identifies a row; `partition_by` are identity partition columns; `sort_by` is the order in which
    files and rows are written; `properties` are default Iceberg table properties. With `may_shrink` a
    nullable column that is no longer declared stays in the table, null in new rows. An `is_open` schema takes
    its columns from the rows of a run. `about` and `descriptions` describe the rows and each column; no table
    depends on their wording. `chart` and `figures` name what Dagster shows of the rows
    (`factory.orchestration.table.charts`).
    """

    columns: pa.Schema
    key: tuple[str, ...]
    partition_by: tuple[str, ...] = ()
    sort_by: tuple[str, ...] = ()
    properties: dict[str, str] = field(default_factory=dict)
    may_shrink: bool = False
    is_open: bool = field(default=False, repr=False, compare=False)
    about: str = field(default="", repr=False, compare=False)
    descriptions: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    chart: str = field(default="", repr=False, compare=False)
    figures: str = field(default="", repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in () if self.is_open else (*self.key, *self.partition_by, *self.sort_by):
            assert name in self.columns.names, f"{name} is not a column of {self.columns.names}"

    @property
    def names(self) -> list[str]:
        """The column names in order."""
        return list(self.columns.names)

    @property
    def fingerprinted(self) -> list[str]:
        """The columns that make up the content fingerprint, sorted by name."""
        return sorted(set(self.names) - UNFINGERPRINTED)


_PARTITION = "the key of the row's partition; null in tables without partitions"


def required(name: str, kind: pa.DataType, description: str) -> pa.Field:
    return column(name, kind, description, nullable=False)


def column(name: str, kind: pa.DataType, description: str, *, nullable: bool = True) -> pa.Field:
    """Return a field that carries its description as far as `table`."""
    return pa.field(name, kind, nullable, {"description": description})


def columns(*fields: pa.Field) -> pa.Schema:
    """Return a schema of `fields` plus the column `partition`, which every table has."""
    return pa.schema([*(field.remove_metadata() for field in fields), pa.field("partition", pa.string())])


def table(*fields: pa.Field, key: tuple[str, ...] = ("doc_id",), **options: Any) -> TableSchema:
    """Return a table with the descriptions of its columns, by default with a row per document."""
    described = {field.name: field.metadata[b"description"].decode() for field in fields} | {
        "partition": _PARTITION
    }
    return TableSchema(columns(*fields), key, descriptions=described, **options)


def list_of(kind: pa.DataType, *, nullable: bool = True) -> pa.ListType:
    return pa.list_(pa.field("element", kind, nullable=nullable))


# Parquet-mr looks at the size of a page for the first time after so many rows, 100 by default, and the first
# page of a row group has as many.
EARLY_LOOK = {"write.parquet.row-group-check-min-record-count": "8"}

DOC_ID = required("doc_id", pa.string(), "identifies the document: a hash of its source and key")

# The unit of sorting and packing: two revisions of a repository are two trees of files.
REPOSITORY = ("repository", "revision")
