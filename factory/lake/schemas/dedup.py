"""The tables of a dedup group, from bags of words to decisions, and the documents that stay."""

from __future__ import annotations

import pyarrow as pa

from factory.lake.schemas.base import DOC_ID, EARLY_LOOK, column, list_of, required, table
from factory.lake.schemas.ingest import RAW

BAGS = table(
    required("content_hash", pa.string(), "hash of the text"),
    required("copies", pa.int64(), "documents that share the text"),
    required("n_tokens", pa.int64(), "tokens in the text"),
    required("bag", pa.binary(), "distinct tokens and their counts (`native/src/dedup/bags/packed_bag.rs`)"),
    required("token_texts", pa.binary(), "texts of tokens that no earlier bag has"),
    key=("content_hash",),
    properties={
        "write.parquet.compression-codec": "uncompressed",
        # Some 16 bags: the comparison reads each bag with its page. Pages of as few rows in all columns would
        # cost as much to write as they save in reading.
        "write.parquet.page-size-bytes": str(32 << 10),
        **EARLY_LOOK,
    },
    chart="dedup.bags",
)

VOCABULARY = table(
    required("token", pa.int64(), "64-bit hash of the token's bytes"),
    required("document_frequency", pa.int64(), "documents with the token"),
    required("term_frequency", pa.int64(), "occurrences of the token"),
    column("text", pa.string(), "the token, for frequent ones only"),
    required("n_documents", pa.int64(), "documents counted, the same in every row"),
    key=("token",),
    chart="dedup.vocabulary",
)

SIGNATURES = table(
    required("doc_id", pa.string(), "the representative of one distinct text"),
    required("dataset", pa.string(), "dataset of the representative"),
    required("content_hash", pa.string(), "hash of the text"),
    required("copies", pa.int64(), "documents that share the text"),
    required("n_tokens", pa.int64(), "tokens in the text"),
    required("n_distinct", pa.int64(), "distinct tokens in the text"),
    column("signature", pa.binary(), "weighted MinHash values; null for a text without tokens"),
    required("version", pa.string(), "method, values, bits, seed and vocabulary"),
    chart="dedup.signatures",
)

BUCKETS = table(
    required("doc_id", pa.string(), "the representative of one distinct text"),
    # A row per band would make all readers ten times as slow.
    required("buckets", list_of(pa.int64(), nullable=False), "one bucket per band, in the bands' order"),
    chart="dedup.buckets",
)

LARGEST_BUCKETS = table(
    required("doc_id", pa.string(), "the best document of the bucket"),
    required("dataset", pa.string(), "dataset of the document"),
    required("members", pa.int64(), "distinct texts of the largest bucket it is best of"),
    required("bands", pa.int32(), "bands in which it is the best of one of the largest buckets"),
    required("text", pa.string(), "first 200 characters of the document"),
    chart="dedup.largest_buckets",
)

EDGES = table(
    required("left", pa.string(), "one document of the pair"),
    required("right", pa.string(), "the other document"),
    required("estimate", pa.float64(), "similarity, estimated from the two signatures"),
    required("similarity", pa.float64(), "exact weighted Jaccard of the two bags"),
    key=("left", "right"),
    chart="dedup.edges",
)

COMPONENTS = table(
    DOC_ID,
    required("component", pa.string(), "the connected component, named by its least document id"),
    chart="dedup.components",
)

DECISIONS = table(
    DOC_ID,
    required("dataset", pa.string(), "dataset of the document"),
    required("kept", pa.bool_(), "whether the document stays"),
    required(
        "reason",
        pa.string(),
        "`kept`, `exact_copy`, `similar`, `connected`, `no_tokens`; with its repository `repository` or "
        "`topic`",
    ),
    column("duplicate_of", pa.string(), "of an exact copy the best copy of its text, else the kept document"),
    column("similarity", pa.float64(), "exact similarity with `duplicate_of`, null if `connected`"),
    column("component", pa.string(), "connected component of the document"),
    column("kept_document", pa.string(), "the document kept in its place, which may be `duplicate_of`"),
    chart="dedup.decisions",
    figures="dedup.decisions",
)

SWEEP = table(
    required("threshold", pa.float64(), "least similarity of a pair"),
    required("documents", pa.int64(), "documents compared"),
    required("kept", pa.int64(), "documents that stay"),
    required("removed", pa.int64(), "documents that go"),
    required("removed_bytes", pa.int64(), "bytes of the documents that go"),
    required("similar_pairs", pa.int64(), "verified edges that reach the threshold"),
    required("largest_component", pa.int64(), "documents of the largest component, exact copies included"),
    key=("threshold",),
    chart="dedup.sweep",
)

RECALL = table(
    required("similarity", pa.float64(), "where the step of similarity begins"),
    required("pairs", pa.int64(), "sampled pairs whose exact similarity lies in it"),
    required("pairs_found", pa.int64(), "sampled pairs that share a bucket"),
    required("recall", pa.float64(), "share of the sampled pairs that share a bucket"),
    required("predicted", pa.float64(), "that share by the banding's curve, over the same pairs"),
    key=("similarity",),
    chart="dedup.recall",
)

REPOSITORY_EDGES = table(
    required("left", pa.string(), "a repository, `dataset/repository@revision`"),
    required("right", pa.string(), "another repository, `dataset/repository@revision`"),
    required("left_documents", pa.int64(), "documents of the left one with a similar one in the right"),
    required("right_documents", pa.int64(), "documents of the right one with a similar one in the left"),
    required("left_bytes", pa.int64(), "bytes of these documents of the left one"),
    required("right_bytes", pa.int64(), "bytes of these documents of the right one"),
    required("left_share", pa.float64(), "the lesser of the left one's shares of documents and of bytes"),
    required("right_share", pa.float64(), "the lesser of the right one's shares of documents and of bytes"),
    key=("left", "right"),
    chart="dedup.repository_edges",
)

REPOSITORIES = table(
    required("repository_id", pa.string(), "`dataset/repository@revision`"),
    required("dataset", pa.string(), "dataset of the repository"),
    required("repository", pa.string(), "name of the repository"),
    column("revision", pa.string(), "revision of the repository"),
    required("documents", pa.int64(), "documents of the repository"),
    required("bytes", pa.int64(), "bytes of these documents"),
    required("share_elsewhere", pa.float64(), "share of it that other repositories hold too"),
    required("common_documents", pa.int64(), "documents whose text is too common to pair all its holders"),
    required("component", pa.string(), "component of repositories joined by any shared text"),
    column("topic", pa.string(), "topic of the repository"),
    required("component_in_topic", pa.string(), "component within its topic"),
    required("kept", pa.bool_(), "whether the repository stays"),
    required("reason", pa.string(), "`kept`, `pinned`, `duplicate`, `topic`"),
    column("duplicate_of", pa.string(), "a kept repository, for every duplicate"),
    column("share", pa.float64(), "share of it that the kept repository holds"),
    key=("repository_id",),
    chart="dedup.repositories",
    figures="dedup.decisions",
)

TOPICS = table(
    required("repository", pa.string(), "name of the repository"),
    required("topic", pa.string(), "topic of the repository"),
    key=("repository",),
)

DEDUPLICATED = RAW
