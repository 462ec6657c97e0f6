"""The state of a log is the fold of its deltas, at any number of them, and as bytes too."""

from __future__ import annotations

from dataclasses import replace

import hypothesis.strategies as st
import pytest
from hypothesis import given

from blender.global_batches.errors import DamagedLog
from blender.global_batches.log import names
from blender.global_batches.log.objects import (
    Floor,
    checkpoint_from_bytes,
    checkpoint_to_bytes,
    delta_from_bytes,
    delta_to_bytes,
    floor_from_bytes,
    floor_to_bytes,
    segment_from_bytes,
    segment_to_bytes,
)
from blender.global_batches.log.state import (
    Delta,
    Descriptor,
    GapInLog,
    Lane,
    LogState,
    content_of,
    numbered,
)
from blender.global_batches.log.step_order import Arrival, Assigned

OFFSETS = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=4,
)
HASHES = st.binary(min_size=16, max_size=16)


@st.composite
def logs(draw: st.DrawFn, versions: int = 12) -> list[Delta]:
    """The deltas of a log from version 1 on, in arrival or assigned order."""
    deltas: list[Delta] = []
    order = draw(st.sampled_from([Arrival(), Assigned(3)]))
    state = LogState()
    for version in range(1, draw(st.integers(0, versions)) + 1):
        lane = draw(st.sampled_from("012"))
        batches = tuple(
            Descriptor(0, f"batches/{lane}/{version}-{index}", 100, 64, 36, draw(HASHES))
            for index in range(draw(st.integers(0, 4)))
        )
        sequence = state.lane(lane).sequence + len(batches)
        progress = Lane(version, f"host:{version}", sequence, draw(OFFSETS), draw(st.booleans()))
        steps = order.steps(state, lane, len(batches))
        deltas.append(Delta(version, state.steps, lane, progress, numbered(batches, steps)))
        state = state.after(deltas[-1])
    return deltas


def committed(deltas: list[Delta]) -> list[Descriptor]:
    """The batches of all steps that are there, by step."""
    return sorted((batch for delta in deltas for batch in delta.batches), key=lambda batch: batch.step)


@given(logs(), st.integers(0, 12), st.integers(1, 5))
def test_folding_on_from_a_checkpoint_is_folding_from_the_start(
    deltas: list[Delta], version: int, segment_steps: int
) -> None:
    whole = LogState().after(*deltas)
    version = min(version, len(deltas))
    checkpoint = LogState().after(*deltas[:version]).without_full_segments(segment_steps)
    body = checkpoint_to_bytes(checkpoint)
    read = checkpoint_from_bytes(body, names.checkpoint(version))
    assert read == checkpoint
    assert checkpoint_to_bytes(read) == body
    one_by_one = read
    for delta in deltas[version:]:
        one_by_one = one_by_one.after(delta)
    expected = whole.without_full_segments(segment_steps)
    assert read.after(*deltas[version:]).without_full_segments(segment_steps) == expected
    assert one_by_one.without_full_segments(segment_steps) == expected
    batches = committed(deltas)
    assert whole.content == content_of(batches[: whole.steps])
    assert [batch.step for batch in batches[: whole.steps]] == list(range(whole.steps))
    assert list(whole.waiting) == batches[whole.steps :]
    assert whole.steps not in {batch.step for batch in whole.waiting}
    assert whole.n_bytes == sum(batch.n_bytes for batch in batches)


@given(logs())
def test_content_does_not_depend_on_who_committed_the_steps_when(deltas: list[Delta]) -> None:
    batches = committed(deltas)[: LogState().after(*deltas).steps]
    alone = [Delta(1 + index, index, "other", Lane(1), (batch,)) for index, batch in enumerate(batches)]
    assert LogState().after(*alone).content == LogState().after(*deltas).content


def test_a_step_that_is_there_already_is_refused() -> None:
    batch = Descriptor(0, "x", 1, 0, 1, bytes(16))
    for step, earlier in ((0, 0), (4, 4)):
        deltas = [
            Delta(1, 0, "0", Lane(1), (replace(batch, step=earlier),)),
            Delta(2, int(earlier == 0), "1", Lane(1), (replace(batch, step=step),)),
        ]
        with pytest.raises(GapInLog, match=f"version 2 has step {step}, which an earlier one has"):
            LogState().after(*deltas)


def test_content_tells_an_exchange_of_two_steps() -> None:
    first, second = (Descriptor(0, "x", 1, 0, 1, bytes([index]) * 16) for index in (1, 2))
    assert content_of(numbered((first, second), (0, 1))) != content_of(numbered((second, first), (0, 1)))


@given(logs(), st.data())
def test_a_log_with_a_gap_is_refused(deltas: list[Delta], data: st.DataObject) -> None:
    if len(deltas) > 1:
        left_out = data.draw(st.integers(0, len(deltas) - 2))
        with pytest.raises(GapInLog, match=f"version {left_out + 2} (begins with|has) step"):
            LogState().after(*deltas[:left_out], *deltas[left_out + 1 :])


@given(logs())
def test_deltas_and_segments_are_read_as_they_were_written(deltas: list[Delta]) -> None:
    for delta in deltas:
        assert delta_from_bytes(delta_to_bytes(delta), "log") == delta
    batches = tuple(batch for delta in deltas for batch in delta.batches)
    assert segment_from_bytes(segment_to_bytes(batches), "segment") == batches


def test_a_delta_of_many_batches_is_compressed() -> None:
    batches = tuple(Descriptor(step, f"batches/a/1/{step}", 100, 64, 36, bytes(16)) for step in range(1000))
    body = delta_to_bytes(Delta(1, 0, "a", Lane(1), batches))
    assert len(body) < 20_000
    assert delta_from_bytes(body, "log").batches == batches


def test_a_floor_is_read_as_it_was_written() -> None:
    floor = Floor(version=100, step=7, deleted=5, marks=3, runs={"run": [7, 9]})
    assert floor_from_bytes(floor_to_bytes(floor), "floor") == floor


@pytest.mark.invariant("A flipped byte of a batch or of the log is named and never served.")
@given(st.data())
def test_any_flipped_byte_of_a_record_is_named(data: st.DataObject) -> None:
    batches = numbered(
        tuple(Descriptor(0, "x", 1, 0, 1, bytes([index]) * 16) for index in range(3)), range(3)
    )
    state = LogState().after(Delta(1, 0, "a", Lane(1, "me", 3, {"row": 3}), batches))
    record = data.draw(st.sampled_from(["delta", "floor", "checkpoint", "segment"]))
    body, parse = {
        "delta": (delta_to_bytes(Delta(1, 0, "a", Lane(1), batches)), delta_from_bytes),
        "floor": (floor_to_bytes(Floor(4)), floor_from_bytes),
        "checkpoint": (checkpoint_to_bytes(state), checkpoint_from_bytes),
        "segment": (segment_to_bytes(batches), segment_from_bytes),
    }[record]
    place = data.draw(st.integers(0, len(body) - 1))
    damaged = bytearray(body)
    damaged[place] ^= data.draw(st.integers(1, 255))
    with pytest.raises(DamagedLog, match=f"^{record}/7 is damaged"):
        parse(bytes(damaged), f"{record}/7")


@given(st.integers(0, 10**19), st.integers(0, 10**19))
def test_names_sort_as_their_numbers(first: int, second: int) -> None:
    assert names.number(names.log(first)) == first
    assert (names.log(first) < names.log(second)) == (first < second)
