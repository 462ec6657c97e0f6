"""The tables of clusters: vectors, centroids, losses and verdicts, and the rates that balance a dataset."""

from __future__ import annotations

import pyarrow as pa

from factory.lake.schemas.base import DOC_ID, column, list_of, required, table

_CELL = required("cell", pa.int32(), "number of the coarse cluster; -1 holds documents without a known token")
_CLUSTER = required("cluster", pa.int32(), "number of the fine cluster; -1 as for cells")
_TERMS = required("terms", list_of(pa.string()), "words that set it apart, the best first")
_EXAMPLES = required("examples", list_of(pa.string()), "ids of at most twenty documents")
_CENTROID = column("centroid", pa.binary(), "its center, little-endian float32 of length one; null for -1")

EMBEDDER = table(
    required("kind", pa.string(), "`lsa`, `onnx`, `sentence_transformers`, `column` or `python`"),
    required("dimensions", pa.int32(), "numbers of a vector"),
    required("parameters", pa.string(), "further values of the kind, as JSON"),
    column("content", pa.binary(), "the weights; null for a kind that is read from a path or a column"),
    required("n_documents", pa.int64(), "documents that it was fitted on; 0 if it was not fitted"),
    key=("kind",),
)

VECTORS = table(
    DOC_ID,
    column("vector", pa.binary(), "little-endian float32 of length one; null without a known token"),
)

COARSE = table(
    _CELL,
    _CENTROID,
    required("n_documents", pa.int64(), "documents of the cell when the cells were cut"),
    _TERMS,
    _EXAMPLES,
    key=("cell",),
    chart="clusters.cells",
    figures="clusters.cells",
)

FINE = table(
    _CLUSTER,
    _CELL,
    _CENTROID,
    key=("cluster",),
    chart="clusters.by_cell",
)

CLUSTERS = table(
    DOC_ID,
    _CELL,
    _CLUSTER,
    column("distance", pa.float64(), "one minus the cosine to the center of the cluster; null for -1"),
    chart="clusters.sizes",
)

CELLS = table(
    _CELL,
    required("n_documents", pa.int64(), "documents of the cell now"),
    required("share", pa.float64(), "their share of all documents"),
    required("share_when_cut", pa.float64(), "the share when the cells were cut"),
    key=("cell",),
    about="The documents of each cell now, and when the cells were cut.",
    figures="clusters.moved",
)

PROXY = table(
    required("kind", pa.string(), "`ngram` or `transformers`"),
    required("source", pa.string(), "table of the texts that trained it, or the folder of a checkpoint"),
    required("parameters", pa.string(), "further values of the kind, as JSON"),
    required("merges", list_of(pa.int32(), nullable=False), "pairs of tokens that are merged, in order"),
    required("ngrams", list_of(pa.int64(), nullable=False), "tokens of each n-gram, and their number"),
    required("counts", list_of(pa.int64(), nullable=False), "how often it occurs"),
    required("trained_below", pa.float64(), "hash below which documents trained it and are not scored"),
    required("n_documents", pa.int64(), "documents that it was counted in; 0 for a checkpoint"),
    required("n_bytes", pa.int64(), "their bytes"),
    key=("source",),
)

_LOSS_COLUMNS = (
    _CLUSTER,
    _CELL,
    required("n_documents", pa.int64(), "documents of the cluster when it was judged"),
    required("n_sampled", pa.int64(), "documents with a scored text"),
    required("n_families", pa.int64(), "groups of near duplicates among these"),
    column("language", pa.string(), "the language of most of them"),
    _TERMS,
    _EXAMPLES,
    column("loss", pa.float64(), "bits per byte of half B by the proxy; null for too small a cluster"),
    column("loss_after", pa.float64(), "the same after the proxy continued on half A"),
)

LOSSES = table(*_LOSS_COLUMNS, key=("cluster",), chart="clusters.losses")

VERDICTS = table(
    *_LOSS_COLUMNS,
    column("z", pa.float64(), "distance of `loss` from the median of its language, in robust deviations"),
    column("z_after", pa.float64(), "the same of `loss_after`, which decides"),
    column("high", pa.float64(), "the highest `loss_after` that stays"),
    column("low", pa.float64(), "the lowest `loss_after` that stays whole"),
    required("verdict", pa.string(), "`keep`, `downsample`, `discard` or `too_small`"),
    required("rate", pa.float64(), "share of its documents that stay, 0 to 1"),
    required("by_hand", pa.bool_(), "whether the datasets file overruled the verdict"),
    key=("cluster",),
    chart="clusters.verdicts",
    figures="clusters.verdicts",
)

CATEGORIES = table(
    DOC_ID,
    required("category", pa.string(), "its category of each field, joined by ` x `"),
    chart="clusters.categories",
)

BALANCE = table(
    required("category", pa.string(), "the category of its documents in each field, joined by ` x `"),
    required("n_documents", pa.int64(), "documents when the rates were set"),
    required("target", pa.float64(), "documents that the target asks for"),
    required("rate", pa.float64(), "share of its documents that stay, 0 to 1"),
    required("n_missing", pa.int64(), "documents that the data lacks for the target"),
    key=("category",),
    chart="clusters.balance",
    figures="clusters.balance",
)

DISTRIBUTION = table(
    required("over", pa.string(), "kind of category: `cell`, `length`, a field, or several"),
    required("category", pa.string(), "the category"),
    required("n_before", pa.int64(), "documents before the dataset was balanced"),
    required("n_after", pa.int64(), "documents that every round kept"),
    required("n_deduplicated", pa.int64(), "documents after deduplication"),
    key=("over", "category"),
    chart="clusters.distribution",
    figures="clusters.distribution",
)
