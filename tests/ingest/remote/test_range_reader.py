"""A remote object reads like a file, at any positions and through any breaks."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factory.errors import ConfigurationError
from spark_udfs.ingest.remote import objects as remote_objects
from spark_udfs.ingest.remote import range_reader
from spark_udfs.ingest.remote.objects import Interrupted, ObjectState, RemoteFailure
from spark_udfs.ingest.remote.range_reader import RangeReader

CONTENT = bytes(range(256)) * 8


@dataclass
class Breaking:
    """An object that comes in pieces, and breaks off after so many bytes of each answer."""

    breaks: list[int]
    ranges: list[tuple[int, int]] = field(default_factory=list)

    def state(self, name: str) -> ObjectState | None:
        raise NotImplementedError

    def below(self, prefix: str) -> Iterator[tuple[str, ObjectState]]:
        raise NotImplementedError

    def folder(self, prefix: str) -> list[str]:
        raise NotImplementedError

    def pieces(self, name: str, begin: int, end: int, state: ObjectState) -> Iterator[bytes]:
        assert (name, state.e_tag) == ("a", "tag")
        self.ranges.append((begin, end))
        most = self.breaks.pop(0) if self.breaks else end
        for start in range(begin, min(end, begin + most), 7):
            yield CONTENT[start : min(start + 7, end, begin + most)]
        if begin + most < end and most % 2:
            raise Interrupted("status 503")


@pytest.fixture(autouse=True)
def no_pauses_and_small_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_objects, "_FIRST_PAUSE_S", 0.0)
    monkeypatch.setattr(range_reader, "FIRST_BYTES", 16)
    monkeypatch.setattr(range_reader, "MOST_BYTES", 100)


def reader(objects: Breaking, *, has_ranges: bool = True) -> io.BufferedReader:
    state = ObjectState(len(CONTENT), "tag", 0, has_ranges)
    return io.BufferedReader(RangeReader(objects, "a", state, "s3://b/a"), 8)


@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["seek", "back", "read"]), st.integers(0, len(CONTENT) + 9)), max_size=20
    ),
    breaks=st.lists(st.integers(1, 40), max_size=12),
)
def test_it_reads_as_a_file_of_the_disk(steps: list[tuple[str, int]], breaks: list[int]) -> None:
    remote, disk = reader(Breaking(list(breaks))), io.BytesIO(CONTENT)
    for step, number in steps:
        if step == "read":
            assert remote.read(number) == disk.read(number)
        elif step == "seek":
            assert remote.seek(number) == disk.seek(number)
        else:
            assert remote.seek(-min(number, len(CONTENT)), io.SEEK_END) == disk.seek(
                -min(number, len(CONTENT)), io.SEEK_END
            )
        assert remote.tell() == disk.tell()


@pytest.mark.parametrize("has_ranges", [True, False])
def test_each_byte_is_asked_for_once_when_read_in_order(has_ranges: bool) -> None:
    objects = Breaking([5, 8, 3])
    assert reader(objects, has_ranges=has_ranges).read() == CONTENT
    position = 0
    for begin, _ in objects.ranges[:4]:
        assert begin == position
        position += {0: 5, 5: 8, 13: 3}.get(begin, 0)
    assert len(objects.ranges) < 40 if has_ranges else len(objects.ranges) == 4


def test_an_object_that_stays_short_is_an_error_with_the_byte() -> None:
    with pytest.raises(RemoteFailure, match=r"`s3://b/a` breaks off at byte 9 of 2,048 \(fewer bytes than"):
        reader(Breaking([9, *[0] * 20])).read()


def test_an_object_without_ranges_is_read_in_order_alone() -> None:
    remote = reader(Breaking([]), has_ranges=False)
    remote.seek(1_000)
    assert remote.read(48) == CONTENT[1_000:1_048]
    remote.seek(0)
    with pytest.raises(ConfigurationError, match="serves no ranges"):
        remote.read(1)
