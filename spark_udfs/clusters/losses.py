"""Losses of clusters by a proxy model, in Spark's Python workers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import isfinite
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from factory import _native
from factory.errors import ConfigurationError
from spark_udfs.clusters.runs import groups
from spark_udfs.clusters.sides import families, sides
from spark_udfs.clusters.terms import DocumentFrequency, top_terms
from spark_udfs.models.ngram import as_pairs

DOCUMENTS = 64  # of a cluster that are scored
TEXT_BYTES = 16_384  # of a document that are scored
LEAST_DOCUMENTS = 32  # that are scored; fewer have no loss
_N_EXAMPLES = 20
_TERMS_DOCUMENTS, _TERMS_CHARACTERS = 50, 4_096  # of a cluster and a document, which give the terms

Languages = Callable[[pa.Array], pa.Array]
"""The language of each text, or null."""

SCORES = pa.schema(
    [
        ("cluster", pa.int32()),
        ("n_sampled", pa.int64()),
        ("n_families", pa.int64()),
        ("language", pa.string()),
        ("terms", pa.list_(pa.string())),
        ("examples", pa.list_(pa.string())),
        ("loss", pa.float64()),
        ("loss_after", pa.float64()),
    ]
)


class Proxy(Protocol):
    """A model that reads clusters."""

    def losses(self, texts_a: pa.Array, texts_b: pa.Array, weight: float) -> pa.Table | pa.RecordBatch:
        """Return the bits of each text of B, `before` and `after` the model has read A `weight` times.

        The model itself stays as it is.
        """


@dataclass(frozen=True)
class ClusterLosses:
    """Bits per byte of side B by the proxy, and after it continued on side A; None for too few documents."""

    n_families: int
    before: float | None
    after: float | None


def load(proxy: bytes) -> _native.NgramProxy:
    """Return the model of a table PROXY, given as an Arrow stream."""
    return _load(proxy)


def cluster_losses(texts: pa.Array, proxy: Proxy, weight: float) -> ClusterLosses:
    """Return the losses of the texts of a cluster, in the order of their hashes; none is empty.

    The proxy reads side A `weight` times.
    """
    family_numbers = families(texts)
    n_families = len(np.unique(family_numbers))
    if len(texts) < LEAST_DOCUMENTS:
        return ClusterLosses(n_families, None, None)
    n_bytes = pc.binary_length(texts).to_numpy()
    on_b = sides(family_numbers, n_bytes)
    bits = proxy.losses(texts.filter(pa.array(~on_b)), texts.filter(pa.array(on_b)), weight)
    n_bytes_of_b = int(n_bytes[on_b].sum())
    before, after = (float(bits[name].to_numpy().sum()) / n_bytes_of_b for name in ("before", "after"))
    return ClusterLosses(n_families, before, after)


def losses(
    batches: Iterator[pa.RecordBatch],
    *,
    open_proxy: Callable[[], Proxy],
    weight: float,
    document_frequency: DocumentFrequency,
    languages: Languages | None,
) -> Iterator[pa.RecordBatch]:
    """Yield SCORES of batches of (cluster, doc_id, text), sorted by cluster; no text is empty.

    Without `languages` a column `language` has them. Holds the rows of one cluster at a time. Raises
    ConfigurationError for a loss that is not finite.
    """
    proxy = open_proxy()
    for (cluster,), pieces in groups(batches, "cluster"):
        rows = pa.Table.from_batches(pieces)
        language_of_texts = languages(rows["text"].combine_chunks()) if languages else rows["language"]
        texts = beginnings(rows["text"])
        cluster_loss = cluster_losses(texts, proxy, weight)
        _require_finite(cluster, cluster_loss)
        excerpts = [text[:_TERMS_CHARACTERS] for text in texts[:_TERMS_DOCUMENTS].to_pylist()]
        row = {
            "cluster": cluster,
            "n_sampled": len(rows),
            "n_families": cluster_loss.n_families,
            "language": _most_frequent(language_of_texts.to_pylist()),
            "terms": top_terms(excerpts, document_frequency),
            "examples": rows["doc_id"].to_pylist()[:_N_EXAMPLES],
            "loss": cluster_loss.before,
            "loss_after": cluster_loss.after,
        }
        yield pa.RecordBatch.from_pylist([row], SCORES)


def beginnings(texts: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return at most TEXT_BYTES of each text, all of them complete characters."""
    cut = (text.encode()[:TEXT_BYTES].decode(errors="ignore") for text in texts.to_pylist())
    return pa.array(cut, pa.string())


def _require_finite(cluster: int, losses: ClusterLosses) -> None:
    for loss, remedy in (
        (losses.before, "Its weights are damaged: save the checkpoint again."),
        (losses.after, "Lower `learning_rate`, or `weight`."),
    ):
        if loss is not None and not isfinite(loss):
            raise ConfigurationError(f"The proxy has no finite loss on cluster {cluster}. {remedy}")


def _most_frequent(languages: list[str | None]) -> str | None:
    """Return the language of most documents, the first by name of several; None if no document has one."""
    counts = Counter(filter(None, languages))
    return min(counts, key=lambda language: (-counts[language], language), default=None)


@lru_cache(maxsize=2)
def _load(proxy: bytes) -> _native.NgramProxy:
    rows = pa.ipc.open_stream(proxy).read_all()
    return _native.NgramProxy(
        as_pairs(rows["merges"][0].as_py()), rows["ngrams"][0].values, rows["counts"][0].values
    )
