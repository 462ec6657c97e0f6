"""n-gram models trained on a table of documents, one a language: NGRAM_MODEL.

The documents are counted in parallel; counts add up, so any partitioning gives the same models. Documents are
taken in the order of a hash: the first twentieth of a language is held out, and gives the usual bits per
byte; the merges of its tokens are trained on the driver on the next few megabytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from factory import _native
from factory.errors import ConfigurationError, NotFound
from factory.lake.schemas.models import NGRAM_MODEL
from factory.models.ngram import MOST_TOKENS, N_BYTE_VALUES, Merge, train_merges
from factory.models.sampling import unit_interval
from spark_udfs.models.ngram import count

VOCABULARY = 1_024
SAMPLE_BYTES = 32_000_000  # of a language
CANDIDATE_BYTES = 8 * SAMPLE_BYTES  # of all languages
LEAST_BYTES = 100_000  # of a language; less is no model
LEAST_COUNT = 2  # of an n-gram of three tokens and more
_MERGED_BYTES = 4_000_000  # from which merges are trained
_HELD_OUT = 0.05  # of the documents


@dataclass(frozen=True)
class _Sample:
    """The documents of a language by their hash: held out up to the first number, counted up to the last."""

    held_out: float
    for_merges: float
    for_counts: float
    n_documents: int
    n_bytes: int


def ngram_models(
    documents: DataFrame, languages: Sequence[str] = (), vocabulary: int = VOCABULARY
) -> DataFrame:
    """A row of NGRAM_MODEL for each language: of `languages`, or of all with LEAST_BYTES of `documents`.

    `documents` are (doc_id, text, detected_language, unit); `unit` is a hash of the document in [0, 1). Runs
    three jobs, because a model is one row. Raises NotFound for one of `languages` without enough text, and if
    no language has enough.
    """
    require_vocabulary(vocabulary)
    samples = _samples(documents, languages)
    texts = _texts(documents, samples)
    merges = {
        language: train_merges(iter(_between(texts, language, sample.held_out, 1.0)), vocabulary)
        for language, sample in samples.items()
    }
    counts = _counts(documents, samples, merges)
    rows = []
    for language, sample in samples.items():
        of_language = counts.filter(pc.equal(counts["language"], language))
        columns = [of_language[name].combine_chunks() for name in ("ngram", "count")]
        table = _native.ngram_table(columns[0], columns[1], LEAST_COUNT)
        model = _native.NgramModel(merges[language], table["ngram"], table["count"])
        held_out = _between(texts, language, -1.0, sample.held_out)
        rows.append(
            {
                "language": language,
                "merges": list(chain.from_iterable(merges[language])),
                "ngrams": table["ngram"],
                "counts": table["count"],
                "n_documents": sample.n_documents,
                "n_bytes": sample.n_bytes,
                "bits_per_byte": _bits_per_byte(model, held_out),
                "partition": None,
            }
        )
    return documents.sparkSession.createDataFrame(pa.Table.from_pylist(rows, schema=NGRAM_MODEL.columns))


def candidates(documents: DataFrame) -> DataFrame:
    """Return the documents with text of the least hashes, at most CANDIDATE_BYTES, and the hash `unit`.

    Runs a job: the total size decides which share they are.
    """
    texts = documents.where("text IS NOT NULL").withColumn("unit", unit_interval())
    total = texts.agg(F.sum("n_bytes").alias("total")).collect()[0].total or 0
    return texts.where(F.col("unit") < CANDIDATE_BYTES / max(total, 1))


def require_vocabulary(vocabulary: int) -> None:
    """Raise ConfigurationError for a vocabulary that no model can have."""
    if not N_BYTE_VALUES <= vocabulary <= MOST_TOKENS:
        raise ConfigurationError(
            f"An n-gram model cannot have {vocabulary:,} tokens. Give a vocabulary of {N_BYTE_VALUES} to "
            f"{MOST_TOKENS:,}."
        )


def _samples(documents: DataFrame, languages: Sequence[str]) -> dict[str, _Sample]:
    """The sample of each language, by the lengths of its documents."""
    lengths = documents.select("detected_language", "unit", F.octet_length("text").alias("length")).toArrow()
    samples = {}
    for language in sorted(filter(None, lengths["detected_language"].unique().to_pylist())):
        of_language = lengths.filter(pc.equal(lengths["detected_language"], language)).sort_by("unit")
        if pc.sum(of_language["length"]).as_py() >= LEAST_BYTES and len(of_language) > 1:
            samples[language] = _sample(of_language["unit"].to_numpy(), of_language["length"].to_numpy())
    missing = [language for language in languages if language not in samples]
    if missing or not samples:
        language = f"in `{missing[0]}`" if missing else "in any language"
        raise NotFound(
            f"Of the {CANDIDATE_BYTES // 10**6} MB of text that are looked at, less than {LEAST_BYTES:,} "
            f"bytes, or one document, are {language}: too few for a model. Name a table with more of it."
        )
    return {
        language: sample for language, sample in samples.items() if language in languages or not languages
    }


def _sample(units: np.ndarray, lengths: np.ndarray) -> _Sample:
    """The sample of documents in the order of their hashes."""
    n_held_out = max(1, int(_HELD_OUT * len(units)))
    sizes = np.cumsum(lengths[n_held_out:])

    def last_within(n_bytes: int) -> int:
        return n_held_out + max(1, int(np.searchsorted(sizes, n_bytes, side="right"))) - 1

    last = last_within(SAMPLE_BYTES)
    return _Sample(
        held_out=float(units[n_held_out - 1]),
        for_merges=float(units[last_within(_MERGED_BYTES)]),
        for_counts=float(units[last]),
        n_documents=last + 1 - n_held_out,
        n_bytes=int(lengths[n_held_out : last + 1].sum()),
    )


def _by_language(numbers: Mapping[str, float]) -> Column:
    """The number of a document's language; null for a language without one."""
    pairs = chain.from_iterable((F.lit(language), F.lit(number)) for language, number in numbers.items())
    return F.create_map(*pairs)[F.col("detected_language")]


