"""The outcomes of a slice as one Parquet file, and how they are read again.

A file has the rows of its items by position: the records and refusals of an item in the order in which its
kind gave them, then a row about the item itself, with its measured values. Only these last rows differ
between two attempts at a slice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from factory.errors import DamagedFile, first_line
from factory.lake.files.storage import opened
from factory.lake.schemas.synthesis_results import ITEM, RECORD, REFUSAL, RESULT
from factory.synthesis.kind import ItemOutcome, NewRecord, Value, WorkItem

MEASURED = ("seconds", "attempt", "worker", "host")
"""The columns that depend on who worked, and when."""

_GROUP_BYTES = 8 << 20  # of texts in a row group, which is held uncompressed


@dataclass(frozen=True)
class Attempt:
    """Who works on a slice, and how often it was begun."""

    attempt: int
    worker: str
    host: str


@dataclass
class SliceWriter:
    """Collects the outcomes of a slice; holds the finished row groups compressed."""

    attempt: Attempt
    _rows: list[dict[str, Any]] = field(default_factory=list)
    _n_bytes: int = 0
    _counts: dict[str, int] = field(default_factory=lambda: {RECORD: 0, REFUSAL: 0, ITEM: 0})

    def __post_init__(self) -> None:
        self._sink = pa.BufferOutputStream()
        self._writer = pq.ParquetWriter(
            self._sink, RESULT, compression="zstd", write_page_checksum=True, store_schema=False
        )

    def add(self, position: int, document: WorkItem, outcomes: list[ItemOutcome], seconds: float) -> None:
        """Add the outcomes of the next item, and the seconds that it took."""
        about: dict[str, object] = {
            "position": position,
            "doc_id": document.doc_id,
            "source": document.source,
            "item_key": document.key,
        }
        for number, outcome in enumerate(outcomes):
            self._append(about | {"number": number} | _columns(outcome))
        measures = {"seconds": seconds} | vars(self.attempt)
        self._append(about | {"number": -1, "outcome": ITEM} | measures)
        if self._n_bytes >= _GROUP_BYTES:
            self._flush()

    def close(self) -> bytes:
        """Return the file."""
        self._flush()
        self._writer.add_key_value_metadata({name: str(count) for name, count in self._counts.items()})
        self._writer.close()
        content: bytes = self._sink.getvalue().to_pybytes()
        return content

    def _append(self, row: dict[str, Any]) -> None:
        self._rows.append(row)
        self._counts[row["outcome"]] += 1
        self._n_bytes += 100 + len(row.get("text") or "") + len(row.get("sample") or b"")

    def _flush(self) -> None:
        if self._rows:
            self._writer.write_table(pa.Table.from_pylist(self._rows, schema=RESULT))
            self._rows, self._n_bytes = [], 0


def _columns(outcome: ItemOutcome) -> dict[str, object]:
    if isinstance(outcome, NewRecord):
        values = {name: fact(cell) for name, cell in outcome.values.items() if cell is not None}
        return {"outcome": RECORD, "key": outcome.key, "text": outcome.text, "values": sorted(values.items())}
    return {
        "outcome": REFUSAL,
        "key": outcome.key,
        "reason": outcome.reason,
        "detail": outcome.detail,
        "sample": outcome.sample,
    }


def fact(cell: Value) -> str:
    """Return a value as the text that `metadata` has of it."""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    return repr(cell) if isinstance(cell, float) else str(cell)


def counts_of(content: bytes) -> Mapping[str, int]:
    """Return how many records, refusals and items a file has; raises ValueError for a damaged one."""
    facts = pq.read_metadata(pa.BufferReader(content)).metadata or {}
    return {name: int(facts[name.encode()]) for name in (RECORD, REFUSAL, ITEM)}


def result_batches(uri: str, storage: Mapping[str, str]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file in the columns of `RESULT`, a row group at a time.

    `storage` has the options of the lake, as `factory.lake.files.storage.opened` takes them. Raises
    DamagedFile with the location.
    """
    try:
        with opened(uri, storage) as file, pq.ParquetFile(file, page_checksum_verification=True) as parquet:
            for number in range(parquet.num_row_groups):
                yield from parquet.read_row_group(number).cast(RESULT).to_batches()
    except (OSError, pa.ArrowException) as error:
        raise DamagedFile(
            f"The result {uri} cannot be read ({first_line(error)}). Delete it, and materialize its dataset: "
            "its slice is worked on again."
        ) from error
