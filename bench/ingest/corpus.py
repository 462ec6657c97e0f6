"""One file of records in several formats: sources and prose of this Python installation, with addresses.

A file of the installation is the text of a record. Where they do not suffice they are taken again, with other
keys; no compression looks back that far.
"""

from __future__ import annotations

import gzip
import json
import shutil
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import chain, count, islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard
from rich.console import Console

from bench.cache import cached
from bench.installation import installed_files

SUFFIXES = (".py", ".rst", ".md", ".txt")
LEAST_CHARACTERS, MOST_CHARACTERS = 200, 1_000_000  # of a text
ROWS_A_GROUP = 1_000  # as datatrove writes
SCHEMA = pa.schema([(name, pa.string()) for name in ("id", "text", "url", "license")])
MORE_FORMATS = ("jsonl.gz", "jsonl.zst", "one_group.parquet")
"""The last one has all rows in one group, as pyarrow writes up to a million rows."""


@dataclass(frozen=True)
class Texts:
    """The number of texts, their bytes in UTF-8, and the sum of their CRC-32, which no order changes."""

    n_records: int
    n_bytes: int
    crc: int


@dataclass(frozen=True)
class Corpus:
    """The files `all.<format>` and `one.<format>`, of one record, in a folder."""

    folder: Path
    texts: Texts


def corpus(n_bytes: int, console: Console, *, in_more_formats: bool = False) -> Corpus:
    """The corpus of at least so many bytes of text; made if missing."""

    def make(folder: Path) -> None:
        console.print(f"writing {n_bytes / 1e6:,.0f} MB of records into {folder}")
        write(folder, n_bytes)
        if in_more_formats:
            write_more_formats(folder)

    folder = cached(f"ingest-{n_bytes}{'-formats' * in_more_formats}", make)
    return Corpus(folder, Texts(**json.loads((folder / "texts").read_text())))


def write(folder: Path, n_bytes: int) -> None:
    """Write JSON lines and Parquet, and the facts of all texts."""
    records = _records(n_bytes)
    first = next(records)
    _write(folder / "one", iter([first]))
    facts = _write(folder / "all", chain([first], records))
    (folder / "texts").write_text(json.dumps(asdict(facts)))


def write_more_formats(folder: Path) -> None:
    """Write the records in the other formats, too."""
    plain = folder / "all.jsonl"
    with plain.open("rb") as lines, gzip.open(f"{plain}.gz", "wb", compresslevel=6) as archive:
        shutil.copyfileobj(lines, archive)
    with plain.open("rb") as lines, Path(f"{plain}.zst").open("wb") as archive:
        zstandard.ZstdCompressor().copy_stream(lines, archive)
    rows = pq.read_table(folder / "all.parquet")
    pq.write_table(rows, folder / "all.one_group.parquet", compression="zstd")


def _records(n_bytes: int) -> Iterator[dict[str, str]]:
    """Yield records until their texts have so many bytes."""
    for turn in count():
        for path in installed_files():
            text = _text(path) if path.suffix in SUFFIXES else ""
            if not LEAST_CHARACTERS <= len(text) <= MOST_CHARACTERS or text.lstrip().startswith("<"):
                continue  # a web page is no document of these readers
            key = f"{turn}-{zlib.crc32(bytes(path)):08x}-{len(text)}"
            address = f"https://files.example/{turn}/{'/'.join(path.parts[-3:])}"
            yield {"id": key, "text": text, "url": address, "license": "unknown"}
            n_bytes -= len(text.encode())
            if n_bytes <= 0:
                return


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")  # our reader of Parquet drops a byte order mark
    except (UnicodeDecodeError, OSError):
        return ""


def _write(stem: Path, records: Iterator[dict[str, str]]) -> Texts:
    n_records = n_bytes = crc = 0
    with (
        Path(f"{stem}.jsonl").open("wb") as lines,
        pq.ParquetWriter(f"{stem}.parquet", SCHEMA, compression="zstd") as groups,
    ):
        while rows := list(islice(records, ROWS_A_GROUP)):
            groups.write_table(pa.Table.from_pylist(rows, SCHEMA))
            for row in rows:
                text = row["text"].encode()
                n_records, n_bytes, crc = n_records + 1, n_bytes + len(text), crc + zlib.crc32(text)
                lines.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
    return Texts(n_records, n_bytes, crc)
