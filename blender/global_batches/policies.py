"""How long a producer waits between two attempts to commit.

    policy = AdaptiveCommit()
    policy.after(seconds=0.04, lanes=32)            # some 24: the gap that keeps conflicts below 5 %

Attempts of many producers collide while one reads the head and creates the next version: the window. A gap
that is too short wastes attempts, one that is too long makes batches visible late.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field
from typing import Protocol

from blender.global_batches.log.state import Lane, LogState
from factory.errors import ConfigurationError

_LIVE_GAPS = 3
_LIVE_S = 1.0  # gaps of an idle namespace are shorter than a pause of a producer


class Policy(Protocol):
    """Decides on the gap after every attempt, won or lost."""

    def after(self, seconds: float, lanes: int) -> float:
        """The seconds to wait, after an attempt of `seconds`, while `lanes` lanes commit."""


@dataclass
class Naive:
    """Commit all pending batches at once."""

    def after(self, seconds: float, lanes: int) -> float:  # noqa: ARG002
        """No wait."""
        return 0.0


@dataclass
class AdaptiveCommit:
    """Decentralized Adaptive Commit: the smallest gap within a budget of conflicts and one of work.

    The paper, section 5.2, equations 2 to 10. The window t is an average of the attempts so far, won or lost.
    With attempts of the other lanes at random instants, one of them falls into it with probability
    1 - exp(-(lanes - 1) t / (t + gap)), and attempts take t / (t + gap) of the time.
    """

    conflict_budget: float = 0.05
    """The part of attempts that may be lost."""
    duty_budget: float = 0.05
    """The part of the time that attempts may take."""
    jitter: float = 0.2
    """The part by which gaps vary at random, so that producers do not march in step."""
    longest_gap: float = 120.0
    """Seconds: however slow an attempt was, batches are visible after so long. It outranks the budgets."""
    smoothing: float = 0.2
    """The weight of the last attempt in the window."""
    window: float | None = field(default=None, init=False)
    """Seconds of an attempt; None before the first."""
    gap: float = field(default=0.0, init=False)
    """The gap without its jitter, in seconds."""
    random: random.Random = field(default_factory=random.Random, repr=False)

    def __post_init__(self) -> None:
        for name in ("conflict_budget", "duty_budget"):
            if not 0 < getattr(self, name) < 1:
                raise ConfigurationError(
                    f"`{name}` is {getattr(self, name)}. Give a part between 0 and 1, such as .05."
                )

    def after(self, seconds: float, lanes: int) -> float:
        """See `Policy.after`."""
        if self.window is None:
            self.window = seconds
        self.window += self.smoothing * (seconds - self.window)
        self.gap = min(self.least_gap(self.window, lanes), self.longest_gap)
        return self.gap * (1 + self.jitter * self.random.uniform(-1, 1))

    def least_gap(self, window: float, lanes: int) -> float:
        """The smallest gap that keeps both budgets (equations 7 to 9)."""
        conflict_gap = (lanes - 1) * window / -math.log1p(-self.conflict_budget) - window
        duty_gap = window * (1 / self.duty_budget - 1)
        return max(0.0, conflict_gap, duty_gap)


class LaneActivity:
    """Which lanes have committed lately, as one producer sees it in the states that it reads.

    Lanes that are there at the `start` count once they change: most of a long run's are given up.
    """

    def __init__(self, start: LogState) -> None:
        self._changes: dict[str, tuple[Lane, float]] = {
            name: (lane, -math.inf) for name, lane in start.lanes.items()
        }

    def live(self, state: LogState, now: float, gap: float) -> int:
        """The number of open lanes that changed within the last three gaps; at least 1, the producer's."""
        earlier, self._changes = self._changes, {}
        for name, lane in state.lanes.items():
            before, changed_at = earlier.get(name, (None, now))
            self._changes[name] = lane, changed_at if before == lane else now
        since = now - max(_LIVE_GAPS * gap, _LIVE_S)
        changes = self._changes.values()
        return max(1, sum(not lane.closed and changed_at >= since for lane, changed_at in changes))
