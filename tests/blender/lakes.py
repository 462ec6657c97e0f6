"""Small packed tables, written with PyIceberg, and Blenders in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyiceberg.table import Table

from blender.rows.lake_pages import LakePages
from blender.rows.snapshot_reader import SnapshotReader
from factory.lake.catalog import open_catalog
from factory.lake.fingerprint import fingerprint
from factory.lake.schemas.base import UNFINGERPRINTED
from factory.lake.schemas.packing import PACKED, SEQUENCE_LENGTH, TOKEN_BYTES
from factory.settings import Settings

ROOT = Path(__file__).parents[2]
CODE, PROSE = "packed.code", "packed.prose"
LENGTH = 8  # tokens of a full row
SHUFFLES: list[dict[str, Any]] = [
    {"shuffle": "none"},
    {"shuffle": "page", "page_rows": 8},
    {"shuffle": "page_window", "page_rows": 3, "window_pages": 5},
    {"shuffle": "row"},
]


def packed_rows(name: str, n: int) -> pa.Table:
    """`n` rows whose tokens and documents show their origin: token = 100 * ordinal + position.

    Row i holds the end of document i (5 tokens) and the begin of document i + 1 (3 tokens, 1 in every fourth
    row, which is short).
    """
    rows = []
    for ordinal in range(n):
        second = 1 if ordinal % 4 == 3 else 3
        tokens = 100 * ordinal + np.arange(5 + second)
        segments = [
            {"doc_id": f"{name}-{ordinal}", "doc_offset": 3, "length": 5},
            {"doc_id": f"{name}-{ordinal + 1}", "doc_offset": 0, "length": second},
        ]
        rows.append(
            {
                "ordinal": ordinal,
                "tokens": tokens.astype("<u2").tobytes(),
                "n_tokens": len(tokens),
                "segments": segments,
                "append": 0,
                "shard": 0,
                "chunk": ordinal // 16,
                "partition": None,
            }
        )
    return pa.Table.from_pylist(rows, schema=PACKED.columns)


def write_table(
    settings: Settings,
    table: str,
    rows: pa.Table,
    *,
    files: Sequence[Sequence[int]] | None = None,
    row_group: int = 64,
    properties: dict[str, str] | None = None,
    snapshot_properties: dict[str, str] | None = None,
) -> None:
    """Replace the rows of a table, which is created where it is missing.

    `files` lists the row numbers of each file, in the order written; by default one file has them all.
    `snapshot_properties` come in addition to the content fingerprint.
    """
    catalog = open_catalog(settings)
    catalog.create_namespace_if_not_exists(table.split(".")[0])
    created = catalog.create_table_if_not_exists(
        table,
        schema=rows.schema,
        properties={
            TOKEN_BYTES: "2",
            SEQUENCE_LENGTH: str(LENGTH),
            "write.parquet.row-group-limit": str(row_group),
            **(properties or {}),
        },
    )
    content = str(fingerprint(rows.to_batches(), sorted(set(rows.column_names) - UNFINGERPRINTED)))
    parts = [rows.take(list(numbers)) for numbers in files] if files else [rows]
    if created.current_snapshot() is not None:
        created.delete("ordinal >= 0")
    for part in parts:
        created.append(part, snapshot_properties={"factory.content": content, **(snapshot_properties or {})})


def load_table(lake: Settings, table: str) -> Table:
    """The table as it is now."""
    return open_catalog(lake).load_table(table)


def current_snapshot(lake: Settings, table: str = CODE) -> int:
    """The id of the table's newest snapshot."""
    return load_table(lake, table).current_snapshot().snapshot_id


def open_reader(lake: Settings, table: str = CODE, memory_bytes: int = 1 << 20) -> SnapshotReader:
    """A reader of the table's newest snapshot, with nothing in memory."""
    loaded = load_table(lake, table)
    return SnapshotReader.at(loaded, loaded.current_snapshot().snapshot_id, LakePages(lake, memory_bytes))


def store_settings(home: Path, port: int) -> Settings:
    """A lake whose warehouse is in an S3 store at this port of the machine."""
    return Settings(
        home=home,
        cache=home,
        warehouse="s3://lake/warehouse",
        s3_endpoint=f"http://127.0.0.1:{port}",
        s3_access_key_id="key",
        s3_secret_access_key="secret",
    )


def append_rows(lake: Settings, table: str, first: int, end: int, **properties: str) -> None:
    """Append rows `first` to `end` - 1 of a packed table, with `factory.*` properties."""
    named = {f"factory.{name}": value for name, value in properties.items()}
    rows = packed_rows(table.removeprefix("packed."), end).slice(first)
    load_table(lake, table).append(rows, snapshot_properties=named)


def tags(lake: Settings, table: str = CODE) -> dict[str, int]:
    """The tags of a table and their snapshots."""
    refs = load_table(lake, table).refs()
    return {name: ref.snapshot_id for name, ref in refs.items() if name != "main"}


def make_lake(home: Path, **tables: int) -> Settings:
    """A lake with one table `packed.<name>` per argument, whose value is its number of rows."""
    settings = Settings(home=home, cache=home / "cache")
    for name, n in tables.items():
        write_table(settings, f"packed.{name}", packed_rows(name, n))
    return settings


class Server:
    """A Blender in a process of its own, or the server of another package or of a program."""

    def __init__(
        self,
        home: Path,
        *arguments: str,
        port: int = 0,
        package: str = "blender.serving",
        program: str = "",
        cwd: Path = ROOT,
    ) -> None:
        environment = {**os.environ, "FACTORY_HOME": str(home), "PYTHONPATH": str(ROOT)}
        code = ["-c", program] if program else ["-m", package]
        command = [sys.executable, *code, *arguments, "--port", str(port)]
        self.process = subprocess.Popen(
            command, env=environment, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.address = self.process.stdout.readline().strip()

    @property
    def port(self) -> int:
        return int(self.address.rsplit(":", 1)[1])

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@contextmanager
def serving(
    home: Path,
    *arguments: str,
    port: int = 0,
    package: str = "blender.serving",
    program: str = "",
    cwd: Path = ROOT,
) -> Iterator[Server]:
    """A server on the lake at `home`, by default a Blender, killed at the end."""
    server = Server(home, *arguments, port=port, package=package, program=program, cwd=cwd)
    try:
        yield server
    finally:
        server.kill()
        for stream in (server.process.stdout, server.process.stderr):
            stream.close()
