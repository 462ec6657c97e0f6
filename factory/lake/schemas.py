"""The declared schemas of the lake's tables.

A schema is declared once, in Arrow, and rendered for PyIceberg (which creates the table) and for Spark
(which fills it); nothing is inferred from data. Changes are additive, because an Iceberg schema is not
branched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

# Columns about the storage of content, not content: a row's location, or the text of a token that several
# bags share.
UNFINGERPRINTED = frozenset({"partition", "token_texts"})


@dataclass(frozen=True)
class TableSchema:
    """The columns and layout of a table.

    `key` identifies a row; `partition_by` are identity partition columns; `sort_by` is the order in which
    files and rows are written; `properties` are default Iceberg table properties. With `may_shrink` a
    nullable column that is no longer declared stays in the table, null in new rows.
    """

    columns: pa.Schema
    key: tuple[str, ...]
    partition_by: tuple[str, ...] = ()
    sort_by: tuple[str, ...] = ()
    properties: dict[str, str] = field(default_factory=dict)
    may_shrink: bool = False

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


def _required(name: str, kind: pa.DataType) -> pa.Field:
    return pa.field(name, kind, nullable=False)


def columns(*fields: pa.Field) -> pa.Schema:
    """Return a schema of `fields` plus the column `partition`, which every table has."""
    return pa.schema([*fields, pa.field("partition", pa.string())])


def _table(*fields: pa.Field, key: tuple[str, ...] = ("doc_id",)) -> TableSchema:
    """Return a table of Iceberg's default layout, by default with a row per document."""
    return TableSchema(columns(*fields), key)


def _list_of(kind: pa.DataType, *, nullable: bool = True) -> pa.ListType:
    return pa.list_(pa.field("element", kind, nullable=nullable))


# Parquet-mr looks at the size of a page for the first time after so many rows, 100 by default, and the first
# page of a row group has as many.
_EARLY_LOOK = {"write.parquet.row-group-check-min-record-count": "8"}

_DOCUMENT = (
    _required("doc_id", pa.string()),
    _required("source", pa.string()),
    _required("key", pa.string()),
    pa.field("text", pa.string()),
    _required("content_hash", pa.string()),
    _required("n_bytes", pa.int64()),
    _required("media_type", pa.string()),
    pa.field("content", pa.binary()),
    pa.field("language", pa.string()),
    pa.field("repository", pa.string()),
    pa.field("path", pa.string()),
    pa.field("revision", pa.string()),
    pa.field("license", pa.string()),
    pa.field("fork_of", pa.string()),
    pa.field("stars", pa.int64()),
    pa.field("created_at", pa.timestamp("us", tz="UTC")),
    pa.field("metadata", pa.map_(pa.string(), pa.string())),
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
    _required("doc_id", pa.string()),
    _required("source", pa.string()),
    _required("key", pa.string()),
    _required("location", pa.string()),  # where in its file: `byte 512`, `line 17`, `row 3`
    _required("reason", pa.string()),  # one word for counting: `not_utf8`, `not_json`, ...
    _required("detail", pa.string()),  # one sentence for a person
    _required("n_bytes", pa.int64()),
    pa.field("sample", pa.binary()),  # its first bytes
)


def signals_schema(numbers: Sequence[str], words: Sequence[str] = ()) -> TableSchema:
    """The schema of `signals.<dataset>`: a nullable double for each number, then a string for each word."""
    return TableSchema(
        columns(
            _required("doc_id", pa.string()),
            *(pa.field(name, pa.float64()) for name in numbers),
            *(pa.field(name, pa.string()) for name in words),
        ),
        key=("doc_id",),
        may_shrink=True,  # rules come and go
    )


_REJECTION = [("rule", pa.string()), ("value", pa.float64()), ("threshold", pa.float64())]

FILTERED = TableSchema(
    columns(
        _required("doc_id", pa.string()),
        _required("kept", pa.bool_()),
        pa.field("rejections", _list_of(pa.struct(_REJECTION))),
    ),
    key=("doc_id",),
    partition_by=("kept",),
)

