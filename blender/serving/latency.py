"""How long clients wait for the answers of this process: a histogram by method, for Prometheus.

An answer is the message of a call with one, or each message of a stream. Its clock runs from the call, or
from the moment that the client took the message before, until the answer is ready to be sent: it counts the
time of a source and of the machine, and leaves out a slow client's.
"""

from __future__ import annotations

from bisect import bisect_left

from blender.rows.counts import Counts

BOUNDS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)
"""Upper bounds of the histogram's buckets in seconds; one more holds what lasts longer."""
SUM = "sum"

ANSWERS = Counts()
"""By (the number of the bucket, the method): answers; by (`SUM`, the method): their seconds."""


def note_answer(method: str, seconds: float) -> None:
    """Count an answer that was ready after `seconds`."""
    ANSWERS.add(str(bisect_left(BOUNDS_S, seconds)), method)
    ANSWERS.add(SUM, method, seconds)
