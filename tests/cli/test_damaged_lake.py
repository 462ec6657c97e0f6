"""Commands on a lake with a damaged file: the file is named, and everything else is answered."""

from __future__ import annotations

import json

import pytest

from blender.catalog.blends import open_blends
from blender.records import Source
from factory.errors import DamagedFile
from factory.lake.names import raw
from factory.lake.schemas.ingest import RAW
from factory.lake.tables import Lake
from tests.cli.command import factory
from tests.cli.test_doctor import finding
from tests.explain.lakes import documents, pack


@pytest.mark.invariant(
    "A damaged table is one sentence in `tables`, `clean` and `doctor`, and affects no other table. A run"
    " that replaces all its rows recreates it, without its earlier snapshots."
)
def test_one_damaged_table_is_a_sentence_of_its_own(lake: Lake) -> None:
    folder = lake.settings.files.warehouse / "filtered" / "book" / "metadata"
    newest = max(folder.glob("*.metadata.json"))
    newest.write_text("{}")
    answers = [factory("tables"), factory("tables", "--json"), factory("clean")]
    assert [answer.exit_code for answer in answers] == [DamagedFile.exit_code] * 3
    for it in answers:
        assert (newest.name in it.stderr, "factory materialize filtered.book" in it.stderr) == (True, True)
    assert "raw.book" in answers[0].stdout
    assert [load["table"] for load in json.loads(answers[1].stdout)] == ["raw.book"]
    assert "Nothing to drop" in answers[2].stdout
    asked = factory("trace", "document", "page 2")
    assert (asked.exit_code, newest.name in asked.stderr) == (DamagedFile.exit_code, True)


def test_a_document_is_followed_past_a_damaged_table_that_may_not_hold_it(
    lake: Lake, caplog: pytest.LogCaptureFixture
) -> None:
    lake.create(raw("other"), RAW)
    (metadata,) = (lake.settings.files.warehouse / "raw" / "other").rglob("*.metadata.json")
    metadata.write_text("{}")
    result = factory("trace", "document", "page 2")
    assert (result.exit_code, "rejected by 1 rule(s)" in " ".join(result.stdout.split())) == (0, True)
    assert metadata.name in caplog.text
    assert factory("trace", "document", "nowhere").exit_code == DamagedFile.exit_code


def test_trace_names_table_and_file_of_placements_that_were_cut_short(lake: Lake) -> None:
    documents(lake, "book", "ab")
    pack(lake, "book", "ab")
    (file,) = (lake.settings.files.warehouse / "packed" / "book_placements").rglob("*.parquet")
    whole = file.read_bytes()
    for n_bytes in (0, 3, len(whole) // 2, len(whole) - 1):
        file.write_bytes(whole[:n_bytes])
        result = factory("trace", "document", "page a")
        assert (result.exit_code, result.stdout) == (DamagedFile.exit_code, "")
        fact = f"Table packed.book_placements is damaged. File {file} cannot be read as Parquet: "
        assert result.stderr.startswith(fact)
        remedy = "Restore the file, or make the table again: factory materialize packed.book_placements."
        assert result.stderr.endswith(f". {remedy}\n")


def test_a_damaged_page_index_is_made_again_with_a_warning(
    lake: Lake, caplog: pytest.LogCaptureFixture
) -> None:
    documents(lake, "book", "ab")
    pack(lake, "book", "ab")
    blend = open_blends(lake.settings).create([Source(table="packed.book", weight=1)]).id
    shown = factory("trace", "batch", blend, "0").stdout
    assert "page a" in shown
    indexes = [
        path for path in lake.settings.files.page_index.rglob("snapshots/*") if path.suffix != ".facts"
    ]
    for index in indexes:
        index.write_bytes(b"damaged")
    again = factory("trace", "batch", blend, "0")
    assert (again.exit_code, again.stdout) == (0, shown)
    unread = [index for index in indexes if index.read_bytes() == b"damaged"]  # a trace reads no tokens
    assert len(unread) == 1
    for index in set(indexes) - set(unread):
        assert f"Page index {index} is damaged. It is made again from the data files." in caplog.text


def test_doctor_names_a_table_with_a_deleted_data_file(lake: Lake) -> None:
    found = finding(lake.settings, "lake")
    assert (found.found, found.good) == ("2 tables, 3 data files checked for their size", True)
    (file,) = (lake.settings.files.warehouse / "raw" / "book").rglob("*.parquet")
    file.unlink()
    found = finding(lake.settings, "lake")
    assert found.found == "2 tables, 3 data files checked for their size, and 1 that are damaged"
    assert found.remedy == (
        f"Table raw.book is damaged. File {file} is missing. "
        "Restore the file, or make the table again: factory materialize raw.book."
    )
