"""Files of rows for other tools: Parquet, or JSON lines that may be compressed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from factory.errors import ConfigurationError

Write = Callable[[pa.RecordBatch], None]

_GROUP_BYTES = 64 << 20  # of a row group in memory
_ROWS_AT_ONCE = 1024  # as objects of Python, which take more memory than a batch
_COMPRESSION = {".jsonl": None, ".jsonl.gz": "gzip", ".jsonl.zst": "zstd"}


def require_format(file: Path) -> None:
    """Raise ConfigurationError for a file with a suffix of no known format."""
    if _ending(file) not in (".parquet", *_COMPRESSION):
        raise ConfigurationError(
            f"{file.name} names no format. End it in .parquet, .jsonl, .jsonl.gz or .jsonl.zst."
        )


@contextmanager
def writer(file: Path, temporary: Path, schema: pa.Schema) -> Iterator[Write]:
    """Yield a function that appends batches to `temporary`, in the format that the suffix of `file` names."""
    require_format(file)
    ending = _ending(file)
    chosen = _parquet(temporary, schema) if ending == ".parquet" else _jsonl(temporary, _COMPRESSION[ending])
    with chosen as write:
        yield write


@contextmanager
def _parquet(file: Path, schema: pa.Schema) -> Iterator[Write]:
    waiting: list[pa.RecordBatch] = []

    with pq.ParquetWriter(file, schema, compression="zstd") as parquet:

        def flush() -> None:
            if waiting:
                parquet.write_table(pa.Table.from_batches(waiting))
                waiting.clear()

        def write(batch: pa.RecordBatch) -> None:
            waiting.append(batch)
            if sum(batch.nbytes for batch in waiting) >= _GROUP_BYTES:
                flush()

        yield write
        flush()


@contextmanager
def _jsonl(file: Path, compression: str | None) -> Iterator[Write]:
    with pa.OSFile(str(file), "wb") as plain:
        output = pa.CompressedOutputStream(plain, compression) if compression else plain

        def write(batch: pa.RecordBatch) -> None:
            for first in range(0, batch.num_rows, _ROWS_AT_ONCE):
                rows = _rows(batch.slice(first, _ROWS_AT_ONCE))
                lines = [json.dumps(row, ensure_ascii=False, default=_plain) for row in rows]
                output.write("".join(f"{line}\n" for line in lines).encode())

        yield write
        output.close()


def _rows(batch: pa.RecordBatch) -> Iterator[dict[str, object]]:
    """Yield rows as JSON has them: a map becomes an object."""
    maps = [field.name for field in batch.schema if pa.types.is_map(field.type)]
    for row in batch.to_pylist():
        yield row | {name: dict(row[name]) for name in maps if row[name] is not None}


def _plain(value: object) -> str:
    assert isinstance(value, datetime), value
    return value.isoformat()


def _ending(file: Path) -> str:
    """Return the suffix of a file; a compressed file has two."""
    return "".join(file.suffixes[-2:]) if file.suffix in (".gz", ".zst") else file.suffix
