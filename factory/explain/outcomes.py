"""Why each document of a dataset stayed or left, in a scratch database on disk.

Verdicts and decisions are stored in another order than documents, and a lake may have hundreds of millions of
them. SQLite sorts them on disk once, and then answers look-ups for each batch of documents.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from factory.explain.dataset_version import DatasetVersion, Pinned
from factory.lake.files.stream import stream
from factory.lake.schemas import DECISIONS, FILTERED, RAW
from factory.lake.tables import Lake

KEPT = "kept"  # the reason of a document without duplicates, and of the best of similar documents
FILTERED_OUT = "filtered"  # the reason of a document that failed a rule
UNDECIDED = "undecided"  # the reason of a document newer than the decisions

_CACHE_KB = 64 << 10
_SCHEMA = """
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
PRAGMA temp_store = FILE;
CREATE TABLE outcome (
    doc_id TEXT, kept INTEGER, reason TEXT, duplicate_of TEXT, similarity REAL, rejections TEXT
);
CREATE TABLE partner (doc_id TEXT PRIMARY KEY, key TEXT) WITHOUT ROWID;
"""
_LOOK_UP = """
SELECT outcome.doc_id, kept, reason, duplicate_of, partner.key, similarity, rejections
FROM outcome LEFT JOIN partner ON partner.doc_id = outcome.duplicate_of
WHERE outcome.doc_id IN (SELECT value FROM json_each(?))
"""
_INSERT = "INSERT INTO outcome VALUES (?, ?, ?, ?, ?, ?)"


class Outcome(NamedTuple):
    """Whether and why a document stayed; `duplicate_of_key` is the key of the kept document."""

    kept: bool
    reason: str
    duplicate_of: str | None = None
    duplicate_of_key: str | None = None
    similarity: float | None = None
    rejections: list[dict[str, Any]] | None = None


class Outcomes:
    """The outcomes of one dataset by doc_id; a document without one gets `absent`."""

    def __init__(self, file: Path, absent: Outcome) -> None:
        self._absent = absent
        self._database = sqlite3.connect(file, isolation_level=None)
        self._database.execute(f"PRAGMA cache_size = -{_CACHE_KB}")
        self._database.executescript(_SCHEMA)

    def close(self) -> None:
        """Close the database; its file may then be deleted."""
        self._database.close()

    def look_up(self, ids: Sequence[str]) -> list[Outcome]:
        """Return the outcome of each of `ids`, in their order."""
        found = {
            doc_id: Outcome(bool(kept), reason, partner, key, similarity, json.loads(said) if said else None)
            for doc_id, kept, reason, partner, key, similarity, said in self._database.execute(
                _LOOK_UP, (json.dumps(ids),)
            )
        }
        return [found.get(doc_id, self._absent) for doc_id in ids]

    def add(self, rows: Iterable[tuple[Any, ...]]) -> None:
        """Add rows of (doc_id, kept, reason, duplicate_of, similarity, rejections as JSON)."""
        self._database.execute("BEGIN")
        self._database.executemany(_INSERT, rows)
        self._database.execute("COMMIT")

    def index(self) -> None:
        """Build the index for look-ups, after all rows were added: an index slows down adding."""
        self._database.execute("CREATE UNIQUE INDEX by_id ON outcome (doc_id)")

    def name_partners(self, ids_and_keys: Iterable[tuple[str, str]]) -> None:
        """Keep the key of each document that an outcome names as the one it resembles."""
        self._database.execute("BEGIN")
        self._database.execute(
            "INSERT INTO partner SELECT DISTINCT duplicate_of, NULL FROM outcome "
            "WHERE duplicate_of IS NOT NULL ON CONFLICT DO NOTHING"
        )
        self._database.executemany("UPDATE partner SET key = ?2 WHERE doc_id = ?1", ids_and_keys)
        self._database.execute("COMMIT")


def exceptions(lake: Lake, version: DatasetVersion, file: Path, advance: Callable[[int], None]) -> Outcomes:
    """The outcomes of kept documents; only reasons other than `kept` are stored."""
    outcomes = Outcomes(file, Outcome(kept=True, reason=KEPT))
    outcomes.add(
        row
        for batch in _read(lake, version.decisions, DECISIONS.columns, _DECIDED, advance)
        for row in _decided(
            batch, version.dataset, pc.and_(batch["kept"], pc.not_equal(batch["reason"], KEPT))
        )
    )
    outcomes.index()
    return outcomes


def every_outcome(
    lake: Lake, version: DatasetVersion, file: Path, advance: Callable[[int], None]
) -> Outcomes:
    """The outcome of every document: failed rules, the decision, and the key of the kept document."""
    outcomes = Outcomes(file, Outcome(kept=False, reason=UNDECIDED))
    outcomes.add(
        row
        for batch in _read(lake, version.decisions, DECISIONS.columns, _DECIDED, advance)
        for row in _decided(batch, version.dataset, pa.scalar(True))
    )
    outcomes.add(
        row
        for batch in _read(
            lake, version.verdicts, FILTERED.columns, ["doc_id", "kept", "rejections"], advance
        )
        for row in _rejected(batch)
    )
    outcomes.index()
    for raw in version.compared:
        outcomes.name_partners(
            pair
            for batch in _read(lake, raw, RAW.columns, ["doc_id", "key"], advance)
            for pair in zip(batch["doc_id"].to_pylist(), batch["key"].to_pylist(), strict=True)
        )
    return outcomes


_DECIDED = ["doc_id", "dataset", "kept", "reason", "duplicate_of", "similarity"]


def _read(
    lake: Lake, pinned: Pinned, columns: pa.Schema, names: Sequence[str], advance: Callable[[int], None]
) -> Iterator[pa.RecordBatch]:
    asked = pa.schema([columns.field(name) for name in names])
    for batch in stream(lake.table(pinned.table), pinned.snapshot_id, asked):
        yield batch
        advance(batch.num_rows)


def _decided(batch: pa.RecordBatch, dataset: str, where: pa.Scalar | pa.Array) -> Iterator[tuple[Any, ...]]:
    rows = batch.filter(pc.and_(pc.equal(batch["dataset"], dataset), where))
    names = ("doc_id", "kept", "reason", "duplicate_of", "similarity")
    for row in zip(*(rows[name].to_pylist() for name in names), strict=True):
        yield (*row, None)


def _rejected(batch: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    rows = batch.filter(pc.invert(batch["kept"]))
    for doc_id, rejections in zip(rows["doc_id"].to_pylist(), rows["rejections"].to_pylist(), strict=True):
        yield doc_id, False, FILTERED_OUT, None, None, json.dumps(rejections or [])
