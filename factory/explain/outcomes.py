"""Why each document of a dataset stayed or left, in a scratch database on disk.

Verdicts and decisions are stored in another order than documents, and a lake may have hundreds of millions of
them. SQLite sorts them on disk once, and then answers look-ups for each batch of documents.
"""

from __future__ import annotations

import json
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from factory.explain.dataset_version import PinnedTable
from factory.explain.stages.registry import STAGES
from factory.explain.stages.removals import Read
from factory.lake.schemas.ingest import RAW

KEPT = "kept"  # the reason of a document without duplicates, and of the best of similar documents
UNDECIDED = "undecided"  # the reason of a document newer than the decisions

_CACHE_KB = 64 << 10
_SCHEMA = """
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
PRAGMA temp_store = FILE;
CREATE TABLE outcome (
    doc_id TEXT, kept INTEGER, reason TEXT, duplicate_of TEXT, similarity REAL, kept_document TEXT,
    rejections TEXT
);
CREATE TABLE partner (doc_id TEXT PRIMARY KEY, key TEXT) WITHOUT ROWID;
"""
_LOOK_UP = """
SELECT
    outcome.doc_id, kept, reason, duplicate_of, twin.key, similarity, kept_document, stays.key, rejections
FROM outcome
LEFT JOIN partner AS twin ON twin.doc_id = duplicate_of
LEFT JOIN partner AS stays ON stays.doc_id = kept_document
WHERE outcome.doc_id IN (SELECT value FROM json_each(?))
ORDER BY outcome.rowid
"""
_INSERT = "INSERT INTO outcome VALUES (?, ?, ?, ?, ?, ?, ?)"


class Outcome(NamedTuple):
    """Whether and why a document stayed, with the ids and keys of its duplicate and of the kept document."""

    kept: bool
    reason: str
    duplicate_of: str | None = None
    duplicate_of_key: str | None = None
    similarity: float | None = None
    kept_document: str | None = None
    kept_document_key: str | None = None
    rejections: list[dict[str, Any]] | None = None


class Outcomes:
    """The outcomes of one dataset by doc_id; a document without one gets `absent`.

    The database is an unnamed file in `folder`; it disappears with this process, even a killed one.
    """

    def __init__(self, folder: Path, absent: Outcome) -> None:
        self._absent = absent
        with tempfile.NamedTemporaryFile(prefix=".outcomes-", dir=folder) as file:
            self._database = sqlite3.connect(file.name, isolation_level=None)
            self._database.execute(f"PRAGMA cache_size = -{_CACHE_KB}")
            self._database.executescript(_SCHEMA)

    def close(self) -> None:
        """Close the database, which deletes it."""
        self._database.close()

    def look_up(self, ids: Sequence[str]) -> list[Outcome]:
        """Return the outcome of each of `ids`, in their order."""
        outcomes: dict[str, Outcome] = {}
        rows = self._database.execute(_LOOK_UP, (json.dumps(ids),))
        for doc_id, stays, reason, *documents, rules in rows:
            rejections = json.loads(rules) if rules else None
            outcome = Outcome._make((bool(stays), reason, *documents, rejections))
            outcomes.setdefault(doc_id, outcome)
        return [outcomes.get(doc_id, self._absent) for doc_id in ids]

    def add(self, rows: Iterable[tuple[Any, ...]]) -> None:
        """Add rows of (doc_id, kept, reason, duplicate_of, similarity, kept_document, rejections as JSON).

        The first row of a document counts.
        """
        self._database.execute("BEGIN")
        self._database.executemany(_INSERT, rows)
        self._database.execute("COMMIT")

    def index(self) -> None:
        """Build the index for look-ups, after all rows were added: an index slows down adding."""
        self._database.execute("CREATE INDEX by_id ON outcome (doc_id)")

    def name_partners(self, documents: Iterable[pa.RecordBatch]) -> None:
        """Store the keys of the documents that outcomes name; `documents` have a doc_id and a key.

        Outcomes name few documents, and SQLite takes microseconds to find that one is not named. So numpy
        first compares the beginnings of ids; it holds 8 bytes per named document in memory.
        """
        self._database.execute("BEGIN")
        self._database.execute(
            "INSERT INTO partner "
            "SELECT duplicate_of, NULL FROM outcome WHERE duplicate_of IS NOT NULL "
            "UNION SELECT kept_document, NULL FROM outcome WHERE kept_document IS NOT NULL"
        )
        partners = _beginnings(it for (it,) in self._database.execute("SELECT doc_id FROM partner"))
        for batch in documents:
            ids, keys = batch["doc_id"].to_pylist(), batch["key"].to_pylist()
            self._database.executemany(
                "UPDATE partner SET key = ?2 WHERE doc_id = ?1",
                ((ids[place], keys[place]) for place in _found(_beginnings(ids), partners)),
            )
        self._database.execute("COMMIT")


def exceptions(read: Read, folder: Path) -> Outcomes:
    """The outcomes of kept documents; only reasons other than `kept` are stored."""
    outcomes = Outcomes(folder, Outcome(kept=True, reason=KEPT))
    for view in STAGES:
        for batch in view.survivors(read):
            outcomes.add(_stays(batch.filter(pc.not_equal(batch["reason"], KEPT))))
    outcomes.index()
    return outcomes


def every_outcome(read: Read, compared: Iterable[PinnedTable], folder: Path) -> Outcomes:
    """The outcome of every document: failed rules, the decision, and the keys of the documents it names.

    `compared` are the raw tables of all documents that were compared.
    """
    outcomes = Outcomes(folder, Outcome(kept=False, reason=UNDECIDED))
    for view in STAGES:
        for batch in view.survivors(read):
            outcomes.add(_stays(batch))
        for batch in view.removals(read, None):
            outcomes.add(_leaves(batch.to_pylist()))
    outcomes.index()
    outcomes.name_partners(
        batch for raw in compared for batch in read.batches(raw.table, RAW, ("doc_id", "key"))
    )
    return outcomes


def _stays(kept: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    """Yield rows for `Outcomes.add` of documents that a stage keeps."""
    for doc_id, reason in zip(kept["doc_id"].to_pylist(), kept["reason"].to_pylist(), strict=True):
        yield doc_id, True, reason, None, None, None, None


def _leaves(removals: Sequence[Mapping[str, Any]]) -> Iterator[tuple[Any, ...]]:
    """Yield rows for `Outcomes.add` of removed documents; all removals of a document are adjacent."""
    for doc_id, group in groupby(removals, key=itemgetter("doc_id")):
        by_document = list(group)
        first = by_document[0]
        if first["limit"] is None:
            documents = first["partner"], first["value"], first["kept_document"]
            yield doc_id, False, first["reason"], *documents, None
            continue
        rejections = [
            {"rule": removal["reason"], "value": removal["value"], "threshold": removal["limit"]}
            for removal in by_document
        ]
        yield doc_id, False, first["outcome"], None, None, None, json.dumps(rejections)


def _beginnings(ids: Iterable[str]) -> np.ndarray:
    """Return the first eight bytes of each id as a number; the numbers of sorted ids are sorted."""
    return np.fromiter(ids, "S8").view(">u8").astype(np.uint64)


def _found(numbers: np.ndarray, ascending: np.ndarray) -> np.ndarray:
    """Return the positions of those `numbers` that `ascending` contains."""
    if not len(ascending):
        return np.array([], np.int64)
    at = np.searchsorted(ascending, numbers)
    return np.flatnonzero(ascending[np.minimum(at, len(ascending) - 1)] == numbers)
