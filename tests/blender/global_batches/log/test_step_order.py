"""Steps, lanes and the end of the data in both orders, against what a list of lanes says."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from blender.global_batches.errors import NamespaceDiffers, UnevenLanes
from blender.global_batches.log import log
from blender.global_batches.log.client import Client
from blender.global_batches.log.log import Claim, StoredBatch
from blender.global_batches.log.state import Descriptor, Lane, LogState
from blender.global_batches.log.step_order import Arrival, Assigned
from tests.blender.global_batches.log.memory_store import MemoryStore


def stored(sequence: int) -> StoredBatch:
    """A batch of a lane."""
    return StoredBatch(sequence, sequence + 1, Descriptor(0, f"{sequence}", 1, 0, 1, bytes(16)))


class Log:
    """A log that is written to by one client, whose lanes are taken once."""

    def __init__(self, lanes: int) -> None:
        self.store, self.client = MemoryStore(), Client(order=Assigned(lanes))
        self.state = LogState()
        self.claims: dict[str, Claim] = {}

    def add(self, lane: str, n: int, *, closed: bool = False) -> None:
        """Commit the next `n` batches of a lane."""
        if lane not in self.claims:
            claim, self.state = self.store.run(log.take(self.client, lane, "me"))
            assert claim is not None
            self.claims[lane] = claim
        first = self.state.lane(lane).sequence
        batches = [stored(sequence) for sequence in range(first, first + n)]
        self.state = self.store.run(log.attempt(self.client, self.claims[lane], self.state, batches, closed))


@pytest.mark.invariant(
    "In assigned order the steps of a namespace equal the steps of its source, even if producers die, and"
    " a rank reads the slice that the source itself would give it."
)
@given(st.integers(1, 5), st.integers(0, 23), st.randoms(use_true_random=False))
def test_steps_are_visible_once_those_before_them_are_there(lanes: int, n_steps: int, draws: object) -> None:
    logged = Log(lanes)
    left = [step % lanes for step in range(n_steps)]
    draws.shuffle(left)  # type: ignore[attr-defined]
    committed: set[int] = set()
    counts = [0] * lanes
    for lane in left:
        logged.add(f"{lane}", 1)
        committed.add(lane + lanes * counts[lane])
        counts[lane] += 1
        missing = next(step for step in range(n_steps + 1) if step not in committed)
        assert logged.state.steps == missing
        assert [batch.step for batch in logged.state.waiting] == sorted(committed - set(range(missing)))
        assert logged.client.order.owing(logged.state)[0].startswith(f"`{missing % lanes}`")
    for lane in range(lanes):
        assert not logged.client.order.has_ended(logged.state) or lane > n_steps % lanes
        logged.add(f"{lane}", 0, closed=True)
    assert logged.client.order.has_ended(logged.state)
    assert logged.client.order.owing(logged.state) == []


def test_a_lane_outside_the_namespace_is_refused() -> None:
    store = MemoryStore()
    for lane in ("4", "-1", "a", "01"):
        with pytest.raises(
            NamespaceDiffers, match=f"Lane `{lane}` is not one .* its steps to 4 lanes: `0` to `3`"
        ):
            store.run(log.take(Client(order=Assigned(4)), lane, "me"))
    assert not store.objects


def test_a_batch_behind_the_end_of_the_data_is_refused() -> None:
    logged = Log(2)
    logged.add("1", 2)  # steps 1 and 3
    with pytest.raises(UnevenLanes, match=r"Step 3 of lane `1` would never be read: lane `0` ends .* step 0"):
        logged.add("0", 0, closed=True)
    logged.add("0", 2, closed=True)  # steps 0 and 2: the end is step 4
    with pytest.raises(UnevenLanes, match=r"Step 5 of lane `1` would never be read: lane `0` ends .* step 4"):
        logged.add("1", 1)
    logged.add("1", 0, closed=True)
    assert logged.state.steps == 4
    assert logged.client.order.has_ended(logged.state)


def test_the_end_comes_with_the_lane_that_owes_the_next_step() -> None:
    logged = Log(3)
    logged.add("0", 1, closed=True)
    assert not logged.client.order.has_ended(logged.state)
    assert logged.client.order.owing(logged.state) == ["`1`, which nobody has opened"]
    logged.add("1", 0, closed=True)
    assert logged.client.order.has_ended(logged.state)  # step 1 never comes, whatever lane 2 does


def test_arrival_order_ends_with_all_its_lanes() -> None:
    order = Arrival(2)
    state = LogState(lanes={"a": Lane(closed=True)})
    assert not order.has_ended(state)
    assert order.owing(state) == ["1 that nobody has opened"]
    assert order.has_ended(LogState(lanes={"a": Lane(closed=True), "b": Lane(closed=True)}))
    assert not Arrival().has_ended(LogState(lanes={"a": Lane(closed=True)}))
