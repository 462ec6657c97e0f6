"""Counters and gauges of a producer for Prometheus, by lane.

    server = serve_metrics("127.0.0.1", 9108, partial(samples, producer), FAMILIES)

Decentralized Adaptive Commit decides on these: the window of an attempt, the lanes that commit, the
gap that follows from both, the conflicts that remain, and the lag of a batch until it is visible.
"""

from __future__ import annotations

from blender.global_batches.commit_figures import CommitFigures
from blender.global_batches.producer import Producer
from blender.serving.metrics import MetricFamily, Samples

_LANE = ("lane",)
FAMILIES = (
    MetricFamily("batches_attempts", "Attempts to commit.", _LANE),
    MetricFamily("batches_lost_attempts", "Attempts that added nothing: conflicts and lost requests.", _LANE),
    MetricFamily("batches_committed", "Batches committed.", _LANE),
    MetricFamily("batches_committed_bytes", "Bytes of the batches committed.", _LANE),
    MetricFamily(
        "batches_lag_seconds", "Seconds from the storing of each batch to its commit, summed.", _LANE
    ),
    MetricFamily("batches_window_seconds", "Seconds of an attempt, averaged.", _LANE, gauge=True),
    MetricFamily("batches_gap_seconds", "Seconds from the last attempt to the next.", _LANE, gauge=True),
    MetricFamily("batches_attempt_rate", "Attempts in a second, by window and gap.", _LANE, gauge=True),
    MetricFamily(
        "batches_live_lanes", "Lanes that committed lately, as this one sees them.", _LANE, gauge=True
    ),
    MetricFamily("batches_next_step", "The step of the lane's next batch.", _LANE, gauge=True),
    MetricFamily("batches_lane_running", "Whether this producer writes the lane.", _LANE, gauge=True),
)


def samples(producer: Producer) -> Samples:
    """Every sample of a producer, by metric and lane."""
    values: Samples = {}
    for lane in producer.lanes:
        for name, value in _samples_of(lane.writer.figures).items():
            values[f"batches_{name}", (lane.name,)] = value
        values["batches_next_step", (lane.name,)] = producer.next_step(lane)
        values["batches_lane_running", (lane.name,)] = not lane.has_ended
    return values


def _samples_of(figures: CommitFigures) -> dict[str, float]:
    window = figures.window or 0.0
    return {
        "attempts": figures.attempts,
        "lost_attempts": figures.lost,
        "committed": figures.batches,
        "committed_bytes": figures.n_bytes,
        "lag_seconds": figures.waited,
        "window_seconds": window,
        "gap_seconds": figures.gap,
        "attempt_rate": figures.rate or 0.0,
        "live_lanes": figures.lanes,
    }
