"""The results of a finished queue: files, one a slice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from factory.errors import FactoryError
from factory.synthesis.job import Slice
from factory.synthesis.queue import Queue

_SHOWN = 3


class Incomplete(FactoryError):
    """Slices of a job have no result yet; the message names the first."""


@dataclass(frozen=True)
class Collected:
    """The results of a job: locations in the order of their slices, each a file of `results.RESULT`."""

    slices: Sequence[Slice]
    files: Sequence[str]
    items: int


def results_of(queue: Queue, size: int | None = None) -> Collected:
    """Return the results of the first `size` items, by default of all; raises Incomplete."""
    job = queue.job if size is None else queue.job.with_size(size)
    results = queue.listing().results
    slices = job.slices()
    missing = [work for work in slices if work not in results]
    if missing:
        gaps = ", ".join(f"{work.begin:,} to {work.end - 1:,}" for work in missing[:_SHOWN])
        raise Incomplete(
            f"{len(missing):,} of the {len(slices):,} slices of dataset `{job.dataset}` have no result "
            f"yet: items {gaps}{', ...' if len(missing) > _SHOWN else ''}. Run `factory work {job.dataset}`."
        )
    return Collected(slices, [queue.result_uri(work) for work in slices], job.size)
