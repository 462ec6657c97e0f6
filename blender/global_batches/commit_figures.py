"""Figures of a producer's commits, for people: stored in the log with its lane, and exported as metrics.

    figures = writer.figures
    figures.attempts, figures.lost, figures.mean_lag        # 212, 9, 1.31

Nothing in the protocol depends on them; the producer's own clock gives the times.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from blender.global_batches.json_values import Json

_SMOOTHING = 0.2  # the weight of the last attempt, as in `AdaptiveCommit`


@dataclass
class CommitFigures:
    """Results of a writer's attempts since it opened its lane."""

    attempts: int = 0
    """Attempts that have begun."""
    lost: int = 0
    """Attempts that added nothing: another producer created the version, or a request was lost."""
    batches: int = 0
    """Batches that were committed."""
    n_bytes: int = 0
    """Bytes of the batches that were committed."""
    waited: float = 0.0
    """The seconds from the storing of each batch to its commit, summed over the committed batches."""
    gap: float = 0.0
    """Seconds from the last attempt to the next one."""
    window: float | None = None
    """Seconds of an attempt, in which it can collide with others: a moving average; None before the first."""
    lanes: int = 1
    """Lanes that committed lately."""

    @property
    def mean_lag(self) -> float | None:
        """The mean of the seconds from the storing of a batch to its commit; None before the first."""
        return self.waited / self.batches if self.batches else None

    @property
    def rate(self) -> float | None:
        """Attempts in a second, by the window and the gap; None before the first."""
        return 1 / (self.window + self.gap) if self.window else None

    def add_attempt(self, seconds: float) -> None:
        """Count the time of an attempt that the store answered."""
        window = seconds if self.window is None else self.window
        self.window = window + _SMOOTHING * (seconds - window)

    def add_batch(self, n_bytes: int, waited: float) -> None:
        """Count a batch that was committed `waited` seconds after it was stored."""
        self.batches += 1
        self.n_bytes += n_bytes
        self.waited += waited

    def report(self, stored_for: Sequence[float] = ()) -> Json:
        """The figures as they stand in the log: as if the attempt that begins is won.

        `stored_for` are the seconds since each of its batches was stored.
        """
        batches = self.batches + len(stored_for)
        waited = self.waited + sum(stored_for)
        return {
            "at": round(time.time(), 3),
            "attempts": self.attempts,
            "lost": self.lost,
            "batches": batches,
            "mean_lag": round(waited / batches, 3) if batches else None,
            "gap": round(self.gap, 4),
            "window": None if self.window is None else round(self.window, 5),
            "lanes": self.lanes,
        }
