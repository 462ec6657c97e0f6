"""FACTS: the symbols of every file by itself, before the files of a repository are grouped.

Spark runs `extract` where the documents lie, so their text never travels. Only the small FACTS table is
grouped by repository. It also carries the text of the manifests (`go.mod`) that languages need.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pyarrow as pa

from spark_udfs.depsort.gc_pause import gc_paused
from spark_udfs.depsort.isolated import Isolated
from spark_udfs.depsort.model import MAX_SOURCE_BYTES, FileSymbols
from spark_udfs.depsort.registry import language_of, languages, manifest_names

MAX_MANIFEST_BYTES = 200_000  # longer manifests are ignored
MAX_PARSE_BYTES = 1 << 30  # memory for one syntax tree; 1 MB of code takes a tenth of it
MAX_PARSE_CPU_S = 30  # the slowest input that the languages' own bounds admit takes 6 s (250 kB of Kotlin)
MANIFEST = "manifest"  # the `language` of a row of FACTS whose `facts` are a manifest's text

FACTS = pa.schema(
    [
        pa.field("doc_id", pa.string(), nullable=False),
        pa.field("repository", pa.string(), nullable=False),
        pa.field("revision", pa.string()),
        pa.field("path", pa.string(), nullable=False),
        pa.field("language", pa.string(), nullable=False),
        pa.field("facts", pa.string(), nullable=False),  # FileSymbols as JSON
        pa.field("unread", pa.string()),  # why the file gives no symbols: `too_large`, `out_of_bounds`
        pa.field("partition", pa.string()),
    ]
)


def extract(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """FACTS of the documents in a known language; the input has `text` in place of `facts` and `unread`."""
    for batch in batches:
        with gc_paused():
            facts = pa.RecordBatch.from_pylist(list(_rows(batch)), schema=FACTS)
        yield facts


def _rows(batch: pa.RecordBatch) -> Iterator[dict[str, str | None]]:
    columns = batch.select(["doc_id", "repository", "revision", "path", "language", "partition"]).to_pylist()
    texts = batch.column("text").cast(pa.binary())
    for row, text in zip(columns, texts, strict=True):
        path = str(row["path"])
        language = language_of(row["language"], path)
        if not text.is_valid:
            continue
        if path.rpartition("/")[2] in manifest_names():
            if len(text.as_buffer()) <= MAX_MANIFEST_BYTES:
                yield row | {"language": MANIFEST, "facts": text.as_py().decode("utf-8", "replace")}
        elif language is not None:
            yield row | {"language": language} | _facts(language, path, text)


def _facts(language: str, path: str, text: pa.BinaryScalar) -> dict[str, str]:
    """Columns `facts` and `unread` of one file."""
    if len(text.as_buffer()) > MAX_SOURCE_BYTES:
        return {"facts": FileSymbols().to_json(), "unread": "too_large"}
    facts = reader()(language, path, text.as_py())
    if facts is None:
        return {"facts": FileSymbols().to_json(), "unread": "out_of_bounds"}
    return {"facts": facts}


@cache
def reader() -> Isolated[[str, str, bytes], str]:
    """`read` in a child process that lives as long as the worker, because loading the grammars takes time."""
    return Isolated(read, MAX_PARSE_BYTES, MAX_PARSE_CPU_S)


def read(language: str, path: str, source: bytes) -> str:
    """The symbols of one file of a known language as JSON."""
    return languages()[language].extract(source, path).to_json()
