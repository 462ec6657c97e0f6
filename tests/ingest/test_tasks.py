"""Items of work are dealt to tasks so that these end together."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from factory.ingest.listing import Work
from factory.ingest.tasks import LARGE_PER_CORE, TASKS_PER_CORE, tasks_of
from spark_udfs.ingest.place import FilePart, FileState, LocalFiles
from spark_udfs.ingest.rows import Origin

PLACE = LocalFiles(b"/data")


def part(n_bytes: int) -> Work:
    state = FileState(1 << 40, "v", 0, 0)
    return Work("jsonl", Origin("web"), PLACE, (b"all",), FilePart(100, 100 + n_bytes, state))


def file(name: str) -> Work:
    return Work("jsonl", Origin("web"), PLACE, (name.encode(),))


def test_few_parts_have_a_task_each_and_the_largest_is_the_first() -> None:
    assert tasks_of([part(3), part(5), part(4)], {}, 1) == [2, 0, 1]


def test_a_large_file_in_one_piece_begins_before_parts_and_other_files() -> None:
    work = [file("small"), part(64), file("large"), part(64)]
    large = {PLACE.below(b"large"): FileState(1_000, "v", 0, 0)}
    assert tasks_of(work, large, 2) == [3, 1, 0, 2]


def test_tasks_are_bounded_by_cores() -> None:
    assert max(tasks_of([file(f"{number}") for number in range(99)], {}, 2)) == 2 * TASKS_PER_CORE - 1
    assert max(tasks_of([part(9)] * 99, {}, 2)) == 2 * LARGE_PER_CORE - 1
    assert tasks_of([], {}, 2) == []


@given(st.lists(st.integers(1, 9), min_size=1, max_size=200), st.integers(1, 4))
def test_no_task_has_more_than_an_item_above_another(sizes: list[int], n_cores: int) -> None:
    loads: Counter[int] = Counter()
    for size, task in zip(sizes, tasks_of([part(size) for size in sizes], {}, n_cores), strict=True):
        loads[task] += size
    assert loads.keys() == set(range(len(loads)))
    assert max(loads.values()) - min(loads.values()) <= max(sizes)
