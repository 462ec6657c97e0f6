"""The proxy: an n-gram model of documents of all languages, which continues on one cluster at a time: PROXY.

Its documents are a sample by hash, bounded in bytes, and counted on the driver. If the clusters consist of
them, too, at most a fifth of them train the model, and these are never scored.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from math import nextafter

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from factory import _native
from factory.errors import NotFound
from factory.lake.schemas.clusters import PROXY
from factory.models.ngram import train_merges
from factory.models.ngram_model import LEAST_COUNT, VOCABULARY
from factory.models.sampling import unit_interval

SAMPLE_BYTES = 16_000_000
MOST_TRAINED = 0.2  # share of the documents, if the others are scored
_MERGED_BYTES = 4_000_000  # from which merges are trained
_CHARACTERS = 65_536  # of a document that are counted
_CANDIDATES = 2  # times SAMPLE_BYTES: the sizes of a sample differ from their mean


@dataclass(frozen=True)
class _Sample:
    """Texts in the order of their hashes, and the hash that all of them lie below."""

    texts: list[str]
    below: float


def proxy_table(documents: DataFrame, source: str, *, own: bool = True) -> DataFrame:
    """The row of PROXY: the model of `documents` (doc_id, text), which are of the table `source`.

    With `own`, the clusters to be scored consist of the same documents. Runs two jobs, because a model is one
    row. Raises NotFound if no document has text.
    """
    sample = _sample(documents, source, MOST_TRAINED if own else 1.0)
    sizes = np.cumsum([len(text.encode()) for text in sample.texts])
    merges = train_merges(iter(sample.texts[: _within(sizes, _MERGED_BYTES)]), VOCABULARY)
    ngrams, counts = ngram_counts(sample.texts, merges)
    row = {
        "kind": "ngram",
        "source": source,
        "parameters": "{}",
        "merges": list(chain.from_iterable(merges)),
        "ngrams": ngrams,
        "counts": counts,
        "trained_below": sample.below if own else 0.0,
        "n_documents": len(sample.texts),
        "n_bytes": int(sizes[-1]),
        "partition": None,
    }
    return documents.sparkSession.createDataFrame(pa.Table.from_pylist([row], schema=PROXY.columns))


def ngram_counts(texts: list[str], merges: list[tuple[int, int]]) -> tuple[pa.Array, pa.Array]:
    """Return the n-grams of texts and their counts; rare ones are left out."""
    counter = _native.NgramCounter(merges)
    counter.add(pa.array(texts, pa.large_string()))
    longest = counter.counts()
    table = _native.ngram_table(longest["ngram"], longest["count"], LEAST_COUNT)
    return table["ngram"], table["count"]


def _sample(documents: DataFrame, source: str, most: float) -> _Sample:
    """The documents of the least hashes: at most the share `most` of them, and at least one."""
    text = F.substring("text", 1, _CHARACTERS)
    texts = documents.select("doc_id", unit_interval().alias("unit"), text.alias("text")).where("text != ''")
    total = texts.agg(F.sum(F.octet_length("text")).alias("total")).collect()[0].total
    if total is None:
        raise NotFound(
            f"No document of {source} has text to train the proxy of the clusters on. Loosen the rounds "
            "before `clusters`, or name another `proxy`."
        )
    below = min(most, _CANDIDATES * SAMPLE_BYTES / total)
    rows = texts.where(F.col("unit") < below).toArrow()
    if len(rows) == 0:
        rows = texts.orderBy("unit", "doc_id").limit(1).toArrow()
        below = nextafter(rows["unit"][0].as_py(), 1)
    rows = rows.sort_by([("unit", "ascending"), ("doc_id", "ascending")])
    in_order = rows["text"].to_pylist()
    n_texts = _within(np.cumsum([len(text.encode()) for text in in_order]), SAMPLE_BYTES)
    if n_texts < len(rows):
        below = rows["unit"][n_texts].as_py()
    return _Sample(in_order[:n_texts], below)


def _within(sizes: np.ndarray, n_bytes: int) -> int:
    """Return how many of the first texts have at most `n_bytes` together, at least 1."""
    return max(1, int(np.searchsorted(sizes, n_bytes, side="right")))
