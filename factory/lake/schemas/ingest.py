"""The tables of raw documents, and of the records that were rejected."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from factory.lake.schemas.base import DOC_ID, TableSchema, column, required, table

DOCUMENT = (
    DOC_ID,
    required("source", pa.string(), "name of the source"),
    required("key", pa.string(), "identifies the document in its source, such as a path or an address"),
    column("text", pa.string(), "the text; null for a document that is not text"),
    required("content_hash", pa.string(), "hash of the text"),
    required("n_bytes", pa.int64(), "length of the text in bytes"),
    required("media_type", pa.string(), "media type, such as text/plain"),
    column("content", pa.binary(), "the bytes of a document that is not text"),
    column("language", pa.string(), "language, as the source or the file's extension says"),
    column("repository", pa.string(), "repository of the file"),
    column("path", pa.string(), "path of the file in its repository"),
    column("revision", pa.string(), "revision of the repository"),
    column("license", pa.string(), "license, as an SPDX expression where it is known"),
    column("fork_of", pa.string(), "repository that this one is a fork of"),
    column("stars", pa.int64(), "stars of the repository"),
    column("created_at", pa.timestamp("us", tz="UTC"), "time of creation"),
    column("metadata", pa.map_(pa.string(), pa.string()), "further fields of the record"),
    column("quality", pa.float64(), "how good the document is, as its source says; more is better"),
)

RAW = table(
    *DOCUMENT,
    chart="ingest.bytes",
)

# An extra column of raw tables with texts that stay in the user's own Parquet files. Readers fill in the text
# and omit the column, so such a table looks as if it had been rewritten.
TEXT_AT = pa.field(
    "text_at",
    pa.struct(
        [
            pa.field("file", pa.string()),  # as the registered table names it
            pa.field("column", pa.string()),
            pa.field("row", pa.int64()),  # from 0
            pa.field("file_bytes", pa.int64()),  # size and time, or ETag, of the file when it was registered
            pa.field("modified_ns", pa.int64()),
        ]
    ),
)


def thin(schema: TableSchema) -> TableSchema:
    """`schema` of documents with the column `text_at`."""
    return replace(schema, columns=schema.columns.append(TEXT_AT))


REJECTED = table(
    DOC_ID,
    required("source", pa.string(), "name of the source"),
    required("key", pa.string(), "identifies the record in its source"),
    column("file", pa.string(), "file of many records that holds it, as a path below its source's folder"),
    required("location", pa.string(), "place in its file: `byte 512`, `line 17`, `row 3`"),
    required("reason", pa.string(), "one word for counting: `not_utf8`, `not_json`, ..."),
    required("detail", pa.string(), "one sentence for a person"),
    required("n_bytes", pa.int64(), "length of the record in bytes"),
    column("sample", pa.binary(), "first bytes of the record"),
    column("n_records", pa.int64(), "number of records that share the row, null for one"),
    about="The records that the reader rejected, each with its reason and location.",
    chart="ingest.rejected",
)

LIMIT = "factory.limit"  # snapshot property: how many records were read, in a table that was read in part

_FACTS = required("facts", pa.map_(pa.string(), pa.string()), "what is known, by name")

FACT_ROWS = table(
    required("source", pa.int32(), "number of its declaration, from 0"),
    required("by", pa.string(), "the field of documents that it is joined by: key, host or repository"),
    required("value", pa.string(), "the key, host or repository"),
    _FACTS,
    required("file", pa.string(), "name of the file"),
    required("row", pa.int64(), "number of the row in its file, from 1"),
    key=("source", "file", "row"),
    about="What files say about keys, hosts and repositories, a row each.",
    chart="ingest.facts",
)

FACTS = table(DOC_ID, _FACTS)
