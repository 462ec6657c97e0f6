"""Why a run writes a table again, and what it keeps."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from factory.lake.names import TableName
from factory.lake.tables import Lake
from factory.orchestration.keys import key_of
from factory.orchestration.table.declaration import PartitionSelection
from factory.orchestration.table.reuse import Request, listings_of, phrase, reasons, stale_lasting
from factory.orchestration.table.table_asset import declaration_of
from factory.settings import Settings
from tests.orchestration.table.published import component, publish

CHANGED = Request(reuse=True, by_itself=False)
EVERYTHING = Request(reuse=False, by_itself=False)
BY_ITSELF = Request(reuse=False, by_itself=True)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A lake with `dedup.down`, made of `dedup.one` and `dedup.two`."""
    lake = Lake(Settings(home=tmp_path))
    for name in ("one", "two"):
        publish(lake, component(name), "a")
    publish(lake, component("down", "one", "two"), "a")
    return lake


def reason(lake: Lake, asset: dg.AssetsDefinition, request: Request = CHANGED) -> str | None:
    declared = declaration_of(asset)
    upstream = {str(of): lake.published(of) for of in declared.upstream.values()}
    listings = listings_of(declared, [None])
    found = reasons(lake, declared, upstream, PartitionSelection(), request, listings)
    return found.get(None)


def down(*upstream: str, **options: object) -> dg.AssetsDefinition:
    return component("down", *(upstream or ("one", "two")), **options)  # type: ignore[arg-type]


def test_a_table_without_a_change_is_kept_unless_everything_is_made(lake: Lake) -> None:
    publish(lake, component("one"), "a")  # read again, with the same rows
    assert reason(lake, down()) is None
    assert reason(lake, down(), EVERYTHING) == "it was selected"


@pytest.mark.parametrize("request_of", [CHANGED, EVERYTHING])
def test_the_reason_names_each_upstream_table_that_changed(lake: Lake, request_of: Request) -> None:
    publish(lake, component("two"), "b")
    assert reason(lake, down(), request_of) == "dedup.two changed"
    publish(lake, component("one"), "b")
    assert reason(lake, down(), request_of) == "dedup.one and dedup.two changed"


def test_the_reason_lists_three_tables_with_commas(lake: Lake) -> None:
    names = ("one", "three", "two")
    publish(lake, component("three"), "a")
    publish(lake, down(*names), "a")
    for name in names:
        publish(lake, component(name), "b")
    assert reason(lake, down(*names)) == "dedup.one, dedup.three and dedup.two changed"


def test_the_reason_names_tables_that_are_read_now_or_not_any_more(lake: Lake) -> None:
    publish(lake, component("three"), "a")
    assert reason(lake, down("one", "three")) == "dedup.three is read now, dedup.two is not read any more"


def test_the_reason_tells_configuration_code_and_new_tables_apart(lake: Lake) -> None:
    assert reason(lake, down(config="other")) == 'config "" -> other'
    publish(lake, down(), "a", code_version="older")
    assert reason(lake, down()) == "its code changed"
    assert reason(lake, component("another", "one")) == "it is new"
    assert reason(lake, component("one")) == "sources are read every time"


def test_a_table_of_an_older_version_says_only_that_its_configuration_changed(lake: Lake) -> None:
    publish(lake, down(config="older"), "a", values=False)
    assert reason(lake, down()) == "its configuration changed"


@pytest.mark.invariant(
    "A source is read again when the names, sizes or times of its files change, or were too new to trust."
)
def test_a_source_is_read_again_when_its_files_differ(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    for name in ("a.txt", "b.txt"):
        (folder / name).write_text(name)
    monkeypatch.setattr("factory.ingest.state.SETTLED_NS", -(10**9))  # as if the files were old
    source = component("files", files=lambda _: [folder])
    assert reason(lake, source) == "it is new"
    publish(lake, source, "a")
    assert reason(lake, source) is None
    assert reason(lake, source, EVERYTHING) == "it was selected"
    (folder / "a.txt").unlink()
    (folder / "new.txt").write_text("new")
    assert reason(lake, source) == "+1 new.txt, -1 a.txt"
    monkeypatch.undo()
    publish(lake, source, "b")
    # A change within the same tick of the clock would leave the time of `new.txt` as it is.
    assert reason(lake, source) == "its files were new when they were read, and may have changed since"


def test_a_damaged_table_is_made_again(lake: Lake) -> None:
    folder = lake.settings.files.warehouse / "dedup" / "down" / "metadata"
    max(folder.glob("*.metadata.json")).write_text("{}")
    assert reason(lake, down()) == "it is damaged"


def test_only_a_remake_has_a_phrase() -> None:
    assert phrase({None: "it is new"}) == ""
    assert phrase({"de": "raw.web changed", "en": "raw.web changed", "fr": "it is new"}) == "raw.web changed"


def test_a_lasting_table_waits_until_it_is_asked_for(lake: Lake) -> None:
    lasting = down(lasting=True)
    publish(lake, lasting, "a", code_version="older")
    publish(lake, component("one"), "b")
    for request in (CHANGED, EVERYTHING):
        assert reason(lake, lasting, request) is None
    assert reason(lake, lasting, Request(reuse=True, by_itself=True)) is None
    assert reason(lake, lasting, BY_ITSELF) == "its code changed"
    for request in (CHANGED, EVERYTHING, BY_ITSELF):
        assert reason(lake, down(lasting=True, config="other"), request) == 'config "" -> other'


def test_a_kept_lasting_table_names_what_changed_and_the_command(lake: Lake) -> None:
    lasting = declaration_of(down(lasting=True))
    publish(lake, down(lasting=True), "a")

    def said() -> str:
        return stale_lasting(lake, lasting, {str(of): lake.published(of) for of in lasting.upstream.values()})

    assert said() == ""
    publish(lake, component("one"), "b")
    assert said() == "dedup.one changed; `factory materialize dedup.down` makes it again"


def test_a_run_asks_for_a_table_by_itself_if_it_makes_none_of_its_input() -> None:
    declared = declaration_of(down())
    own, later, read = (key_of(TableName("dedup", table_name)) for table_name in ("down", "last", "two"))
    assert Request.of(declared, [own, later], reuse=False).by_itself
    assert not Request.of(declared, [own, read], reuse=False).by_itself
    # An earlier run of the selection makes the input.
    assert not Request.of(declared, [own], reuse=False, readers={TableName("dedup", "down")}).by_itself


def test_a_lasting_table_ends_with_the_tables_that_it_lasts_until(lake: Lake) -> None:
    lasting = {"lasting": True, "until": [TableName("dedup", "two")]}
    publish(lake, component("one"), "b")
    assert reason(lake, down(**lasting)) is None
    publish(lake, component("two"), "b")
    assert reason(lake, down(**lasting)) == "dedup.two changed"
    assert reason(lake, down(lasting=True)) is None
