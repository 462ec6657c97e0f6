"""kill -9 and pauses of producers and trainers on a folder (more: `make test-batches KILLS=50`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from blender.global_batches.blend_production import BlendProduction
from blender.global_batches.namespace import create_namespace
from blender.global_batches.policies import Naive
from blender.global_batches.producer import Producer
from blender.records import Source
from blender.trainer.local import LocalBlender, open_blend
from factory.settings import Settings
from tests.blender.global_batches.killed_blend_producers import LANES, MESH, check_blend_run, state_of
from tests.blender.global_batches.killed_processes import check_run
from tests.blender.global_batches.killed_runs import check_retention
from tests.blender.lakes import CODE, make_lake

pytestmark = pytest.mark.process

STEPS_OF_A_KILL = 500  # some seconds of work of producers


@pytest.mark.invariant(
    "The log of a namespace stays consistent under crashes, takeovers and lost, repeated or delayed "
    "requests: versions are contiguous and written once, a lane's rows appear once and in order, an "
    "acknowledged batch is visible, all readers see one sequence, and a checkpoint is the fold of the "
    "log. No rule of the protocol can be left out."
)
def test_every_batch_arrives_once_whoever_is_killed(
    tmp_path: Path, batch_kills: int, batch_seed: int
) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    check_run(f"{tmp_path}/run", notes, batch_kills, batch_seed, Settings(home=tmp_path))


@pytest.mark.invariant(
    "Reclaiming deletes no batch that an open run may ask for, under crashes, takeovers, rollbacks, zombies "
    "and lost, repeated or delayed requests: the floor never falls, a restart is never refused what its run "
    "held, and a quiet reclaimer leaves only live batches. No rule of the protocol can be left out."
)
def test_no_live_batch_is_deleted_whoever_is_killed(
    tmp_path: Path, batch_kills: int, batch_seed: int
) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    check_retention(f"{tmp_path}/run", notes, batch_kills, batch_seed, Settings(home=tmp_path))


@pytest.mark.invariant(
    "In assigned order the steps of a namespace equal the steps of its source, even if producers die, and"
    " a rank reads the slice that the source itself would give it."
)
@pytest.mark.parametrize(
    "producers",
    [
        pytest.param(["0..3"], id="1 producer", marks=pytest.mark.slow),
        pytest.param(["0", "1", "2", "3"], id="4 producers"),
    ],
)
def test_a_blend_comes_out_the_same_whichever_producer_is_killed(
    tmp_path: Path, batch_kills: int, batch_seed: int, producers: list[str]
) -> None:
    n_steps = STEPS_OF_A_KILL * batch_kills
    lake = make_lake(tmp_path / "home", code=8 * n_steps)
    blend = LocalBlender(lake).create([Source(CODE, weight=8)], seed=7).id
    undisturbed = f"{tmp_path}/undisturbed"
    create_namespace(undisturbed, MESH, lanes=LANES, order="assigned")
    Producer(undisturbed, BlendProduction(open_blend(blend, lake)), policy=Naive).run()
    notes = tmp_path / "notes"
    notes.mkdir()
    uri, home = f"{tmp_path}/killed", str(lake.home)
    state = check_blend_run(
        uri,
        notes,
        blend,
        producers,
        batch_kills,
        batch_seed,
        lake,
        FACTORY_HOME=home,
        FACTORY_CACHE=str(lake.cache),
    )
    whole = state_of(undisturbed, lake)
    assert (state.content, state.steps) == (whole.content, whole.steps)
    assert whole.steps == n_steps
