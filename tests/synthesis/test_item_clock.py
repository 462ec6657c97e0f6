"""The seconds of an item are those in which its worker was seen to run at it."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from factory.synthesis.item_clock import ItemClock, ItemCounter


@dataclass
class Time:
    now_s: float = 100.0

    def __call__(self) -> float:
        return self.now_s


def clock_and_counter() -> tuple[ItemClock, ItemCounter, Time]:
    time = Time()
    clock = ItemClock(time)
    return clock, ItemCounter(clock.file.fileno()), time


def seconds_after(clock: ItemClock, time: Time, step_s: float, *, is_stopped: bool = False) -> float:
    time.now_s += step_s
    return clock.look(is_stopped=is_stopped)


def test_a_worker_at_no_item_takes_no_time() -> None:
    clock, counter, time = clock_and_counter()
    assert seconds_after(clock, time, 1) == seconds_after(clock, time, 1) == 0
    counter.begin()
    counter.rest()
    assert seconds_after(clock, time, 1) == seconds_after(clock, time, 1) == 0
    clock.close()


def test_time_at_one_item_adds_up_and_the_next_item_begins_at_zero() -> None:
    clock, counter, time = clock_and_counter()
    counter.begin()
    assert [seconds_after(clock, time, 0.5) for _ in range(4)] == [0, 0.5, 1, 1.5]
    counter.rest()
    counter.begin()
    assert [seconds_after(clock, time, 0.5) for _ in range(2)] == [0, 0.5]
    clock.close()


def test_a_stop_and_a_pause_of_the_watcher_are_no_time_of_the_item() -> None:
    clock, counter, time = clock_and_counter()
    counter.begin()
    seconds_after(clock, time, 0.5)
    assert seconds_after(clock, time, 0.5) == 0.5
    assert [seconds_after(clock, time, 1, is_stopped=True) for _ in range(3)] == [0.5] * 3
    assert seconds_after(clock, time, 3_600) == 2.5
    clock.close()


@given(st.lists(st.sampled_from(["begin", "rest", "look"]), max_size=30))
def test_seconds_are_never_more_than_the_looks_at_one_item_allow(events: list[str]) -> None:
    clock, counter, time = clock_and_counter()
    looks_at_item = 0
    for event in events:
        if event == "look":
            assert seconds_after(clock, time, 1) <= looks_at_item
            looks_at_item += 1
        else:
            getattr(counter, event)()
            looks_at_item = 0
    clock.close()


def test_a_counter_without_a_file_shows_nothing() -> None:
    counter = ItemCounter()
    counter.begin()
    counter.rest()
