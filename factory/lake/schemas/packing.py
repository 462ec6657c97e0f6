"""The tables of tokens and of training sequences, with the properties that readers need."""

from __future__ import annotations

import pyarrow as pa

from factory.lake.schemas.base import DOC_ID, EARLY_LOOK, column, list_of, required, table

TOKENIZED = table(
    DOC_ID,
    required("repository", pa.string(), "repository of the file; the doc_id where a document has none"),
    required("position", pa.int64(), "position of the document in its repository"),
    required("tokens", pa.binary(), "little-endian; width in the table property `factory.token-bytes`"),
    required("n_tokens", pa.int64(), "tokens of the document"),
    column("revision", pa.string(), "revision of the repository"),
    column("n_bytes", pa.int64(), "bytes of its text"),
    chart="packing.tokenized",
    figures="packing.tokenized",
)

_SEGMENT = [
    pa.field("doc_id", pa.string(), nullable=False),
    pa.field("doc_offset", pa.int64(), nullable=False),
    pa.field("length", pa.int64(), nullable=False),
]

PACKED = table(
    required("ordinal", pa.int64(), "number of the sequence, 0 .. n-1"),
    required("tokens", pa.binary(), "little-endian; width in the table property `factory.token-bytes`"),
    required("n_tokens", pa.int64(), "tokens of the sequence"),
    required("segments", list_of(pa.struct(_SEGMENT), nullable=False), "pieces of documents, in their order"),
    required("append", pa.int64(), "number of the append that wrote the sequence, from 0"),
    required("shard", pa.int64(), "shard that was packed by itself"),
    required("chunk", pa.int64(), "chunk of the shard"),
    key=("ordinal",),
    sort_by=("ordinal",),
    properties={
        "write.parquet.page-row-limit": "8",  # measured: docs/pages.md
        **EARLY_LOOK,
        "write.distribution-mode": "none",
    },
    chart="packing.packed",
    figures="packing.packed",
)

PLACEMENTS = table(
    DOC_ID,
    required("ordinal", pa.int64(), "number of the sequence that holds the segment"),
    required("doc_offset", pa.int64(), "first token of the segment in its document"),
    required("length", pa.int64(), "tokens of the segment"),
    about="The sequence of each segment of a document.",
    key=("doc_id", "doc_offset"),
    sort_by=("doc_id", "doc_offset"),
    properties={"write.distribution-mode": "none"},
    chart="packing.placements",
)

TOKEN_BYTES = "factory.token-bytes"  # table property: bytes a token, 2 or 4

SEQUENCE_LENGTH = "factory.sequence-length"  # table property: tokens a full packed row holds

SAMPLES = "factory.samples"  # table property: `true` if a row is one document, for packing at load time

N_SHARDS = "factory.shards"  # table property: how many shards the first append chose

TOKENIZER_ID = "factory.tokenizer"  # snapshot property: the tokenizer of all rows (`identity.tokenizer_id`)

VOCABULARY_SIZE = "factory.vocabulary"  # snapshot property: the largest token of that tokenizer plus one

VALIDATION = "factory.validation"  # snapshot property: the share of validation, in both parts of a dataset

N_DOCUMENTS = "factory.documents"  # snapshot property: documents of a packed table

N_TOKENS = "factory.tokens"  # snapshot property: tokens in all rows of a packed table
