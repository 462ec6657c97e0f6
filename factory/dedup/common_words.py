"""Whether documents share nearly all of their words, and yet weigh as unlike, on a sample of pairs.

A word weighs ln(1 + N / df). Where one family makes up most of a group, the words that its members share are
in nearly every document and weigh ln 2, while a word that one of them has alone weighs ln(1 + N). So 20,000
copies of a text that each replace 3 % of its words have a J_W of about .5, and no edges. The weights are
right: within this group, the shared words tell nothing. But a run that finds no copies among copies says so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from factory.dedup.idf import SharedTable
from factory.lake_spark.documents import map_scattered
from spark_udfs.dedup import edges as udf

SAMPLED = 64
"""Documents of the sample, of which all pairs are compared."""

LEAST_PAIRS, LEAST_SHARE = 45, 0.1
"""From so many sampled pairs on, this share of hidden ones is said: a family of a third of the group."""

_MAX_DISTINCT = 1 << 16  # tokens of a sampled document, which bounds the memory of the task
_LOWEST = 0.3  # least threshold of a group


@dataclass(frozen=True)
class CommonWords:
    """Sampled pairs, the ones that share `threshold` of their words and are not similar by weight.

    `similarity` is the weighted similarity that nine of ten hidden pairs reach.
    """

    threshold: float
    pairs: int = 0
    n_hidden: int = 0
    similarity: float = 0.0

    def facts(self) -> dict[str, str | int]:
        """The counts as metadata."""
        return {"sampled pairs": self.pairs, "sampled pairs alike in common words": self.n_hidden}

    def sentence(self) -> str:
        """Say that a family is hidden, with its remedy; nothing if few pairs are."""
        if self.pairs < LEAST_PAIRS or self.n_hidden < LEAST_SHARE * self.pairs:
            return ""
        lower = math.floor(self.similarity * 20) / 20
        remedy = f"lower `threshold` to {lower:g}, or compare them" if lower >= _LOWEST else "compare them"
        least, most_reach = f"{self.threshold:g}", f"{self.similarity:.2f}"
        return (
            f"{self.n_hidden:,} of {self.pairs:,} pairs of sampled documents share at least {least} of their "
            f"words, and are not similar at {least} by weight (most reach {most_reach}), because words that "
            f"most documents of a group have weigh little. If they are copies of one text, {remedy} in one "
            "group with other texts."
        )


def common_words(signatures: DataFrame, threshold: float, value_bits: int, idf: SharedTable) -> CommonWords:
    """Compare the pairs of a sample of documents by shared words and by weight; runs a job when called.

    `signatures` are (document, doc_id, signature, n_distinct, file, row). The sample follows from the ids.
    """
    of_bounded_size = signatures.where(F.col("n_distinct") <= _MAX_DISTINCT)
    sample = of_bounded_size.orderBy(F.xxhash64("doc_id"), "doc_id").limit(SAMPLED).repartition(1)
    compare = partial(udf.sampled_similarities, idf=idf, value_bits=value_bits)
    schema = "by_words double, by_weight double"
    rows = map_scattered(sample, "bag", pa.large_binary(), compare, schema).collect()
    return counted_pairs([(pair.by_words, pair.by_weight) for pair in rows], threshold)


def counted_pairs(pairs: list[tuple[float, float]], threshold: float) -> CommonWords:
    """Count the pairs (by_words, by_weight) that only the shares of words make similar."""
    similarities = sorted(by_weight for by_words, by_weight in pairs if by_weight < threshold <= by_words)
    similarity = similarities[len(similarities) // 10] if similarities else 0.0
    return CommonWords(threshold, len(pairs), len(similarities), similarity)
