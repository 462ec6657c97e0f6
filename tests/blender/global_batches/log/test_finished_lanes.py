"""Finished lanes leave the state of a log, and no process takes one for a new lane."""

from __future__ import annotations

import pytest

from blender.global_batches.errors import Fenced, NamespaceDiffers
from blender.global_batches.log import checkpoints, log, names, reclaim
from blender.global_batches.log.client import Client
from blender.global_batches.log.log import Claim, StoredBatch
from blender.global_batches.log.objects import checkpoint_from_bytes, checkpoint_to_bytes
from blender.global_batches.log.operations import Create, List
from blender.global_batches.log.state import Delta, Descriptor, Lane, LogState
from blender.global_batches.log.step_order import Arrival
from tests.blender.global_batches.log.memory_store import MemoryStore, Stepped

EVERY = 2  # versions between checkpoints


def client(lanes: int | None = None, namespace: str | None = None) -> Client:
    return Client(checkpoint_versions=EVERY, order=Arrival(lanes), namespace=namespace)


def take(store: MemoryStore, lane: str, incarnation: str = "first") -> tuple[Claim | None, LogState]:
    return store.run(log.take(client(), lane, incarnation))


def batch(lane: str, name: str = "0-x") -> Descriptor:
    return Descriptor(0, f"batches/{lane}/1/{name}", 1, 0, 1, lane.encode().ljust(16))


def finish(store: MemoryStore, lane: str, knows: Client | None = None) -> LogState:
    """A lane with one batch, opened and finished; each commit writes what is due."""
    knows = knows or client()
    claim, state = store.run(log.take(knows, lane, f"host:{lane}"))
    assert claim is not None
    state = store.run(checkpoints.maintain(knows, state))
    batches = [StoredBatch(0, {"row": 7}, batch(lane))]
    store.objects[batches[0].descriptor.name] = b"x"
    state = store.run(log.attempt(knows, claim, state, batches, closed=True, report={"attempts": 1}))
    return store.run(checkpoints.maintain(knows, state))


@pytest.mark.invariant(
    "The checkpoints of a log do not grow with the lanes that were finished, and a finished lane is never "
    "taken for a new one."
)
def test_finished_lanes_leave_the_checkpoints_and_are_known_when_they_are_opened() -> None:
    store = MemoryStore()
    sizes = []
    for number in range(40):
        state = finish(store, f"lane-{number}")
        sizes.append(len(store.objects[names.checkpoint(state.version)]))
    state = store.run(log.load(client()))
    assert (dict(state.lanes), state.finished_lanes) == ({}, 40)
    assert max(sizes[20:]) - min(sizes[20:]) < 40 * 20  # what the batches take
    claim, state = take(store, "lane-3", "again")
    assert claim is None
    assert state.lane("lane-3") == Lane(1, "host:lane-3", 1, {"row": 7}, closed=True)
    assert take(store, "lane-40")[0] is not None


def test_a_lane_of_a_fixed_number_stays() -> None:
    store = MemoryStore()
    state = finish(store, "a", client(lanes=2))
    assert state.lane("a").closed
    assert (set(state.lanes), state.finished_lanes) == ({"a"}, 0)
    assert not any(name.startswith(names.LANES) for name in store.objects)


@pytest.mark.parametrize("is_repeated", [False, True])
def test_a_process_that_finished_its_lane_learns_it_after_the_lane_has_left(is_repeated: bool) -> None:
    store = MemoryStore()
    knows = client()
    claim, state = store.run(log.take(knows, "a", "first"))
    assert claim is not None
    store.run(log.attempt(client(), claim, state, [], closed=True))  # its answer is lost
    last_words = store.objects[names.log(2)]
    for lane in "bc":
        finish(store, lane)
    assert names.log(2) not in store.objects
    if is_repeated:  # the request of that version, late
        store.objects[names.log(2)] = last_words
    state = store.run(log.attempt(knows, claim, state, [], closed=True))
    assert "a" not in state.lanes
    assert state.lane("a").closed


def test_a_zombie_of_a_lane_that_has_left_is_fenced_and_adds_nothing() -> None:
    store = MemoryStore()
    claim, state = take(store, "a")
    assert claim is not None
    zombie = Stepped(store, log.attempt(client(), claim, state, [StoredBatch(0, 1, batch("a"))])).until(
        Create
    )
    successor, after = take(store, "a", "second")
    assert successor is not None
    store.run(log.attempt(client(), successor, after, [], closed=True))
    for lane in "bcd":  # the zombie's version is deleted, so its create succeeds
        finish(store, lane)
    steps = store.run(log.load(client())).steps
    with pytest.raises(Fenced, match=r"Process second has taken lane `a` over \(epoch 2"):
        zombie.finish()
    assert store.run(log.load(client())).steps == steps


def test_a_process_that_slept_while_its_lane_came_and_left_does_not_open_it_again() -> None:
    store = MemoryStore()
    finish(store, "b")
    sleeper = Stepped(store, log.take(client(), "a", "sleeper")).until(Create, names.LOG)
    finish(store, "a")
    finish(store, "c")
    claim, state = sleeper.finish()
    assert claim is None
    assert state.lane("a").incarnation == "host:a"


def test_a_lane_that_came_and_left_after_the_state_of_a_reclaimer_keeps_its_batches() -> None:
    store = MemoryStore()
    finish(store, "b")
    store.objects["batches/b/1/9-late"] = b"x"  # of a put that is late
    reclaimer = Stepped(store, reclaim.reclaim(client())).until(List)
    finish(store, "a")
    reclamation = reclaimer.finish()
    assert reclamation.orphans == 1
    assert {name for name in store.objects if name.startswith(names.BATCHES)} == {
        "batches/a/1/0-x",
        "batches/b/1/0-x",
    }


def test_a_lane_of_a_namespace_that_was_deleted_is_refused() -> None:
    store = MemoryStore()
    finish(store, "a", client(namespace="earlier"))
    lanes = {name: body for name, body in store.objects.items() if name.startswith(names.LANES)}
    store.objects.clear()
    store.objects |= lanes  # by a request that was late
    finish(store, "b", client(namespace="ours"))
    with pytest.raises(NamespaceDiffers, match="lanes/a was written for a namespace that was deleted"):
        store.run(log.take(client(namespace="ours"), "a", "me"))


def test_a_state_that_knows_many_finished_lanes_is_read_again() -> None:
    store = MemoryStore()
    knows = client()
    knows.most_lanes = 4
    state = store.run(log.load(knows))
    for number in range(8):
        finish(store, f"lane-{number}")
        state = store.run(log.advance(knows, state))
        assert len(state.lanes) <= 4
    assert state.finished_lanes + len(state.lanes) == 8


def test_a_checkpoint_with_finished_lanes_of_an_earlier_version_is_read() -> None:
    """It names them all; a checkpoint that they have left is not one that such a version reads."""
    state = LogState().after(
        Delta(1, 0, "a", Lane(1, "x", 3, closed=True)), Delta(2, 0, "b", Lane(1, "y", 0))
    )
    body = checkpoint_to_bytes(state)
    assert b'"lanes":{"a":' in body
    assert checkpoint_from_bytes(body, "checkpoint") == state
    shorter = state.without_finished_lanes()
    body = checkpoint_to_bytes(shorter)
    assert b'"lanes":' not in body
    assert checkpoint_from_bytes(body, "checkpoint") == shorter
    assert (set(shorter.lanes), shorter.finished_lanes) == ({"b"}, 1)
