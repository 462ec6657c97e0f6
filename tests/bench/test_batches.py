"""The bench of durable batches, on logs short enough to count by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from bench.batches import commits, remap, retention, slices, start, stores
from bench.batches.objects import Calls
from blender.global_batches.log import names
from blender.global_batches.log.client import Client
from blender.global_batches.log.state import Lane


def client() -> Client:
    return Client(checkpoint_versions=10, segment_steps=8)


def test_a_start_finds_the_state_and_its_reads_are_counted(tmp_path: Path) -> None:
    calls = {}
    for state, objects in start.grown((6, 33), client):
        folder = tmp_path / f"{state.version}"
        start.write(objects, folder)
        result = start.start(folder, client())
        assert start.equal(result.state, state)
        assert min(result.s, result.cpu_s) > 0
        calls[state.version] = result.calls
        assert result.calls.n_bytes <= sum(len(name) + len(body) for name, body in objects.items())
        versions = {names.number(name) for name in objects if name.startswith(names.LOG)}
        assert versions == set(range(1 if state.version == 6 else 21, state.version + 1))
    # The floor, the first checkpoint, version 1, 16 versions more, the floor, the list.
    assert replace(calls[6], n_bytes=0) == Calls(requests=20 + 1, round_trips=5 + 1)
    # Two records of the floor and none after them, checkpoints 20 and 30 and none after them, and as before.
    assert replace(calls[33], n_bytes=0) == Calls(requests=3 + 3 + 17 + 1 + 1, round_trips=3 + 3 + 2 + 1 + 1)


def test_another_state_is_found_out(tmp_path: Path) -> None:
    ((state, objects),) = start.grown((6,), client)
    start.write(objects, tmp_path)
    result = start.start(tmp_path, client())
    assert not start.equal(result.state, replace(state, content=state.content ^ 1))
    assert not start.equal(result.state, replace(state, lanes={**state.lanes, "x": Lane(1, "x")}))
    assert not start.equal(result.state, replace(state, steps=state.steps + 1))


def test_a_slice_costs_its_own_bytes_and_the_footer() -> None:
    with stores.folder() as place:
        reads = slices.read_both_ways(place, kib=4, n_batches=2, rounds=6)
    assert len(reads.slice_s) == len(reads.whole_s) == 6
    assert reads.are_right
    assert reads.requests == 2
    assert 1 < reads.amplification < 1.5


def test_ranks_of_other_meshes_are_compared_and_their_bytes_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, size in {"ROWS": 8, "LENGTH": 4_096, "DOCUMENT": 256, "BATCHES": 2, "ROUNDS": 1}.items():
        monkeypatch.setattr(remap, name, size)
    figures = {row.name: row.value for row in remap.measure(Console(quiet=True)).rows}
    assert 2 < figures["batches.remap.rows.dp8_cp8.bytes_read_of_needed"] < 5
    assert figures["batches.remap.columns.dp8_cp2.bytes_read_of_needed"] < 1.5
    kind = remap.Kind("columns", remap.slices_of_columns, remap.tokens_of_columns)
    batches = remap.write(str(tmp_path), kind)
    assert remap.read(str(tmp_path), kind, remap.MESH, batches).are_right
    assert not remap.read(str(tmp_path), kind, remap.MESH, batches[::-1]).are_right


@pytest.mark.process
def test_producers_commit_until_they_have_their_attempts_and_the_log_has_what_they_noted() -> None:
    with stores.folder() as place:
        outcome = commits.run(
            place, n_producers=2, pace="apart", goal=commits.Goal(6, 1.0), progress=Console(quiet=True)
        )
    assert outcome.log_is_whole
    assert outcome.attempts > outcome.lost >= 0
    assert outcome.n_bytes % outcome.batches == 0
    assert min(outcome.seconds, outcome.lag_s, outcome.window_s, outcome.batches) > 0
    assert 0 < outcome.success <= 1


def test_the_bytes_that_a_run_holds_stay_within_its_max_lag(tmp_path: Path) -> None:
    first_run = retention.train(tmp_path / "run", steps=200, batch_bytes=4_096, keep=2, max_lag=30)
    whole = retention.train(tmp_path / "whole", steps=200, batch_bytes=4_096, keep=2, max_lag=None)
    assert (first_run.is_whole, whole.is_whole) == (True, True)
    assert (first_run.n_deleted, whole.n_deleted) == (200 - retention.EVERY, 0)
    assert first_run.peak <= (30 + retention.EVERY + 1) * whole.n_bytes[-1] / 200
