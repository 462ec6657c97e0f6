"""The bench of jobs, in small: its answers hold, and its requests are those that can be counted by hand."""

from __future__ import annotations

import pytest
from rich.console import Console

from bench.batches import stores
from bench.harness import Report
from bench.synthesis import preemption, queue, replicas

QUIET = Console(quiet=True)


def test_a_slice_costs_a_lease_and_a_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "ITEMS", 1_000)
    with stores.folder() as place:
        report = Report([], "")
        costs = queue.costs_of(place, report)
    assert len(report.answers) == 4
    n_slices = 1_000 // queue.SLICE_ITEMS
    # Each worker reads the job and lists when it begins, one does at the end, and some leases are lost.
    least = 2 + queue.WORKERS + 2 * n_slices + 3 * queue.WORKERS
    assert least <= costs["leases and results"].requests <= 3 * least
    assert costs["one listing"].requests == costs["collection"].requests == 1
    assert min(cost.cpu_s for cost in costs.values()) > 0


@pytest.mark.slow
@pytest.mark.process
def test_replicas_make_the_rows_of_one_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replicas, "ITEMS", 8)
    report = replicas.measure(QUIET)
    assert report.answers == [
        "hashes: 2 replicas make the rows of one",
        "waits 200 ms: 4 replicas make the rows of one",
    ]
    assert [row.aim for row in report.rows] == [">= 1.85", ">= 3.5"]


@pytest.mark.slow
@pytest.mark.process
def test_a_claim_stops_the_workers_of_a_job_and_changes_no_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preemption, "CLAIMS", 1)
    monkeypatch.setattr(preemption, "ITEM_MIB", 512)
    report = preemption.measure(QUIET)
    assert report.answers == [
        "the rows of the job are the same with claims",
        "stopped workers use no CPU time",
    ]
    assert [row.aim for row in report.rows] == ["<= 2", "<= 1.1"]
