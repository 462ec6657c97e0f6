"""Verdicts on clusters: losses that are far from the median of their language.

A deviation is 1.4826 times the median distance from the median, which is the standard deviation of normally
distributed losses. Outliers move neither, as long as they are fewer than half.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

ClusterVerdict = Literal["keep", "downsample", "discard"]
_JUDGED = ["cluster", "language", "loss", "loss_after"]
Floats = npt.NDArray[np.float64]

LEAST_CLUSTERS = 8  # of a language that has a median of its own
LEAST_DEVIATION = 0.1  # bits per byte; below, losses of like clusters differ by chance
NO_LIMIT = 1e9  # bits per byte that no text has


@dataclass(frozen=True)
class Scale:
    """The median of losses and their deviation, in bits per byte."""

    median: float
    deviation: float

    @classmethod
    def from_losses(cls, losses: Floats) -> Scale:
        """Return the scale of one loss or more."""
        median = float(np.median(losses))
        deviation = 1.4826 * float(np.median(np.abs(losses - median)))
        return cls(median, max(deviation, LEAST_DEVIATION))

    def z(self, loss: float | None) -> float | None:
        """Return the distance of a loss from the median in deviations; None for no loss."""
        return None if loss is None else (loss - self.median) / self.deviation


@dataclass(frozen=True)
class Scales:
    """The scales of the languages with enough clusters, and the scale of all clusters for the others."""

    of_all: Scale | None
    of_languages: Mapping[str, Scale]

    @classmethod
    def from_losses(cls, languages: npt.NDArray[np.object_], losses: Floats) -> Scales:
        """Return the scales of clusters, NaN for those without a loss."""
        has_loss = ~np.isnan(losses)
        if not has_loss.any():
            return cls(None, {})
        names, counts = np.unique([name for name in languages[has_loss] if name], return_counts=True)
        return cls(
            Scale.from_losses(losses[has_loss]),
            {
                str(name): Scale.from_losses(losses[has_loss & (languages == name)])
                for name in names[counts >= LEAST_CLUSTERS]
            },
        )

    def for_language(self, language: str | None) -> Scale | None:
        """Return the scale of clusters of a language; None if no cluster has a loss."""
        return self.of_languages.get(language or "", self.of_all)


@dataclass(frozen=True)
class Judge:
    """Gives verdicts by the loss after continuing; the loss before only has a z-score."""

    before: Scales
    after: Scales
    noise: float
    easy: float
    rate: float
    by_hand: Mapping[int, ClusterVerdict]

    def verdicts(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield rows of LOSSES with the columns that VERDICTS adds."""
        for batch in batches:
            columns = pa.RecordBatch.from_pylist(
                [self._verdict(row) for row in batch.select(_JUDGED).to_pylist()], ADDED
            )
            yield pa.RecordBatch.from_arrays(
                [*batch.columns, *columns.columns], [*batch.schema.names, *ADDED.names]
            )

    def _verdict(self, row: Mapping[str, Any]) -> dict[str, Any]:
        loss_after = row["loss_after"]
        before, after = (scales.for_language(row["language"]) for scales in (self.before, self.after))
        high = low = None
        if after is not None:
            high = after.median + self.noise * after.deviation
            low = after.median - self.easy * after.deviation
        verdict = "keep"
        if loss_after is None or after is None:
            verdict = "too_small"
        elif loss_after > high:
            verdict = "discard"
        elif loss_after < low:
            verdict = "downsample"
        ruling = self.by_hand.get(row["cluster"])
        if ruling is not None:
            verdict = ruling
            high = high if ruling == "discard" else NO_LIMIT
            low = 0.0 if ruling == "keep" else low
        return {
            "z": before and before.z(row["loss"]),
            "z_after": after and after.z(loss_after),
            "high": high,
            "low": low,
            "verdict": verdict,
            "rate": {"discard": 0.0, "downsample": self.rate}.get(verdict, 1.0),
            "by_hand": ruling is not None,
        }


ADDED = pa.schema(
    [
        ("z", pa.float64()),
        ("z_after", pa.float64()),
        ("high", pa.float64()),
        ("low", pa.float64()),
        ("verdict", pa.string()),
        ("rate", pa.float64()),
        ("by_hand", pa.bool_()),
    ]
)