BAGS = TableSchema(
    columns(
        _required("content_hash", pa.string()),
        _required("copies", pa.int64()),  # documents that share the text
        _required("n_tokens", pa.int64()),
        _required("bag", pa.binary()),  # distinct tokens and their counts (`native/src/dedup/packed_bag.rs`)
        _required("token_texts", pa.binary()),  # texts of tokens that no earlier bag has
    ),
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
    _required("token", pa.int64()),  # 64-bit hash of the token's bytes
    _required("document_frequency", pa.int64()),
    _required("term_frequency", pa.int64()),
    pa.field("text", pa.string()),  # of frequent tokens only
    _required("n_documents", pa.int64()),  # documents counted, the same in every row
    key=("token",),
)

SIGNATURES = _table(
    _required("doc_id", pa.string()),  # the representative of one distinct text
    _required("dataset", pa.string()),
    _required("content_hash", pa.string()),
    _required("copies", pa.int64()),  # documents that share the text
    _required("n_tokens", pa.int64()),
    _required("n_distinct", pa.int64()),
    pa.field("signature", pa.binary()),  # null for a text without tokens
    _required("version", pa.string()),  # method, values, bits, seed and vocabulary
)

BUCKETS = _table(
    _required("doc_id", pa.string()),
    # one per band, in order; a row per band would make all readers ten times as slow
    _required("buckets", _list_of(pa.int64(), nullable=False)),
)

LARGEST_BUCKETS = _table(
    _required("doc_id", pa.string()),  # the best document of the bucket
    _required("dataset", pa.string()),
    _required("members", pa.int64()),  # distinct texts of the largest bucket it is best of
    _required("bands", pa.int32()),  # bands in which it is the best of one of the largest buckets
    _required("text", pa.string()),  # its first 200 characters
)

EDGES = _table(
    _required("left", pa.string()),
    _required("right", pa.string()),
    _required("estimate", pa.float64()),  # from the two signatures
    _required("similarity", pa.float64()),  # exact J_W of the two bags
    key=("left", "right"),
)

COMPONENTS = _table(_required("doc_id", pa.string()), _required("component", pa.string()))

DECISIONS = _table(
    _required("doc_id", pa.string()),
    _required("dataset", pa.string()),
    _required("kept", pa.bool_()),
    # `kept`, `exact_copy`, `similar`, `connected`, `no_tokens`; with its repository `repository`, `topic`
    _required("reason", pa.string()),
    pa.field("duplicate_of", pa.string()),  # a kept document, unless removed with its repository
    pa.field("similarity", pa.float64()),  # exact J_W with it; 1.0 for an exact copy, null if `connected`
    pa.field("component", pa.string()),
)

SWEEP = _table(
    _required("threshold", pa.float64()),
    _required("documents", pa.int64()),
    _required("kept", pa.int64()),
    _required("removed", pa.int64()),
    _required("removed_bytes", pa.int64()),
    _required("similar_pairs", pa.int64()),  # verified edges that reach the threshold
    _required("largest_component", pa.int64()),  # its documents, exact copies included
    key=("threshold",),
)

RECALL = _table(
    _required("similarity", pa.float64()),  # where the step begins
    _required("pairs", pa.int64()),  # sampled pairs whose exact similarity lies in it
    _required("pairs_found", pa.int64()),  # sampled pairs that share a bucket
    _required("recall", pa.float64()),
    _required("predicted", pa.float64()),  # by the banding's curve, over the same pairs
    key=("similarity",),
)

REPOSITORY_EDGES = _table(
    _required("left", pa.string()),  # repositories, as `repository_id` of REPOSITORIES
    _required("right", pa.string()),
    _required("left_documents", pa.int64()),  # documents of the left one with a similar one in the right
    _required("right_documents", pa.int64()),
    _required("left_bytes", pa.int64()),
    _required("right_bytes", pa.int64()),
    _required("left_share", pa.float64()),  # the lesser of its shares of documents and of bytes
    _required("right_share", pa.float64()),
    key=("left", "right"),
)

REPOSITORIES = _table(
    _required("repository_id", pa.string()),  # `dataset/repository@revision`
    _required("dataset", pa.string()),
    _required("repository", pa.string()),
    pa.field("revision", pa.string()),
    _required("documents", pa.int64()),
    _required("bytes", pa.int64()),
    _required("share_elsewhere", pa.float64()),  # share of it that other repositories hold too
    _required("common_documents", pa.int64()),  # documents whose text is too common to pair all its holders
    _required("component", pa.string()),  # joined by any shared text
    pa.field("topic", pa.string()),
    _required("component_in_topic", pa.string()),
    _required("kept", pa.bool_()),
    _required("reason", pa.string()),  # `kept`, `pinned`, `duplicate`, `topic`
    pa.field("duplicate_of", pa.string()),  # a kept repository, for every duplicate
    pa.field("share", pa.float64()),  # share of it that the kept repository holds
    key=("repository_id",),
)

