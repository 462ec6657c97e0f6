"""Bits per byte of texts by the model of their language, in Spark's Python workers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_udfs.filters.by_language import by_language
from spark_udfs.models.ngram import load


def bits_per_byte(_doc_ids: pa.Array, texts: pa.Array, *, models: bytes, name: str) -> dict[str, pa.Array]:
    """Return the column `name`; null for an empty text, and for one in a language without a model."""
    model_by_language = load(models)
    column = np.full(len(texts), np.nan)
    for language, positions, of_language in by_language(texts, model_by_language.keys()):
        bits = model_by_language[language].bits(of_language).to_numpy(zero_copy_only=False)
        n_bytes = pc.binary_length(of_language).to_numpy(zero_copy_only=False)
        column[positions] = bits / n_bytes  # a text that has a language has a letter
    return {name: pa.array(column, mask=np.isnan(column))}
