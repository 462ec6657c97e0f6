"""What in a text made a model's value, as one phrase for a person; worked out when asked, never stored.

The table of a model tells by its columns which kind of model it is. Another kind is one line of `KINDS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from factory.lake.schemas.base import TableSchema
from factory.lake.schemas.models import CLASSIFIER, NGRAM_MODEL, WORD_LIST
from factory.models.arrow_stream import arrow_stream_of
from factory.models.classifier import contributions
from factory.models.word_list import PROFANE
from spark_udfs.filters import language_id
from spark_udfs.filters.word_list import load
from spark_udfs.models.ngram import load as load_ngram_models

_SHOWN = 8  # n-grams or places
_PASSAGE, _PASSAGES = 60, 3  # bytes of a passage, and how many are shown


@dataclass(frozen=True)
class Judgement:
    """A text, and how a rule judged it: `above` its limit or below, and the `word`, such as a class."""

    text: str
    above: bool
    word: str | None = None


def evidence(model: pa.Table, judgement: Judgement) -> str:
    """Return the parts of a text behind the value of a rule that reads `model`; empty for other tables."""
    for schema, describe in KINDS:
        if set(schema.names) <= set(model.column_names):
            return describe(model, judgement)
    return ""


def _heaviest_ngrams(model: pa.Table, judgement: Judgement) -> str:
    rows = model.to_pylist()
    row = next((row for row in rows if row["class"] == judgement.word), rows[0])
    ngrams = contributions(judgement.text, row["weights"], row["bits"])
    heaviest = ngrams if judgement.above or judgement.word else ngrams[::-1]
    speaks = "for" if judgement.above or judgement.word else "against"
    spelling = ", ".join(f"`{ngram}` {weight:+.2f}" for ngram, weight in heaviest[:_SHOWN])
    return f"what speaks most {speaks} {row['class']}: {spelling}"


def _listed_words(model: pa.Table, judgement: Judgement) -> str:
    language, _ = language_id.detect(judgement.text)
    words = load(arrow_stream_of(model)).get(language or "")
    if words is None:
        return ""
    utf8 = judgement.text.encode()
    places = [
        f"`{words.entries[entry]}` at {len(utf8[:begin].decode())}"
        for entry, begin, _ in words.search.places(judgement.text)
        if entry < words.n_profane
    ]
    more = f", and {len(places) - _SHOWN} more" if len(places) > _SHOWN else ""
    return f"{PROFANE} words of `{language}` by character: {', '.join(places[:_SHOWN])}{more}"


def _likely_and_unlikely(model: pa.Table, judgement: Judgement) -> str:
    """Return the passages of most bits per byte, or of least where the text has too few."""
    language, _ = language_id.detect(judgement.text)
    ngram_model = load_ngram_models(arrow_stream_of(model)).get(language or "")
    if ngram_model is None:
        return ""
    utf8 = judgement.text.encode()
    bits_by_byte = np.zeros(len(utf8))
    for begin, end, bits in ngram_model.token_bits(judgement.text):
        bits_by_byte[begin:end] = bits / (end - begin)
    passages = [
        (
            float(bits_by_byte[begin : begin + _PASSAGE].mean()),
            utf8[begin : begin + _PASSAGE].decode(errors="ignore"),
        )
        for begin in range(0, len(utf8), _PASSAGE)
    ]
    extremes = sorted(passages, reverse=judgement.above)[:_PASSAGES]
    spelling = "; ".join(f"`{' '.join(passage.split())}` {bits:.1f}" for bits, passage in extremes)
    return f"passages of {'most' if judgement.above else 'least'} bits per byte, as `{language}`: {spelling}"


KINDS: list[tuple[TableSchema, Callable[[pa.Table, Judgement], str]]] = [
    (CLASSIFIER, _heaviest_ngrams),
    (WORD_LIST, _listed_words),
    (NGRAM_MODEL, _likely_and_unlikely),
]
