"""Races of two and three processes, each in the one order that matters."""

from __future__ import annotations

from dataclasses import replace

import pytest

from blender.global_batches.errors import DamagedLog, Fenced, NamespaceDiffers, NamespaceEnded
from blender.global_batches.log import checkpoints, floors, log, names
from blender.global_batches.log.client import Client
from blender.global_batches.log.log import Claim, StoredBatch
from blender.global_batches.log.objects import Floor, floor_to_bytes
from blender.global_batches.log.operations import Create
from blender.global_batches.log.state import END, Descriptor, Lane, LogState
from blender.global_batches.log.step_order import Arrival
from tests.blender.global_batches.log.dropped_rules import without
from tests.blender.global_batches.log.memory_store import MemoryStore, Stepped

EVERY = 2  # versions between checkpoints


def client() -> Client:
    return Client(checkpoint_versions=EVERY)


def batch(name: str) -> Descriptor:
    return Descriptor(0, name, 1, 0, 1, name.encode().ljust(16))


def commit(store: MemoryStore, claim: Claim, state: LogState, name: str) -> LogState:
    """Commit one batch of a lane, and do what is due after it."""
    knows = client()
    state = store.run(log.attempt(knows, claim, state, [stored(state.lane(claim.lane).sequence, name)]))
    return store.run(checkpoints.maintain(knows, state))


def stored(sequence: int, name: str) -> StoredBatch:
    return StoredBatch(sequence, name, batch(name))


def take(store: MemoryStore, lane: str, incarnation: str = "first") -> tuple[Claim, LogState]:
    claim, state = store.run(log.take(client(), lane, incarnation))
    assert claim is not None
    return claim, state


def test_two_replacements_at_once_leave_one() -> None:
    store = MemoryStore()
    take(store, "a")
    second, third = (Stepped(store, log.take(client(), "a", name)) for name in ("second", "third"))
    second.until(Create, names.LOG)
    third.until(Create, names.LOG)
    claim, state = second.finish()
    assert claim == Claim("a", 2, "second")
    with pytest.raises(Fenced, match=r"Process second has taken lane `a` over \(epoch 2"):
        third.finish()
    assert commit(store, claim, state, "batch").steps == 1


def test_a_fenced_process_is_told_who_has_the_lane_and_adds_nothing() -> None:
    store = MemoryStore()
    claim, state = take(store, "a")
    zombie = Stepped(store, log.attempt(client(), claim, state, [stored(0, "x")])).until(Create)
    take(store, "a", "second")
    with pytest.raises(Fenced, match=r"Process second has taken lane `a` over .* first, can commit no more"):
        zombie.finish()
    assert store.run(log.load(client())).steps == 0


def test_a_replacement_goes_on_after_what_the_process_before_it_committed_meanwhile() -> None:
    store = MemoryStore()
    claim, state = take(store, "a")
    replacement = Stepped(store, log.take(client(), "a", "second")).until(Create)
    commit(store, claim, state, "last words")
    _, state = replacement.finish()
    assert state.lane("a") == Lane(2, "second", 1, "last words")


def walk_over_a_ghost() -> tuple[list[str], list[str]]:
    """The batches that a walker reads, and the true ones.

    While the walker and a producer of lane `a` sleep at version 5, lane `b` commits three times: version 6 is
    deleted, and is the floor. The producer creates it anew, and the walker reads it.
    """
    store = MemoryStore()
    claim_a, _ = take(store, "a")
    claim_b, state = take(store, "b")
    for name in ("1", "2", "3"):
        state = commit(store, claim_b, state, name)
    walker = Stepped(store, log.advance(client(), state))
    sleeper = Stepped(store, log.attempt(client(), claim_a, state, [stored(0, "ghost")])).until(Create)
    for name in ("4", "5", "6"):
        state = commit(store, claim_b, state, name)
    assert names.log(6) not in store.objects
    sleeper.step()
    assert names.log(6) in store.objects
    seen = walker.finish()
    truth = store.run(log.attempt(client(), claim_a, sleeper.finish(), [stored(0, "ghost")]))
    return [entry.name for entry in seen.tail], [entry.name for entry in truth.tail]


@pytest.mark.invariant(
    "The log of a namespace stays consistent under crashes, takeovers and lost, repeated or delayed "
    "requests: versions are contiguous and written once, a lane's rows appear once and in order, an "
    "acknowledged batch is visible, all readers see one sequence, and a checkpoint is the fold of the "
    "log. No rule of the protocol can be left out."
)
def test_a_walk_over_a_name_that_was_created_anew_begins_again() -> None:
    seen, truth = walk_over_a_ghost()
    assert seen == ["1", "2", "3", "4", "5", "6"]
    assert truth == ["1", "2", "3", "4", "5", "6", "ghost"]


def test_comparing_the_floor_with_the_end_of_a_walk_is_not_enough() -> None:
    with without(
        ((log, "if floor.version > state.version:", "if floor.version > state.version + len(deltas):"),)
    ):
        seen, _ = walk_over_a_ghost()
    assert seen == ["1", "2", "3", "ghost", "5", "6"]


