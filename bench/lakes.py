"""Lakes that belong to the benches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from factory.lake.catalog import open_catalog
from factory.lake.schemas.packing import SEQUENCE_LENGTH, TOKEN_BYTES
from factory.settings import Settings, settings

TWO_COLUMNS = pa.schema([("ordinal", pa.int64()), ("tokens", pa.binary())])


def own_lake(home: Path, **changes: Any) -> Settings:
    """Settings of an embedded lake in `home`, independent of FACTORY_* variables."""
    embedded = {"home": home.absolute(), "catalog": "sqlite", "catalog_uri": None, "warehouse": None}
    return settings().model_copy(update=embedded | changes)


def add_packed(
    lake: Settings,
    name: str,
    files: Sequence[Path],
    content: str,
    token_bytes: int,
    length: int,
    schema: pa.Schema = TWO_COLUMNS,
    properties: Mapping[str, str] | None = None,
) -> None:
    """Make the table `packed.<name>` of Parquet files of `schema`, if it is missing."""
    catalog = open_catalog(lake)
    catalog.create_namespace_if_not_exists("packed")
    properties = {TOKEN_BYTES: f"{token_bytes}", SEQUENCE_LENGTH: f"{length}", **(properties or {})}
    table = catalog.create_table_if_not_exists(f"packed.{name}", schema=schema, properties=properties)
    if table.current_snapshot() is None:
        table.add_files([path.as_uri() for path in files], snapshot_properties={"factory.content": content})
