"""The names in sources, kept between processes."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from factory.orchestration.table import source_names
from factory.orchestration.table.source_names import SourceNames

SOURCE = b"import spark_udfs.regroup\nfrom os import path\nNAME = 'spark_udfs.dedup.bags'\n"
NAMES = {"spark_udfs.regroup", "spark_udfs.dedup.bags"}


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    names = SourceNames(tmp_path)
    names.names_in(SOURCE)
    names.save()
    (file,) = tmp_path.iterdir()
    return file


def refuse(source: bytes) -> set[str]:
    raise AssertionError(f"parsed again: {source!r}")


def test_only_names_of_shared_modules_are_kept(tmp_path: Path) -> None:
    assert SourceNames(tmp_path).names_in(SOURCE) == NAMES


def test_a_later_process_parses_no_source_again(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_names, "_parsed", refuse)
    assert SourceNames(kept.parent).names_in(SOURCE) == NAMES


def test_a_source_without_names_is_parsed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = SourceNames(tmp_path)
    assert names.names_in(b"") == set()
    names.save()
    monkeypatch.setattr(source_names, "_parsed", refuse)
    assert SourceNames(tmp_path).names_in(b"") == set()


def test_an_edited_source_is_parsed_again(kept: Path) -> None:
    edited = SOURCE.replace(b"bags", b"sets")
    assert SourceNames(kept.parent).names_in(edited) == {"spark_udfs.regroup", "spark_udfs.dedup.sets"}


@pytest.mark.parametrize("damage", [b"", b"\xff", b"digest\n{}", b"{}"])
def test_a_damaged_file_counts_as_none_and_is_replaced(kept: Path, damage: bytes) -> None:
    whole = kept.read_bytes()
    for broken in (damage, whole[:-9], whole.replace(b"regroup", b"regroum")):
        kept.write_bytes(broken)
        names = SourceNames(kept.parent)
        assert names.names_in(SOURCE) == NAMES
        names.save()
        assert kept.read_bytes() == whole


def test_names_that_other_code_finds_are_not_used(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_names, "_FORM", "other")
    monkeypatch.setattr(source_names, "_parsed", lambda source: {"found again"})
    assert SourceNames(kept.parent).names_in(SOURCE) == {"found again"}


def test_processes_that_write_at_once_leave_an_intact_file(tmp_path: Path) -> None:
    def work(number: int) -> None:
        for n in range(20):
            names = SourceNames(tmp_path)
            names.names_in(f"import spark_udfs.module_{number}_{n}".encode())
            names.save()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (file,) = tmp_path.iterdir()
    assert json.loads(file.read_text().partition("\n")[2])
    assert source_names._read(file)


def test_old_sources_are_dropped_at_a_bound(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_names, "_MOST_SOURCES", 1)
    names = SourceNames(kept.parent)
    names.names_in(b"import spark_udfs")
    names.save()
    assert list(source_names._read(kept).values()) == [["spark_udfs"]]


def test_without_a_cache_folder_nothing_is_kept(tmp_path: Path) -> None:
    names = SourceNames(tmp_path / "none")
    assert names.names_in(SOURCE) == NAMES
    names.save()
    assert list(tmp_path.iterdir()) == []