TOPICS = _table(_required("repository", pa.string()), _required("topic", pa.string()), key=("repository",))

DEDUPLICATED = RAW

SYMBOLS = _table(
    _required("doc_id", pa.string()),
    _required("repository", pa.string()),
    _required("path", pa.string()),
    # `definition`, `reference`, `import`; `unread` where a file gives no symbols, with the reason as name
    _required("kind", pa.string()),
    _required("name", pa.string()),  # dotted for imports
    _required("count", pa.int64()),
    # `definition`, `local`, `internal`, `builtin`, `external`, `ambiguous` (too many files define it),
    # `unread`
    _required("resolution", pa.string()),
    pa.field("resolved_to", _list_of(pa.string())),  # doc_ids of defining files
    pa.field("weights", _list_of(pa.float64())),  # the weight that the row adds to each
    pa.field("revision", pa.string()),
    key=("doc_id", "kind", "name"),
)

DEPENDENCIES = _table(
    _required("repository", pa.string()),
    _required("doc_id", pa.string()),  # the dependent
    _required("depends_on", pa.string()),
    _required("weight", pa.float64()),
    _required("kind", pa.string()),  # `import`, `symbol`, `import+symbol`
    _required("satisfied", pa.bool_()),  # depends_on precedes doc_id
    _required("in_cycle", pa.bool_()),  # both ends lie in one strongly connected component
    pa.field("revision", pa.string()),
    key=("doc_id", "depends_on"),
)

SORTED = _table(
    *_DOCUMENT,
    _required("position", pa.int64()),  # 0 .. n-1 within the revision of the repository
    _required("cycle", pa.int64()),  # number of its strongly connected component, in the repository's order
    _required("cycle_size", pa.int64()),
)

TOKENIZER = _table(
    _required("name", pa.string()),
    _required("n_tokens", pa.int64()),
    _required("tokenizer", pa.string()),  # the content of a Hugging Face tokenizer.json
    key=("name",),
)

TOKENIZED = _table(
    _required("doc_id", pa.string()),
    _required("repository", pa.string()),  # the doc_id where a document has none
    _required("position", pa.int64()),
    _required("tokens", pa.binary()),  # little-endian; width in the table property `factory.token-bytes`
    _required("n_tokens", pa.int64()),
    pa.field("revision", pa.string()),
)

_SEGMENT = [
    _required("doc_id", pa.string()),
    _required("doc_offset", pa.int64()),
    _required("length", pa.int64()),
]

PACKED = TableSchema(
    columns(
        _required("ordinal", pa.int64()),
        _required("tokens", pa.binary()),
        _required("n_tokens", pa.int64()),
        _required("segments", _list_of(pa.struct(_SEGMENT), nullable=False)),
        _required("append", pa.int64()),
        _required("shard", pa.int64()),
        _required("chunk", pa.int64()),
    ),
    key=("ordinal",),
    sort_by=("ordinal",),
    properties={
        "write.parquet.page-row-limit": "8",  # measured: docs/pages.md
        **_EARLY_LOOK,
        "write.distribution-mode": "none",
    },
)

PLACEMENTS = TableSchema(
    columns(
        _required("doc_id", pa.string()),
        _required("ordinal", pa.int64()),
        _required("doc_offset", pa.int64()),
        _required("length", pa.int64()),
    ),
    key=("doc_id", "doc_offset"),
    sort_by=("doc_id", "doc_offset"),
    properties={"write.distribution-mode": "none"},
)

TOKEN_BYTES = "factory.token-bytes"  # table property: bytes a token, 2 or 4
SEQUENCE_LENGTH = "factory.sequence-length"  # table property: tokens a full packed row holds
N_SHARDS = "factory.shards"  # table property: how many shards the first append chose
TOKENIZER_ID = "factory.tokenizer"  # snapshot property: the tokenizer of all rows (`identity.tokenizer_id`)
N_TOKENS = "factory.tokens"  # snapshot property: tokens in all rows of a packed table