def _texts(documents: DataFrame, samples: Mapping[str, _Sample]) -> pa.Table:
    """(detected_language, unit, text) of the documents that are held out or train merges, by `unit`."""
    last = _by_language({language: sample.for_merges for language, sample in samples.items()})
    return documents.where(F.col("unit") <= last).select("detected_language", "unit", "text").toArrow()


def _between(texts: pa.Table, language: str, after: float, last: float) -> list[str]:
    rows = texts.filter(pc.equal(texts["detected_language"], language)).sort_by("unit")
    within = rows.filter(pc.and_(pc.greater(rows["unit"], after), pc.less_equal(rows["unit"], last)))
    return list(within["text"].to_pylist())


def _counts(
    documents: DataFrame, samples: Mapping[str, _Sample], merges: Mapping[str, Sequence[Merge]]
) -> pa.Table:
    """(language, ngram, count) of the longest n-grams of the documents that are counted."""
    after = _by_language({language: sample.held_out for language, sample in samples.items()})
    last = _by_language({language: sample.for_counts for language, sample in samples.items()})
    rows = documents.where((F.col("unit") > after) & (F.col("unit") <= last))
    return (
        rows.select("detected_language", "text")
        .mapInArrow(partial(count, merges=dict(merges)), "language string, ngram long, count long")
        .groupBy("language", "ngram")
        .agg(F.sum("count").alias("count"))
        .toArrow()
    )


def _bits_per_byte(model: _native.NgramModel, texts: Sequence[str]) -> float | None:
    n_bytes = sum(len(text.encode()) for text in texts)
    bits: list[Any] = model.bits(pa.array(texts, pa.string())).to_pylist()
    return sum(bits) / n_bytes if n_bytes else None
