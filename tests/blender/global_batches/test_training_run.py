"""Runs of a real namespace: the steps they hold, the batches that reclaiming deletes, and restarts."""

from __future__ import annotations

from pathlib import Path

import pytest

from blender.errors import InvalidRequest
from blender.global_batches.errors import BatchesGone, CheckpointDropped, RunTaken
from blender.global_batches.log.operations import Create, Operation, Routine
from blender.global_batches.log.reclaim import reclaim
from blender.global_batches.namespace import open_namespace
from blender.global_batches.reader import BatchReader
from blender.global_batches.reclamation import reclaim_batches
from blender.global_batches.status import namespace_status
from blender.global_batches.store.namespace_store import open_store
from blender.global_batches.training_run import TrainingRun, close_run
from blender.spec.step_range import StepRange
from factory.errors import ConfigurationError, NotFound
from tests.blender.global_batches.written import Lane, batch, new_namespace, small_log

STEPS = 30


@pytest.fixture
def uri(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A namespace of thirty steps, in segments of eight."""
    small_log(monkeypatch, checkpoint_versions=4, segment_steps=8)
    address = new_namespace(tmp_path / "run")
    lane = Lane(address)
    for number in range(STEPS):
        lane.put(batch(number))
    return address


def n_objects(uri: str, kind: str = "batches") -> int:
    return sum(path.is_file() for path in Path(uri, kind).rglob("*"))


def read(uri: str, first: int, n: int = 3) -> list[int]:
    return [int(step.ids[0]) // 1_000 for step in BatchReader(uri).read(StepRange(first, n), 0)]


def test_batches_before_the_oldest_live_checkpoint_are_deleted(uri: str) -> None:
    run = TrainingRun(uri, "a")
    assert reclaim_batches(uri).batches == 0
    for step in (10, 15, 20):
        run.checkpoint(f"ckpt-{step}", step, keep=2)
    assert run.held_steps.checkpoints == {"ckpt-15": 15, "ckpt-20": 20}
    dry = reclaim_batches(uri, dry=True)
    assert (dry.step, dry.batches, n_objects(uri)) == (15, 15, STEPS)
    assert reclaim_batches(uri).batches == 15
    assert (n_objects(uri), n_objects(uri, "segment")) == (STEPS - 15, 2)
    assert read(uri, 15) == [15, 16, 17]
    assert reclaim_batches(uri).batches == 0
    status = namespace_status(uri)
    assert (status.first_kept, status.reclaimable, status.orphans) == (15, 0, 0)
    assert [(run.name, run.first_step) for run in status.runs] == [("a", 15)]
    assert status.n_bytes // 3 < status.live_bytes < status.n_bytes * 2 // 3


@pytest.mark.parametrize("step", [0, 9, 14], ids=["a deleted segment", "a kept segment", "the one before"])
def test_a_step_that_was_reclaimed_is_named_with_the_first_one_that_is_left(uri: str, step: int) -> None:
    TrainingRun(uri, "a").checkpoint("ckpt", 15)
    reclaim_batches(uri)
    with pytest.raises(BatchesGone, match=f"step ({step:,}|7) was reclaimed.*before step 15"):
        read(uri, step)
    with pytest.raises(BatchesGone, match="begins at step 3, and the batches before step 15"):
        TrainingRun(uri, "b", start=3)
    assert [run.name for run in namespace_status(uri).runs] == ["a"]
    assert TrainingRun(uri, "b", start="oldest").held_steps.first_step == 15


def test_a_restart_finds_what_its_run_held_and_its_zombie_holds_nothing_more(uri: str) -> None:
    zombie = TrainingRun(uri, "a")
    zombie.checkpoint("ckpt-10", 10)
    run = TrainingRun(uri, "a")
    assert run.held_steps.checkpoints == {"ckpt-10": 10}
    with pytest.raises(RunTaken, match="has opened run `a`"):
        zombie.checkpoint("ckpt-25", 25)
    zombie.close()
    assert [entry.first_step for entry in namespace_status(uri).runs] == [10]
    assert reclaim_batches(uri).step == 10


def test_a_run_goes_back_to_a_live_checkpoint_and_no_further(uri: str) -> None:
    run = TrainingRun(uri, "a")
    for step in (5, 10, 15):
        run.checkpoint(f"ckpt-{step}", step)
    with pytest.raises(
        CheckpointDropped, match=r"`ckpt-5`.*Live checkpoints: `ckpt-10` \(step 10\), `ckpt-15`"
    ):
        run.rolled_back("ckpt-5")
    with pytest.raises(CheckpointDropped, match="never marked"):
        run.rolled_back("ckpt-12")
    assert run.rolled_back("ckpt-10").checkpoints == {"ckpt-10": 10}
    with pytest.raises(CheckpointDropped, match="holds the steps from 10 on, and step 9"):
        run.checkpoint("ckpt-9", 9)


def test_two_runs_hold_the_older_of_their_steps_until_one_is_closed(uri: str) -> None:
    first, second = TrainingRun(uri, "a"), TrainingRun(uri, "b")
    second.checkpoint("ckpt", 20)
    assert reclaim_batches(uri).step == 0
    first.checkpoint("ckpt", 12)
    assert reclaim_batches(uri).step == 12
    assert close_run(uri, "a") == 12
    with pytest.raises(RunTaken, match="was closed"):
        first.checkpoint("ckpt", 14)
    assert reclaim_batches(uri).step == 20
    with pytest.raises(NotFound, match=r"no open run `a`\. Open runs: `b`"):
        close_run(uri, "a")


def test_without_a_run_nothing_is_deleted_unless_all_is(uri: str) -> None:
    run = TrainingRun(uri, "a")
    with pytest.raises(ConfigurationError, match=r"Open runs hold batches of .*: `a`"):
        reclaim_batches(uri, without_runs=True)
    run.close()
    assert reclaim_batches(uri).batches == 0
    assert reclaim_batches(uri, without_runs=True).batches == STEPS
    assert n_objects(uri) == 0


def test_an_orphan_is_counted_and_deleted_once_its_producer_is_replaced(uri: str) -> None:
    lane = Lane(uri, "b")
    lane.put(batch(0))
    [name] = [path for path in Path(uri, "batches", "b").rglob("*") if path.is_file()]
    orphan = name.with_name("1-dead")
    orphan.write_bytes(name.read_bytes())
    assert namespace_status(uri).orphans == 0  # its producer may still commit it
    Lane(uri, "b")
    assert namespace_status(uri).orphans == 1
    assert namespace_status(uri, count_orphans=False).orphans is None
    assert reclaim_batches(uri).orphans == 1
    assert not orphan.exists()
    assert name.exists()


@pytest.mark.parametrize("name", ["", " a", "a b", "x" * 129])
def test_a_name_that_no_run_can_have_is_refused(uri: str, name: str) -> None:
    with pytest.raises(ConfigurationError, match="cannot name a run"):
        TrainingRun(uri, name)


def test_the_order_of_checkpoints_outlives_a_restart(uri: str) -> None:
    """Names need not sort by age: `ckpt-9` is before `ckpt-10`."""
    run = TrainingRun(uri, "a", keep=3)
    for step in (8, 9, 10):
        run.checkpoint(f"ckpt-{step}", step)
    run = TrainingRun(uri, "a", keep=3)
    assert list(run.held_steps.checkpoints) == ["ckpt-8", "ckpt-9", "ckpt-10"]
    assert run.rolled_back("ckpt-10").first_step == 8
    reclaim_batches(uri)  # records the runs in a floor
    run = TrainingRun(uri, "a", keep=2)
    run.checkpoint("ckpt-11", 11)
    assert list(run.held_steps.checkpoints) == ["ckpt-10", "ckpt-11"]


def test_a_step_that_is_not_committed_cannot_be_marked(uri: str) -> None:
    run = TrainingRun(uri, "a")
    with pytest.raises(InvalidRequest, match=r"marks step 31, and .* has 30 steps"):
        run.checkpoint("ckpt", STEPS + 1)
    run.checkpoint("ckpt", STEPS)


def test_a_run_does_not_go_back_behind_a_mark_that_it_was_not_told_of(uri: str) -> None:
    run = TrainingRun(uri, "a", keep=1)
    run.checkpoint("ckpt-10", 10)
    earlier = run.held_steps
    run.checkpoint("ckpt-20", 20)
    run.held_steps = earlier  # the answer to the second mark was lost
    with pytest.raises(CheckpointDropped, match="holds the steps from 20 on, and not step 10"):
        run.rolled_back("ckpt-10")


def test_a_reclaimer_that_dies_before_it_records_is_finished_by_the_next(uri: str) -> None:
    TrainingRun(uri, "a").checkpoint("ckpt", 20)
    store = open_store(uri)
    client = open_namespace(store).client()
    steps = reclaim(client)
    operation = next(steps)
    while not (isinstance(operation, Create) and b'"deleted":20' in operation.body):
        operation = steps.send(store.run(single(operation)))
    assert reclaim_batches(uri).batches == 20  # deleted before, and not recorded
    assert (reclaim_batches(uri).batches, namespace_status(uri).reclaimable) == (0, 0)
    assert n_objects(uri) == STEPS - 20


def single(operation: Operation) -> Routine[object]:
    answer = yield operation
    return answer
