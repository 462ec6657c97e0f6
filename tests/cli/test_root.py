"""The datasets file and the lake as options, at any place of a command."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factory.cli.root import lake_options_first
from factory.errors import ConfigurationError
from tests.blender.lakes import CODE, make_lake
from tests.cli.command import process

WORDS = st.sampled_from(["tables", "--json", "-n", "3", "*"])
OPTIONS = st.sampled_from([["-f", "a.yaml"], ["--datasets=a.yaml"], ["--lake", "lake"], ["--lake=lake"]])


@given(
    words=st.lists(WORDS),
    options=st.lists(OPTIONS),
    data=st.data(),
)
def test_options_of_the_root_come_first_and_the_rest_keeps_its_order(
    words: list[str], options: list[list[str]], data: st.DataObject
) -> None:
    mixed = [[word] for word in words]
    for option in options:
        mixed.insert(data.draw(st.integers(0, len(mixed))), option)
    first = [word for part in mixed if part in options for word in part]
    assert lake_options_first([word for part in mixed for word in part]) == [*first, *words]


def test_words_behind_two_dashes_stay() -> None:
    assert lake_options_first(["sample", "--", "-f", "x"]) == ["sample", "--", "-f", "x"]


def test_an_option_needs_a_path() -> None:
    with pytest.raises(ConfigurationError, match="-f names no path"):
        lake_options_first(["check", "-f"])


@pytest.mark.process
def test_a_lake_and_a_file_are_named_at_either_place(tmp_path: Path) -> None:
    lake = make_lake(tmp_path / "lake", code=4, prose=4)
    for words in (["--lake", str(lake.home), "tables"], ["tables", f"--lake={lake.home}"]):
        assert CODE in process(tmp_path / "elsewhere", *words).stdout
    missing = process(tmp_path, "check", "-f", str(tmp_path / "absent.yaml"))
    assert (missing.returncode, missing.stdout) == (2, "")
    assert missing.stderr.startswith(f"The datasets file {tmp_path}/absent.yaml does not exist.")
    file = tmp_path / "file"
    file.touch()
    assert "which is a file" in process(tmp_path, "tables", "--lake", str(file)).stderr


def test_a_path_may_follow_the_short_option_at_once() -> None:
    assert lake_options_first(["tables", "-fa.yaml", "--json"]) == ["-fa.yaml", "tables", "--json"]


def test_the_short_option_is_no_file_of_a_blend() -> None:
    with pytest.raises(ConfigurationError, match="-f names the datasets file"):
        lake_options_first(["blend", "create", "-f", "blend.yaml"])


@pytest.mark.process
def test_a_home_folder_is_expanded_behind_an_equals_sign(tmp_path: Path) -> None:
    make_lake(tmp_path / "lake", code=4, prose=4)
    printed = process(tmp_path, "tables", "--lake=~/lake", HOME=str(tmp_path))
    assert CODE in printed.stdout, printed.stderr
