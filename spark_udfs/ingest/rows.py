"""Rows of a scan: documents and rejected records in one Arrow schema, batched by size.

A reader yields rows of `SCAN`. A row with a `reason` is a rejected record, every other row is a document, so
one pass over the input fills both tables. Inside a reader a bad record is a `BadRecord`, raised where it is
found and turned into a row where the record ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from factory.lake.identity import content_hash, doc_id
from factory.lake.schemas.images import RAW_IMAGES
from factory.lake.schemas.ingest import RAW, REJECTED, TEXT_AT
from spark_udfs.ingest import bounds
from spark_udfs.ingest.bounds import MAX_DETAIL_LETTERS
from spark_udfs.ingest.file_types import CODE

Row = dict[str, Any]

# The first byte of the part that a row with numbers of its part comes from; see `part_numbers`.
PART_AT = pa.field("part_at", pa.int64())

# The columns of both tables, all nullable, since a row belongs to one of them. Documents have a file and a
# location too. In addition, for a record in a file of many: the line (from 1) or row (from 0), the text's
# location in a registered file, and the pictures of a document that has any.
SCAN = pa.schema(
    [
        *(f.with_nullable(True) for f in RAW.columns),
        *(f.with_nullable(True) for f in REJECTED.columns if f.name not in RAW.columns.names),
        pa.field("row", pa.int64()),
        TEXT_AT,
        RAW_IMAGES,
        PART_AT,
    ]
)

# Reasons that lose no text of the declared kind: `max_rejected` counts these records in neither share.
NOTHING_LOST = frozenset(
    {"empty", "no_page", "revisit", "redirect", "http_error", "other_media", "older_capture", "notebook"}
)

DERIVED_FROM = "derived_from"  # the fact that names the document that one is made from

SAMPLE_BYTES = 256  # bytes of a rejected record to keep, for a person to read
BATCH_ROWS = 1024
BATCH_BYTES = 8 << 20  # bytes of text in a batch, without the row that fills it


@dataclass(frozen=True)
class Origin:
    """The columns that all documents of one input share."""

    source: str
    repository: str | None = None
    revision: str | None = None
    license: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    language: str | None = None  # the default of records without one


class BadRecord(Exception):
    """Why a record is rejected: a word to count by, a sentence for a person, a location in the file."""

    def __init__(self, reason: str, detail: str, location: str = "byte 0") -> None:
        super().__init__(detail)
        self.reason, self.detail, self.location = reason, detail, location


def document(origin: Origin, key: str, text: str, *, media_type: str, **columns: Any) -> Row:
    """Return the row of a document.

    Raises BadRecord `empty`, `nul_byte`, and `not_unicode` for a text that UTF-8 cannot encode. An empty file
    of code in a repository is still a document, because other files import it (`__init__.py`). `columns` are
    further columns of `RAW`; their values override the values of `origin`, and their `metadata` is added to
    its.
    """
    try:
        encoded = text.encode()
    except UnicodeEncodeError as error:
        raise BadRecord(
            "not_unicode",
            f"Character {error.start} is half of a surrogate pair, which UTF-8 cannot encode.",
        ) from None
    if not encoded and not (
        columns.get("language") in CODE and (columns.get("repository") or origin.repository)
    ):
        raise BadRecord("empty", "The text is empty.")
    if (nul := encoded.find(b"\0")) >= 0:
        raise BadRecord("nul_byte", f"Byte {nul} is NUL, which occurs in data, not in text.", f"byte {nul}")
    metadata = {**origin.metadata, **columns.pop("metadata", {})}
    return {
        "repository": origin.repository,
        "revision": origin.revision,
        "license": origin.license,
        **columns,
        "doc_id": doc_id(origin.source, key),
        "source": origin.source,
        "key": key,
        "text": text,
        "content_hash": content_hash(encoded),
        "n_bytes": len(encoded),
        "media_type": media_type,
        "metadata": list(metadata.items()) or None,
    }


def rejection(
    origin: Origin, key: str, bad: BadRecord, n_bytes: int, content: bytes = b"", n_records: int = 1
) -> Row:
    """Return the row of `n_records` rejected records of `n_bytes` bytes; the first record is `content`."""
    return {
        "doc_id": doc_id(origin.source, key),
        "source": origin.source,
        "key": key,
        "location": bad.location,
        "reason": bad.reason,
        "detail": _cut(bad.detail),
        "n_bytes": n_bytes,
        "sample": content[:SAMPLE_BYTES],
        "n_records": n_records if n_records > 1 else None,
    }


def _cut(detail: str) -> str:
    return detail if len(detail) <= MAX_DETAIL_LETTERS else f"{detail[:MAX_DETAIL_LETTERS]} ..."


def key_taken(repeated: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield rejected records for documents with the key of the earlier record at the place `first`.

    Each has the key of a record without a key, since its own key names the earlier record.
    """
    for batch in repeated:
        rows = [_taken(row) for row in batch.to_pylist()]
        yield pa.RecordBatch.from_pylist(rows, schema=REJECTED.columns)


