"""Verdicts on clusters: losses that are far from the median of their language.

A deviation is 1.4826 times the median distance from the median, which is the standard deviation of normally
distributed losses (Rousseeuw and Croux, "Alternatives to the Median Absolute Deviation", 1993). A quarter of
outliers would widen it by half, so outliers are left out and it is computed again, until there are none.

Noise adds bits, so high losses are measured by difference. A loss cannot fall below zero, so low ones are
measured by ratio: half the median is as far as a quarter is from half.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import exp
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

ClusterVerdict = Literal["keep", "downsample", "discard"]
_JUDGED = ["cluster", "language", "loss", "loss_after"]
Floats = npt.NDArray[np.float64]

LEAST_CLUSTERS = 8  # of a language that has a median of its own, and of a dataset that has limits
LEAST_DEVIATION = 0.1  # bits per byte, and natural logarithm; losses of like clusters differ by chance
_OUTLIER = 3.0  # deviations
_LEAST_LOSS = 1e-6  # bits per byte that has a logarithm
NO_LIMIT = 1e9  # bits per byte that no text has


@dataclass(frozen=True)
class Scale:
    """The median and the deviation of losses without outliers."""

    median: float
    deviation: float

    @classmethod
    def from_losses(cls, losses: Floats) -> Scale:
        """Return the scale of one loss or more."""
        while True:
            median = float(np.median(losses))
            distances = np.abs(losses - median)
            deviation = max(1.4826 * float(np.median(distances)), LEAST_DEVIATION)
            inliers = distances <= _OUTLIER * deviation
            if inliers.all():
                return cls(median, deviation)
            losses = losses[inliers]

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
        """Return the scales of clusters, NaN for those without a loss; none of fewer than LEAST_CLUSTERS."""
        has_loss = ~np.isnan(losses)
        if has_loss.sum() < LEAST_CLUSTERS:
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
        """Return the scale of clusters of a language; None if too few clusters have a loss."""
        return self.of_languages.get(language or "", self.of_all)


def logarithms(losses: Floats) -> Floats:
    """Return the natural logarithms of losses."""
    return np.log(np.maximum(losses, _LEAST_LOSS))


@dataclass(frozen=True)
class Judge:
    """Gives verdicts by the loss after continuing; the loss before only has a z-score."""

    before: Scales
    after: Scales
    log_after: Scales
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
        before, after, log_after = (
            scales.for_language(row["language"]) for scales in (self.before, self.after, self.log_after)
        )
        high = after and after.median + self.noise * after.deviation
        low = log_after and exp(log_after.median - self.easy * log_after.deviation)
        verdict = "too_small" if loss_after is None else "keep"
        if loss_after is not None and high is not None and low is not None:  # else there are too few clusters
            if loss_after > high:
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
