"""Listed words per 1,000 words of a text, in Spark's Python workers."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa

from factory import _native
from factory.models.word_list import PROFANE
from spark_udfs.filters.by_language import by_language


@dataclass(frozen=True)
class LoadedWordList:
    """The entries of a language: first the `n_profane` entries of the tier that decides."""

    entries: tuple[str, ...]
    n_profane: int
    search: _native.WordList


def rates(
    _doc_ids: pa.Array, texts: pa.Array, *, word_list: bytes, profane: str, shown_only: str
) -> dict[str, pa.Array]:
    """Return the columns `profane` and `shown_only`: entries of either tier per 1,000 words.

    Null for a text without a word, and for one in a language without a list.
    """
    rate_by_tier = np.full((2, len(texts)), np.nan)
    lists = load(word_list)
    for language, positions, of_language in by_language(texts, lists.keys()):
        words = lists[language]
        counts = words.search.counts(of_language)
        lengths = np.diff(counts.offsets.to_numpy()) - 1
        numbers = counts.values.to_numpy()
        n_tokens = numbers[counts.offsets.to_numpy()[:-1]]
        owners = np.repeat(np.arange(len(of_language)), lengths)
        hits = np.delete(numbers, counts.offsets.to_numpy()[:-1])
        for tier, members in enumerate((hits < words.n_profane, hits >= words.n_profane)):
            n_hits = np.bincount(owners[members], minlength=len(of_language))
            with np.errstate(invalid="ignore"):
                rate_by_tier[tier, positions] = 1_000 * n_hits / n_tokens
    return {
        name: pa.array(rate, mask=np.isnan(rate))
        for name, rate in zip((profane, shown_only), rate_by_tier, strict=True)
    }


@lru_cache(maxsize=8)
def load(word_list: bytes) -> dict[str, LoadedWordList]:
    """Return the lists by language of a table WORD_LIST, given as an Arrow stream."""
    tiers: dict[str, tuple[list[str], list[str]]] = defaultdict(lambda: ([], []))
    for row in pa.ipc.open_stream(word_list).read_all().to_pylist():
        tiers[row["language"]][row["tier"] != PROFANE].append(row["entry"])
    return {
        language: LoadedWordList((*profane, *others), len(profane), _native.WordList([*profane, *others]))
        for language, (profane, others) in tiers.items()
    }
