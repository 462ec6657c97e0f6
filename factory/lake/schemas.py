"""The declared schemas of the lake's tables.

A schema is declared once, in Arrow, and rendered for PyIceberg (which creates the table) and for Spark
(which fills it); nothing is inferred from data. Changes are additive, because an Iceberg schema is not
branched.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

# Columns about the storage of content, not content: a row's location, or the text of a token that several
# bags share.
UNFINGERPRINTED = frozenset({"partition", "token_texts"})


@dataclass(frozen=True)
class TableSchema:
    """The columns and layout of a table.

    `key` identifies a row; `partition_by` are identity partition columns; `sort_by` is the order in which
    files and rows are written; `properties` are default Iceberg table properties. With `may_shrink` a
    nullable column that is no longer declared stays in the table, null in new rows. `about` and
    `descriptions` describe the rows and each column; no table depends on their wording.
    """

    columns: pa.Schema
    key: tuple[str, ...]
    partition_by: tuple[str, ...] = ()
    sort_by: tuple[str, ...] = ()
    properties: dict[str, str] = field(default_factory=dict)
    may_shrink: bool = False
    about: str = field(default="", repr=False, compare=False)
    descriptions: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in (*self.key, *self.partition_by, *self.sort_by):
            assert name in self.columns.names, f"{name} is not a column of {self.columns.names}"

    @property
    def names(self) -> list[str]:
        """The column names in order."""
        return list(self.columns.names)

    @property
    def fingerprinted(self) -> list[str]:
        """The columns that make up the content fingerprint, sorted by name."""
        return sorted(set(self.names) - UNFINGERPRINTED)


_PARTITION = "the key of the row's partition; null in tables without partitions"


def _required(name: str, kind: pa.DataType, description: str) -> pa.Field:
    return _column(name, kind, description, nullable=False)


def _column(name: str, kind: pa.DataType, description: str, *, nullable: bool = True) -> pa.Field:
    """Return a field that carries its description as far as `_table`."""
    return pa.field(name, kind, nullable, {"description": description})


def columns(*fields: pa.Field) -> pa.Schema:
    """Return a schema of `fields` plus the column `partition`, which every table has."""
    return pa.schema([*(it.remove_metadata() for it in fields), pa.field("partition", pa.string())])


def _table(*fields: pa.Field, key: tuple[str, ...] = ("doc_id",), **options: Any) -> TableSchema:
    """Return a table with the descriptions of its columns, by default with a row per document."""
    described = {it.name: it.metadata[b"description"].decode() for it in fields} | {"partition": _PARTITION}
    return TableSchema(columns(*fields), key, descriptions=described, **options)


def _list_of(kind: pa.DataType, *, nullable: bool = True) -> pa.ListType:
    return pa.list_(pa.field("element", kind, nullable=nullable))


# Parquet-mr looks at the size of a page for the first time after so many rows, 100 by default, and the first
# page of a row group has as many.
_EARLY_LOOK = {"write.parquet.row-group-check-min-record-count": "8"}

_DOC_ID = _required("doc_id", pa.string(), "identifies the document: a hash of its source and key")

_DOCUMENT = (
    _DOC_ID,
    _required("source", pa.string(), "name of the source"),
    _required("key", pa.string(), "identifies the document in its source, such as a path or an address"),
    _column("text", pa.string(), "the text; null for a document that is not text"),
    _required("content_hash", pa.string(), "hash of the text"),
    _required("n_bytes", pa.int64(), "length of the text in bytes"),
    _required("media_type", pa.string(), "media type, such as text/plain"),
    _column("content", pa.binary(), "the bytes of a document that is not text"),
    _column("language", pa.string(), "language, as the source or the file's extension says"),
    _column("repository", pa.string(), "repository of the file"),
    _column("path", pa.string(), "path of the file in its repository"),
    _column("revision", pa.string(), "revision of the repository"),
    _column("license", pa.string(), "license, as an SPDX expression where it is known"),
    _column("fork_of", pa.string(), "repository that this one is a fork of"),
    _column("stars", pa.int64(), "stars of the repository"),
    _column("created_at", pa.timestamp("us", tz="UTC"), "time of creation"),
    _column("metadata", pa.map_(pa.string(), pa.string()), "further fields of the record"),
)

RAW = _table(*_DOCUMENT)

# The unit of sorting and packing: two revisions of a repository are two trees of files.
REPOSITORY = ("repository", "revision")

# An extra column of raw tables with texts that stay in the user's own Parquet files. Readers fill in the text
# and omit the column, so such a table looks as if it had been rewritten.
TEXT_AT = pa.field(
    "text_at",
    pa.struct(
        [
            pa.field("file", pa.string()),  # as the registered table names it
            pa.field("column", pa.string()),
            pa.field("row", pa.int64()),  # from 0
            pa.field("file_bytes", pa.int64()),  # size and time of the file when it was registered
            pa.field("modified_ns", pa.int64()),
        ]
    ),
)


def thin(schema: TableSchema) -> TableSchema:
    """`schema` of documents with the column `text_at`."""
    return replace(schema, columns=schema.columns.append(TEXT_AT))


REJECTED = _table(
    _DOC_ID,
    _required("source", pa.string(), "name of the source"),
    _required("key", pa.string(), "identifies the record in its source"),
    _required("location", pa.string(), "place in its file: `byte 512`, `line 17`, `row 3`"),
    _required("reason", pa.string(), "one word for counting: `not_utf8`, `not_json`, ..."),
    _required("detail", pa.string(), "one sentence for a person"),
    _required("n_bytes", pa.int64(), "length of the record in bytes"),
    _column("sample", pa.binary(), "first bytes of the record"),
    _column("n_records", pa.int64(), "number of records that share the row, null for one"),
    about="The records that the reader rejected, each with its reason and location.",
)


def signals_schema(numbers: Sequence[str], words: Sequence[str] = ()) -> TableSchema:
    """The schema of `signals.<dataset>`: a nullable double for each number, then a string for each word."""
    return _table(
        _DOC_ID,
        *(_column(name, pa.float64(), "a number that rules judge") for name in numbers),
        *(_column(name, pa.string(), "a word that rules judge") for name in words),
        may_shrink=True,  # rules come and go
    )


_REJECTION = [("rule", pa.string()), ("value", pa.float64()), ("threshold", pa.float64())]

FILTERED = _table(
    _DOC_ID,
    _required("kept", pa.bool_(), "whether the document passes every rule"),
    _column("rejections", _list_of(pa.struct(_REJECTION)), "every failed rule, with value and limit"),
    partition_by=("kept",),
)

BAGS = _table(
    _required("content_hash", pa.string(), "hash of the text"),
    _required("copies", pa.int64(), "documents that share the text"),
    _required("n_tokens", pa.int64(), "tokens in the text"),
    _required("bag", pa.binary(), "distinct tokens and their counts (`native/src/dedup/packed_bag.rs`)"),
    _required("token_texts", pa.binary(), "texts of tokens that no earlier bag has"),
    key=("content_hash",),
    properties={
        "write.parquet.compression-codec": "uncompressed",
        # Some 16 bags: the comparison reads each bag with its page. Pages of as few rows in all columns would
        # cost as much to write as they save in reading.
        "write.parquet.page-size-bytes": str(32 << 10),
        **_EARLY_LOOK,
    },
)

VOCABULARY = _table(
    _required("token", pa.int64(), "64-bit hash of the token's bytes"),
    _required("document_frequency", pa.int64(), "documents with the token"),
    _required("term_frequency", pa.int64(), "occurrences of the token"),
    _column("text", pa.string(), "the token, for frequent ones only"),
    _required("n_documents", pa.int64(), "documents counted, the same in every row"),
    key=("token",),
)

SIGNATURES = _table(
    _required("doc_id", pa.string(), "the representative of one distinct text"),
    _required("dataset", pa.string(), "dataset of the representative"),
    _required("content_hash", pa.string(), "hash of the text"),
    _required("copies", pa.int64(), "documents that share the text"),
    _required("n_tokens", pa.int64(), "tokens in the text"),
    _required("n_distinct", pa.int64(), "distinct tokens in the text"),
    _column("signature", pa.binary(), "weighted MinHash values; null for a text without tokens"),
    _required("version", pa.string(), "method, values, bits, seed and vocabulary"),
)

BUCKETS = _table(
    _required("doc_id", pa.string(), "the representative of one distinct text"),
    # A row per band would make all readers ten times as slow.
    _required("buckets", _list_of(pa.int64(), nullable=False), "one bucket per band, in the bands' order"),
)

LARGEST_BUCKETS = _table(
    _required("doc_id", pa.string(), "the best document of the bucket"),
    _required("dataset", pa.string(), "dataset of the document"),
    _required("members", pa.int64(), "distinct texts of the largest bucket it is best of"),
    _required("bands", pa.int32(), "bands in which it is the best of one of the largest buckets"),
    _required("text", pa.string(), "first 200 characters of the document"),
)

EDGES = _table(
    _required("left", pa.string(), "one document of the pair"),
    _required("right", pa.string(), "the other document"),
    _required("estimate", pa.float64(), "similarity, estimated from the two signatures"),
    _required("similarity", pa.float64(), "exact weighted Jaccard of the two bags"),
    key=("left", "right"),
)

COMPONENTS = _table(
    _DOC_ID,
    _required("component", pa.string(), "the connected component, named by its least document id"),
)

DECISIONS = _table(
    _DOC_ID,
    _required("dataset", pa.string(), "dataset of the document"),
    _required("kept", pa.bool_(), "whether the document stays"),
    _required(
        "reason",
        pa.string(),
        "`kept`, `exact_copy`, `similar`, `connected`, `no_tokens`; with its repository `repository` or "
        "`topic`",
    ),
    _column("duplicate_of", pa.string(), "a kept document, unless removed with its repository"),
    _column("similarity", pa.float64(), "exact similarity with it, null if `connected`"),
    _column("component", pa.string(), "connected component of the document"),
)

SWEEP = _table(
    _required("threshold", pa.float64(), "least similarity of a pair"),
    _required("documents", pa.int64(), "documents compared"),
    _required("kept", pa.int64(), "documents that stay"),
    _required("removed", pa.int64(), "documents that go"),
    _required("removed_bytes", pa.int64(), "bytes of the documents that go"),
    _required("similar_pairs", pa.int64(), "verified edges that reach the threshold"),
    _required("largest_component", pa.int64(), "documents of the largest component, exact copies included"),
    key=("threshold",),
)

RECALL = _table(
    _required("similarity", pa.float64(), "where the step of similarity begins"),
    _required("pairs", pa.int64(), "sampled pairs whose exact similarity lies in it"),
    _required("pairs_found", pa.int64(), "sampled pairs that share a bucket"),
    _required("recall", pa.float64(), "share of the sampled pairs that share a bucket"),
    _required("predicted", pa.float64(), "that share by the banding's curve, over the same pairs"),
    key=("similarity",),
)

REPOSITORY_EDGES = _table(
    _required("left", pa.string(), "a repository, `dataset/repository@revision`"),
    _required("right", pa.string(), "another repository, `dataset/repository@revision`"),
    _required("left_documents", pa.int64(), "documents of the left one with a similar one in the right"),
    _required("right_documents", pa.int64(), "documents of the right one with a similar one in the left"),
    _required("left_bytes", pa.int64(), "bytes of these documents of the left one"),
    _required("right_bytes", pa.int64(), "bytes of these documents of the right one"),
    _required("left_share", pa.float64(), "the lesser of the left one's shares of documents and of bytes"),
    _required("right_share", pa.float64(), "the lesser of the right one's shares of documents and of bytes"),
    key=("left", "right"),
)

REPOSITORIES = _table(
    _required("repository_id", pa.string(), "`dataset/repository@revision`"),
    _required("dataset", pa.string(), "dataset of the repository"),
    _required("repository", pa.string(), "name of the repository"),
    _column("revision", pa.string(), "revision of the repository"),
    _required("documents", pa.int64(), "documents of the repository"),
    _required("bytes", pa.int64(), "bytes of these documents"),
    _required("share_elsewhere", pa.float64(), "share of it that other repositories hold too"),
    _required("common_documents", pa.int64(), "documents whose text is too common to pair all its holders"),
    _required("component", pa.string(), "component of repositories joined by any shared text"),
    _column("topic", pa.string(), "topic of the repository"),
    _required("component_in_topic", pa.string(), "component within its topic"),
    _required("kept", pa.bool_(), "whether the repository stays"),
    _required("reason", pa.string(), "`kept`, `pinned`, `duplicate`, `topic`"),
    _column("duplicate_of", pa.string(), "a kept repository, for every duplicate"),
    _column("share", pa.float64(), "share of it that the kept repository holds"),
    key=("repository_id",),
)

TOPICS = _table(
    _required("repository", pa.string(), "name of the repository"),
    _required("topic", pa.string(), "topic of the repository"),
    key=("repository",),
)

DEDUPLICATED = RAW

SYMBOLS = _table(
    _required("doc_id", pa.string(), "the file"),
    _required("repository", pa.string(), "repository of the file"),
    _required("path", pa.string(), "path of the file"),
    _required(
        "kind", pa.string(), "`definition`, `reference`, `import`, or `unread` with the reason as the name"
    ),
    _required("name", pa.string(), "the name, dotted for imports"),
    _required("count", pa.int64(), "occurrences in the file"),
    _required(
        "resolution",
        pa.string(),
        "`definition`, `local`, `internal`, `builtin`, `external`, `unread`, or `ambiguous`: too many files "
        "define it",
    ),
    _column("resolved_to", _list_of(pa.string()), "ids of the defining files"),
    _column("weights", _list_of(pa.float64()), "the weight that the row adds to each of them"),
    _column("revision", pa.string(), "revision of the repository"),
    key=("doc_id", "kind", "name"),
)

DEPENDENCIES = _table(
    _required("repository", pa.string(), "repository of both files"),
    _required("doc_id", pa.string(), "the dependent file"),
    _required("depends_on", pa.string(), "the file it depends on"),
    _required("weight", pa.float64(), "strength of the dependency"),
    _required("kind", pa.string(), "`import`, `symbol`, `import+symbol`"),
    _required("satisfied", pa.bool_(), "whether `depends_on` precedes `doc_id` in the order"),
    _required("in_cycle", pa.bool_(), "whether both files lie in one strongly connected component"),
    _column("revision", pa.string(), "revision of the repository"),
    key=("doc_id", "depends_on"),
)

SORTED = _table(
    *_DOCUMENT,
    _required("position", pa.int64(), "0 .. n-1 within the revision of the repository"),
    _required("cycle", pa.int64(), "number of its strongly connected component, in the repository's order"),
    _required("cycle_size", pa.int64(), "files in this component"),
)

TOKENIZER = _table(
    _required("name", pa.string(), "name of the tokenizer"),
    _required("n_tokens", pa.int64(), "tokens in its vocabulary"),
    _required("tokenizer", pa.string(), "the content of a Hugging Face tokenizer.json"),
    key=("name",),
)

TOKENIZED = _table(
    _DOC_ID,
    _required("repository", pa.string(), "repository of the file; the doc_id where a document has none"),
    _required("position", pa.int64(), "position of the document in its repository"),
    _required("tokens", pa.binary(), "little-endian; width in the table property `factory.token-bytes`"),
    _required("n_tokens", pa.int64(), "tokens of the document"),
    _column("revision", pa.string(), "revision of the repository"),
)

_SEGMENT = [
    pa.field("doc_id", pa.string(), nullable=False),
    pa.field("doc_offset", pa.int64(), nullable=False),
    pa.field("length", pa.int64(), nullable=False),
]

PACKED = _table(
    _required("ordinal", pa.int64(), "number of the sequence, 0 .. n-1"),
    _required("tokens", pa.binary(), "little-endian; width in the table property `factory.token-bytes`"),
    _required("n_tokens", pa.int64(), "tokens of the sequence"),
    _required(
        "segments", _list_of(pa.struct(_SEGMENT), nullable=False), "pieces of documents, in their order"
    ),
    _required("append", pa.int64(), "number of the append that wrote the sequence, from 0"),
    _required("shard", pa.int64(), "shard that was packed by itself"),
    _required("chunk", pa.int64(), "chunk of the shard"),
    key=("ordinal",),
    sort_by=("ordinal",),
    properties={
        "write.parquet.page-row-limit": "8",  # measured: docs/pages.md
        **_EARLY_LOOK,
        "write.distribution-mode": "none",
    },
)

PLACEMENTS = _table(
    _DOC_ID,
    _required("ordinal", pa.int64(), "number of the sequence that holds the segment"),
    _required("doc_offset", pa.int64(), "first token of the segment in its document"),
    _required("length", pa.int64(), "tokens of the segment"),
    about="The sequence of each segment of a document.",
    key=("doc_id", "doc_offset"),
    sort_by=("doc_id", "doc_offset"),
    properties={"write.distribution-mode": "none"},
)

TOKEN_BYTES = "factory.token-bytes"  # table property: bytes a token, 2 or 4
SEQUENCE_LENGTH = "factory.sequence-length"  # table property: tokens a full packed row holds
N_SHARDS = "factory.shards"  # table property: how many shards the first append chose
TOKENIZER_ID = "factory.tokenizer"  # snapshot property: the tokenizer of all rows (`identity.tokenizer_id`)
VOCABULARY_SIZE = "factory.vocabulary"  # snapshot property: the largest token of that tokenizer plus one
N_TOKENS = "factory.tokens"  # snapshot property: tokens in all rows of a packed table