def test_a_commit_without_conflict_asks_the_store_three_times() -> None:
    store = MemoryStore()
    claim, state = take(store, "a")
    commits = Stepped(store, log.attempt(client(), claim, state, [stored(0, "1")]))
    commits.finish()
    assert [type(operation).__name__ for operation in commits.performed] == ["Get", "Create", "Get"]


def test_an_attempt_wins_although_others_committed_since_the_last_one() -> None:
    store = MemoryStore()
    claim_a, stale = take(store, "a")
    claim_b, state = take(store, "b")
    for sequence in range(3):
        state = store.run(log.attempt(client(), claim_b, state, [stored(sequence, f"b{sequence}")]))
    commits = Stepped(store, log.attempt(client(), claim_a, stale, [stored(0, "a0")]))
    newer = commits.finish()
    assert [batch.name for batch in newer.tail] == ["b0", "b1", "b2", "a0"]
    assert sum(isinstance(operation, Create) for operation in commits.performed) == 1


def test_a_missing_checkpoint_is_named_once_the_versions_before_it_are_gone() -> None:
    store = MemoryStore()
    claim, state = take(store, "a")
    for name in "1234567":
        state = commit(store, claim, state, name)
    floor = max(name for name in store.objects if name.startswith(names.CHECKPOINTS))
    for name in [name for name in store.objects if name.startswith(names.CHECKPOINTS)]:
        del store.objects[name]
    with pytest.raises(DamagedLog, match=f"{floor[:-1]}6 is missing"):
        store.run(log.load(client()))


def test_an_attempt_adds_what_the_log_lacks_once_and_then_nothing() -> None:
    store = MemoryStore()
    claim, state = take(store, "a")
    batches = [stored(0, "1"), stored(1, "2")]
    state = store.run(log.attempt(client(), claim, state, batches[:1]))
    state = store.run(log.attempt(client(), claim, state, batches))
    assert [entry.name for entry in state.tail] == ["1", "2"]
    assert store.run(log.attempt(client(), claim, state, batches)) is state


def test_a_closed_lane_is_not_taken() -> None:
    store = MemoryStore()
    claim, state = take(store, "a")
    store.run(log.attempt(client(), claim, state, [], closed=True))
    reopened, state = store.run(log.take(client(), "a", "second"))
    assert reopened is None
    assert state.lane("a").closed


def test_a_namespace_of_two_lanes_takes_no_third() -> None:
    store = MemoryStore()
    for lane in ("a", "b", "a"):
        store.run(log.take(Client(order=Arrival(2)), lane, "first"))
    with pytest.raises(
        NamespaceDiffers,
        match="Lane `c` would be one too many: the namespace is for 2 lanes, and has `a`, `b`",
    ):
        store.run(log.take(Client(order=Arrival(2)), "c", "first"))


def test_an_ended_namespace_takes_no_more_batches() -> None:
    store = MemoryStore()
    claim, state = take(store, "a")
    sleeper = Stepped(store, log.attempt(client(), claim, state, [stored(0, "late")])).until(Create)
    end, state = take(store, END)
    store.run(log.attempt(client(), end, state, [], closed=True))
    newest = sleeper.finish()
    assert newest.steps == 0
    with pytest.raises(NamespaceEnded, match="The namespace was ended"):
        store.run(log.attempt(client(), claim, newest, [stored(0, "late")]))


def test_a_checkpoint_under_the_name_of_another_is_named() -> None:
    store = MemoryStore()
    claim, state = take(store, "a")
    for name in "1234567":
        state = commit(store, claim, state, name)
    right, wrong = names.checkpoint(8), names.checkpoint(6)
    store.objects[right] = store.objects[wrong]
    with pytest.raises(DamagedLog, match=f"{right} holds the state after version 6"):
        store.run(log.load(client()))


def test_raising_the_floor_keeps_what_deletion_by_checkpoints_noted() -> None:
    store = MemoryStore()
    noted = Floor(version=2, step=7, deleted=5, marks=3, runs={"run": [7]})
    store.objects[names.floor(1)] = floor_to_bytes(noted)
    assert store.run(floors.raise_to(client(), 4)) == replace(noted, version=4)
    assert store.run(floors.raise_to(client(), 3)) == replace(noted, version=4)
    assert sorted(store.objects) == [names.floor(1), names.floor(2)]


def test_a_gap_is_named_and_not_filled() -> None:
    store = MemoryStore()
    claim, state = take(store, "a")
    for name in "12":
        state = commit(store, claim, state, name)
    before = dict(store.objects)
    del before[names.log(2)]
    store.objects = dict(before)
    with pytest.raises(DamagedLog, match=f"{names.log(2)} is missing, and {names.log(3)} is there"):
        store.run(log.take(Client(checkpoint_versions=100), "b", "first"))
    assert store.objects == before


def test_a_process_of_a_deleted_namespace_is_noticed() -> None:
    store = MemoryStore()
    old = Client(namespace="old")
    claim, state = store.run(log.take(old, "a", "first"))
    assert claim is not None
    store.objects.clear()
    store.run(log.take(Client(namespace="new"), "b", "first"))
    store.run(log.attempt(old, claim, state, [stored(0, "late")]))
    with pytest.raises(
        NamespaceDiffers, match=f"{names.log(2)} was written for a namespace that was deleted"
    ):
        store.run(log.load(Client(namespace="new")))
