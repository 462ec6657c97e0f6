"""Probabilities of classes for batches of texts, in Spark's Python workers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from factory import _native
from factory.models.calibration import Calibration


@dataclass(frozen=True)
class LoadedClassifier:
    """The rows of a table CLASSIFIER, ready to score."""

    classes: tuple[str, ...]
    models: _native.LinearModels
    calibrations: tuple[Calibration, ...]

    def probabilities(self, texts: pa.Array, least_tokens: int) -> list[npt.NDArray[np.float64]]:
        """Return the probability of each class for each text; NaN for null or for too few tokens."""
        scores = self.models.scores(texts, least_tokens)
        columns = [column.to_numpy(zero_copy_only=False) for column in scores.columns]
        pairs = zip(self.calibrations, columns, strict=True)
        return [calibration.probability(column) for calibration, column in pairs]


def load(classifier: bytes) -> LoadedClassifier:
    """Return the classifier of a table CLASSIFIER, given as an Arrow stream."""
    return _load(classifier)


def probability(
    _doc_ids: pa.Array, texts: pa.Array, *, classifier: bytes, name: str, least_tokens: int
) -> dict[str, pa.Array]:
    """Return the column `name`: the probability of the first class."""
    [first, *_] = load(classifier).probabilities(texts, least_tokens)
    return {name: pa.array(first, mask=np.isnan(first))}


def likeliest(
    _doc_ids: pa.Array, texts: pa.Array, *, classifier: bytes, name: str, score: str, least_tokens: int
) -> dict[str, pa.Array]:
    """Return the columns `name`, the likeliest class, and `score`, its share of all probabilities."""
    model = load(classifier)
    probabilities = np.stack(model.probabilities(texts, least_tokens))
    missing = np.isnan(probabilities[0])
    best = np.where(missing, 0, np.nan_to_num(probabilities).argmax(axis=0))
    names = np.array(model.classes, dtype=object)[best]
    shares = probabilities.max(axis=0) / probabilities.sum(axis=0)
    return {name: pa.array(names, pa.string(), mask=missing), score: pa.array(shares, mask=missing)}


@lru_cache(maxsize=8)
def _load(classifier: bytes) -> LoadedClassifier:
    rows: Sequence[dict[str, Any]] = pa.ipc.open_stream(classifier).read_all().to_pylist()
    calibrations = [
        Calibration(np.array(row["knot_scores"]), np.array(row["knot_logits"]), row["end_slope"])
        for row in rows
    ]
    models = _native.LinearModels(
        rows[0]["bits"], [row["weights"] for row in rows], [row["intercept"] for row in rows]
    )
    return LoadedClassifier(tuple(row["class"] for row in rows), models, tuple(calibrations))