def _taken(row: Row) -> Row:
    first = row["first"]
    detail = f"The key `{row['key']}` is taken by {first['location']} of `{first['file']}`."
    sample = (row["text"] or "")[:SAMPLE_BYTES].encode()
    bad = BadRecord("key_taken", detail, row["location"])
    of_record = rejection(Origin(row["source"]), f"{row['file']}:{row['row']}", bad, row["n_bytes"], sample)
    return {**of_record, "file": row["file"]}


def older_capture(older: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield rejected records for pages that were captured again, at the place `latest`."""
    for batch in older:
        rows = []
        for row in batch.to_pylist():
            again = row["latest"]
            detail = f"The page was captured again: {again['location']} of `{again['file']}`."
            bad = BadRecord("older_capture", detail, row["location"])
            sample = (row["text"] or "")[:SAMPLE_BYTES].encode()
            of_record = rejection(Origin(row["source"]), row["key"], bad, row["n_bytes"], sample)
            rows.append({**of_record, "file": row["file"]})
        yield pa.RecordBatch.from_pylist(rows, schema=REJECTED.columns)


def bounded(rows: Iterator[Row], origin: Origin, key: str, share: float = 1.0) -> Iterator[Row]:
    """Yield the rows of one file until `MAX_REJECTED_ROWS` rejected ones outnumber its documents.

    One more rejected record represents the unread rest. Beyond `MAX_OWN_ROWS`, and beyond as many as there
    are documents, rejected records share one row for each reason. The parts of a file have a `share` of these
    own rows each, but may all reject as many as a file: another part may begin with bad records.
    """
    most_own_rows = max(1, int(bounds.MAX_OWN_ROWS * share))
    unread = "the file" if share == 1 else "this part of the file"
    documents = rejected = n_records = 0
    location = ""
    shared: dict[str, _Shared] = {}
    for row in rows:
        location = row.get("location") or location
        if rejected >= bounds.MAX_REJECTED_ROWS and rejected > documents:
            yield from (group.row() for group in shared.values())
            detail = (
                f"{n_records:,} of the first {documents + n_records:,} records were rejected; {unread} was "
                "not read further."
            )
            yield rejection(origin, key, BadRecord("too_many_rejected", detail, location), 0)
            return
        if "reason" not in row:
            documents += 1
            yield row
            continue
        n_records += row["n_records"] or 1
        if rejected < max(most_own_rows, documents):
            yield row
        else:
            shared.setdefault(row["reason"], _Shared(row)).add(row)
        rejected += 1
    yield from (group.row() for group in shared.values())


@dataclass
class _Shared:
    """Rejected records of one reason that share the row of their `first`."""

    first: Row
    last: str = ""
    n_records: int = 0
    n_bytes: int = 0

    def add(self, row: Row) -> None:
        self.last = row["location"]
        self.n_records += row["n_records"] or 1
        self.n_bytes += row["n_bytes"]

    def row(self) -> Row:
        if self.n_records == (self.first["n_records"] or 1):
            return self.first
        detail = (
            f"{self.n_records:,} records from {self.first['location']} to {self.last} share this row. "
            f"The first: {self.first['detail']}"
        )
        return {**self.first, "detail": _cut(detail), "n_records": self.n_records, "n_bytes": self.n_bytes}


def picture_bytes(row: Row) -> int:
    """Return how many bytes the pictures of a row have."""
    return sum(len(picture["content"]) for picture in row.get(RAW_IMAGES.name) or ())


def _weight(row: Row) -> int:
    """Return roughly how many bytes a row has: the texts of all its columns, and its pictures."""
    n_bytes = sum(len(text) for text in row.values() if isinstance(text, str | bytes))
    n_bytes += picture_bytes(row)
    return n_bytes + sum(len(name) + len(text) for name, text in row.get("metadata") or ())


def in_batches(rows: Iterator[Row]) -> Iterator[pa.RecordBatch]:
    """Yield Arrow batches of `SCAN`: about `BATCH_BYTES` of text or `BATCH_ROWS` rows, if that is less."""
    batch: list[Row] = []
    n_bytes = 0
    for row in rows:
        batch.append(row)
        n_bytes += _weight(row)
        if n_bytes >= BATCH_BYTES or len(batch) >= BATCH_ROWS:
            yield pa.RecordBatch.from_pylist(batch, schema=SCAN)
            batch, n_bytes = [], 0
    if batch:
        yield pa.RecordBatch.from_pylist(batch, schema=SCAN)
