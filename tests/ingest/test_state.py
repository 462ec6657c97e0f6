"""The state of files: what changes it."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factory.ingest.state import MOST_BYTES, Listing, differences, listing, state

NAMES = st.binary(min_size=1, max_size=8).filter(lambda name: not {0, 47} & set(name))


def test_the_state_sees_names_sizes_and_times_and_no_link(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_text("one")
    os.utime(file, (1, 1))
    states = [state([tmp_path])]
    os.utime(file, (2, 2))
    states.append(state([tmp_path]))
    file.write_text("four")
    os.utime(file, (2, 2))
    states.append(state([tmp_path]))
    file.rename(tmp_path / "b")
    states.append(state([tmp_path]))
    assert len(set(states)) == 4
    (tmp_path / "loop").symlink_to(tmp_path)
    assert state([tmp_path]) == state([tmp_path]) != states[-1]
    assert state([tmp_path / "absent"]) != state([])


def test_the_state_is_the_same_however_a_path_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "web").mkdir()
    (tmp_path / "web" / "a").write_text("one")
    (tmp_path / "link").symlink_to(tmp_path / "web")
    monkeypatch.chdir(tmp_path)
    spellings = ["web", Path("web"), "web/../web", tmp_path / "web", "link"]
    assert len({state([path]) for path in spellings}) == 1


def test_differences_name_the_files(tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt", "c.txt"):
        (tmp_path / name).write_text("one")
    before = Listing.from_text(listing([tmp_path]).to_text())
    assert differences(before, listing([tmp_path])) == []
    (tmp_path / "a.txt").unlink()
    (tmp_path / "b.txt").write_text("another")
    (tmp_path / "new").mkdir()
    for number in range(5):
        (tmp_path / "new" / f"{number}.txt").write_text("one")
    assert differences(before, listing([tmp_path])) == [
        "+5 new/0.txt, new/1.txt, new/2.txt and 2 others",
        "-1 a.txt",
        "1 changed: b.txt",
    ]


def test_files_of_several_paths_have_the_names_of_their_folders(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.txt").write_text(folder)
    single = tmp_path / "single.txt"
    single.write_text("one")
    assert set(listing([tmp_path / "one"]).entries) == {"a.txt"}
    assert set(listing([tmp_path / "one", tmp_path / "two", single]).entries) == {
        "one/a.txt",
        "two/a.txt",
        "single.txt",
    }


def test_a_listing_of_many_files_keeps_folders(tmp_path: Path) -> None:
    """Listings stand in the properties of snapshots, so they are bounded."""
    for folder in range(20):
        (tmp_path / f"day-{folder:02}").mkdir()
        for number in range(150):
            file = tmp_path / f"day-{folder:02}" / f"{number}.txt"
            file.write_bytes(bytes(200 * folder + number))
    before = listing([tmp_path])
    text = before.to_text()
    assert len(text) <= MOST_BYTES
    (tmp_path / "day-07" / "more.txt").touch()
    (tmp_path / "day-20").mkdir()
    (tmp_path / "day-20" / "a.txt").touch()
    assert differences(Listing.from_text(text), listing([tmp_path])) == ["+1 day-20/", "1 changed: day-07/"]


def test_only_files_that_are_older_than_the_listing_are_settled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a"
    file.write_text("one")
    os.utime(file, (1, 1))  # which changes the time of its status
    assert not listing([tmp_path]).is_settled
    assert listing([]).is_settled
    monkeypatch.setattr("factory.ingest.state.SETTLED_NS", -(10**9))
    assert listing([tmp_path]).is_settled
    os.utime(file, (2**32, 2**32))  # a camera of another century
    assert listing([tmp_path]).is_settled


@pytest.mark.parametrize("seconds", [1, 2**32])  # in the past, and in a century to come
def test_new_permissions_and_a_replaced_file_of_the_same_time_are_another_state(
    tmp_path: Path, seconds: int
) -> None:
    file, other = tmp_path / "a", tmp_path / "b"
    for path in (file, other):
        path.write_text(path.name)
        os.utime(path, (seconds, seconds))
    states = [state([file])]
    time.sleep(0.02)  # more than a tick of the clock of the file system
    file.chmod(0o600)
    states.append(state([file]))
    time.sleep(0.02)
    other.replace(file)
    states.append(state([file]))
    assert len(set(states)) == 3
    before = listing([tmp_path])
    time.sleep(0.02)
    other.write_text("c")
    os.utime(other, (seconds, seconds))
    other.replace(file)
    assert differences(before, listing([tmp_path])) == ["1 changed: a"]


def test_a_name_that_no_terminal_prints_is_escaped(tmp_path: Path) -> None:
    before = listing([tmp_path])
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9\n.txt")).touch()
    assert differences(before, listing([tmp_path])) == ["+1 caf\\xe9\\n.txt"]


@given(names=st.lists(NAMES, unique=True))
def test_any_name_survives_the_text(names: list[bytes]) -> None:
    before = Listing("state", True, {os.fsdecode(name): "x" for name in names})
    assert Listing.from_text(before.to_text()) == before
