"""The rows that `bench layout` reads: real text in tokens, packed, in Parquet with pages of a chosen size.

The standard library of this Python installation, in the order of its files' hashes, is cut into rows of 2,048
tokens of a vocabulary of 16,384 trained on it. The rows are repeated, each time with other neighbours, until
there are `ROWS`. Tokens are kept below FACTORY_CACHE; a layout's table lives while it is measured.
"""

from __future__ import annotations

import logging
import sysconfig
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console

from factory.lake.catalog import open_catalog
from factory.lake.schemas import SEQUENCE_LENGTH, TOKEN_BYTES
from factory.packing.tokenizer import train
from factory.settings import Settings, settings
from spark_udfs.packing.tokenize import encode

ROWS, LENGTH = 32_768, 2_048
VOCABULARY = 16_384
TABLE = "packed.layout"
_TRAINED_ON = 4 << 20  # bytes of text
_ROW_GROUP = 8_192


@dataclass(frozen=True)
class Layout:
    """How the token column lies in its files."""

    token_bytes: int
    page_rows: int
    codec: str
    length: int = LENGTH
    """Tokens of a row."""

    @property
    def name(self) -> str:
        """Its part of a number's name."""
        longer = "" if self.length == LENGTH else f".l{self.length}"
        return f"{self.codec}.p{self.page_rows}.w{self.token_bytes}{longer}"


def tokens(progress: Console) -> np.ndarray:
    """Whole rows of the standard library, an array of shape (rows, LENGTH)."""
    home = settings().cache.resolve() / "bench" / "layout"
    path = home / f"tokens-{sysconfig.get_python_version()}-{VOCABULARY}.npy"
    if not path.exists():
        progress.print(f"tokenizing the standard library into {path}")
        home.mkdir(parents=True, exist_ok=True)
        np.save(path, _tokenized(_texts()))
    rows: np.ndarray = np.load(path)
    return rows


def repeated(rows: np.ndarray, n_rows: int) -> np.ndarray:
    """`n_rows` rows, whole rounds of `rows`, each in another order."""
    random = np.random.default_rng(0)
    rounds = [random.permutation(len(rows)) for _ in range(-(-n_rows // len(rows)))]
    return rows[np.concatenate(rounds)[:n_rows]]


def write_table(lake: Settings, rows: np.ndarray, layout: Layout) -> Path:
    """Write `TABLE` with pages of exactly `layout.page_rows` rows in both columns; gives its one file."""
    schema = pa.schema([("ordinal", pa.int64()), ("tokens", pa.binary())])
    path = lake.home / f"{layout.name}.parquet"
    lake.home.mkdir(parents=True, exist_ok=True)
    options = {
        "compression": layout.codec,
        "use_dictionary": False,
        "write_statistics": ["ordinal"],  # pyarrow would put a whole least and greatest row into every page
        "write_page_index": True,
        "write_batch_size": layout.page_rows,
        "data_page_size": 1,  # a page ends with the first batch that makes it as long: every batch is one
    }
    with pq.ParquetWriter(path, schema, **options) as writer:
        for begin in range(0, len(rows), _ROW_GROUP):
            part = np.ascontiguousarray(rows[begin : begin + _ROW_GROUP])
            offsets = np.arange(0, part.nbytes + 1, part[0].nbytes, dtype=np.int32)
            column = pa.Array.from_buffers(
                pa.binary(), len(part), [None, pa.py_buffer(offsets), pa.py_buffer(part)]
            )
            ordinals = pa.array(range(begin, begin + len(part)), pa.int64())
            writer.write_table(pa.table([ordinals, column], schema=schema), row_group_size=_ROW_GROUP)
    return path


def publish(lake: Settings, path: Path, layout: Layout) -> None:
    """Make the file the table."""
    # It warns of a column without least and greatest value, which tokens have no use for.
    logging.getLogger("pyiceberg.io.pyarrow").setLevel(logging.ERROR)
    catalog = open_catalog(lake)
    catalog.create_namespace_if_not_exists("packed")
    properties = {TOKEN_BYTES: str(layout.token_bytes), SEQUENCE_LENGTH: str(layout.length)}
    table = catalog.create_table(TABLE, schema=pq.read_schema(path), properties=properties)
    table.add_files([path.as_uri()], snapshot_properties={"factory.content": layout.name})


def _texts() -> list[str]:
    folder = Path(sysconfig.get_paths()["stdlib"])
    found = {}
    for path in folder.rglob("*.py"):
        if "site-packages" not in path.parts:
            content = path.read_bytes()
            found[blake2b(content).digest()] = content.decode("utf-8", "replace")
    return [found[content] for content in sorted(found)]


def _tokenized(texts: list[str]) -> np.ndarray:
    sample, n_bytes = [], 0
    for text in texts:
        sample.append(text)
        n_bytes += len(text)
        if n_bytes > _TRAINED_ON:
            break
    joined = np.concatenate(encode(texts, train(iter(sample), VOCABULARY), None, None)).astype(np.uint16)
    return joined[: len(joined) // LENGTH * LENGTH].reshape(-1, LENGTH)
