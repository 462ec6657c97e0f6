"""The items of a source: one order by content, texts by page, the files of a repository."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from factory.errors import ConfigurationError, SourceChanged
from factory.lake import names
from factory.lake.files.location import location
from factory.lake.identity import content_hash
from factory.lake.schemas.ingest import RAW, thin
from factory.lake.tables import Lake
from factory.settings import Settings
from factory.synthesis import items
from factory.synthesis.items import ItemSource, open_source
from factory.synthesis.job import InvalidJob
from factory.synthesis.outcomes import RepositoryTooLarge
from tests.explain.lakes import documents, publish, verdicts
from tests.synthesis.jobs import document, job, source

ROWS = [document(number) for number in range(25)]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "lake")


def item_source(settings: Settings, seed: int = 0) -> ItemSource:
    publication = Lake(settings).published(names.raw("web"))
    return ItemSource(Lake(settings), names.raw("web"), publication.snapshot_id, seed)


def facts(settings: Settings, begin: int, end: int, seed: int = 0) -> list[tuple[Any, ...]]:
    return [
        (
            entry.doc_id,
            entry.key,
            entry.text,
            entry.path,
            dict(entry.metadata),
            entry.seed,
            dict(entry.neighbors()),
        )
        for entry, _ in item_source(settings, seed).items(begin, end)
    ]


def test_the_order_depends_on_content_alone(settings: Settings, tmp_path: Path) -> None:
    source(settings, ROWS)
    other = Settings(home=tmp_path / "other")
    for first in range(20, -1, -5):
        rows = pa.Table.from_pylist(ROWS[first : first + 5][::-1], schema=RAW.columns)
        Lake(other).create(names.raw("web"), RAW).append(rows)
    assert facts(settings, 0, 25) == facts(other, 0, 25)
    assert sorted(row[0] for row in facts(settings, 0, 25)) == [row["doc_id"] for row in ROWS]


def test_the_files_of_a_repository_are_neighbors_in_the_order(settings: Settings) -> None:
    source(settings, ROWS)
    repositories = [entry.repository for entry, _ in item_source(settings).items(0, 25) if entry.repository]
    changes = sum(first != second for first, second in pairwise(repositories))
    assert changes == len(set(repositories)) - 1 == 2


def test_an_item_has_the_fields_of_its_document(settings: Settings) -> None:
    source(settings, ROWS)
    assert len(item_source(settings)) == 25
    by_id = {row["doc_id"]: row for row in ROWS}
    for entry, has_text in item_source(settings).items(3, 20):
        row = by_id[entry.doc_id]
        assert has_text
        assert dict(entry.metadata) == dict(row["metadata"])
        for name in ("source", "key", "text", "language", "repository", "path"):
            assert getattr(entry, name) == row[name]


def test_neighbors_are_the_texts_of_the_same_revision(settings: Settings) -> None:
    rows = [document(number, repository="r", revision=f"v{number % 2}") for number in range(1, 8)]
    source(settings, [*rows, document(8, repository=None)])
    for entry, _ in item_source(settings).items(0, 8):
        number = int(entry.doc_id, 16)
        same = [row for row in rows if number < 8 and row["revision"] == f"v{number % 2}"]
        assert entry.neighbors() == {row["path"] or "": row["text"] for row in same if row["path"]}


def test_a_repository_beyond_the_bound_is_not_read(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(items, "MAX_REPOSITORY_BYTES", 50)
    source(settings, ROWS)
    entry = next(
        entry for entry, _ in item_source(settings).items(0, 25) if entry.repository == "repository 1"
    )
    with pytest.raises(RepositoryTooLarge, match=r"8 files of 152 bytes; 50 are read"):
        entry.neighbors()


def test_texts_are_read_a_few_at_a_time(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    source(settings, ROWS)
    answer = facts(settings, 0, 25)
    monkeypatch.setattr(items, "_READ_BYTES", 60)
    assert facts(settings, 0, 25) == answer
    assert len([*item_source(settings)._stretches(0, 25)]) > 8


def test_the_seed_of_an_item_follows_from_the_seed_of_the_job(settings: Settings) -> None:
    source(settings, ROWS)
    seeds = [[row[5] for row in facts(settings, 0, 5, seed)] for seed in (0, 0, 1)]
    assert seeds[0] == seeds[1]
    assert not {*seeds[0]} & {*seeds[2]}
    assert all(0 <= seed < 1 << 63 for seed in seeds[0])


def test_a_document_without_a_text_says_so(settings: Settings) -> None:
    source(settings, [document(1) | {"text": None, "media_type": "image/png"}, document(2)])
    assert {entry.doc_id[-1]: has_text for entry, has_text in item_source(settings).items(0, 2)} == {
        "1": False,
        "2": True,
    }


def test_registered_texts_are_read_in_place_and_a_changed_file_is_named(
    settings: Settings, tmp_path: Path
) -> None:
    file = tmp_path / "shelf.parquet"
    pq.write_table(pa.table({"body": [f"text {number}" for number in range(9)]}), file)
    stat = file.stat()
    rows = []
    for number in range(9):
        place = {
            "file": location(str(file)),
            "column": "body",
            "row": number,
            "file_bytes": stat.st_size,
            "modified_ns": stat.st_mtime_ns,
        }
        about = {"text": None, "text_at": place, "content_hash": content_hash(f"text {number}")}
        rows.append(document(number) | about)
    publish(Lake(settings), names.raw("web"), thin(RAW), rows)
    texts = {entry.doc_id: entry.text for entry, has_text in item_source(settings).items(0, 9) if has_text}
    assert texts == {row["doc_id"]: f"text {number}" for number, row in enumerate(rows)}
    pq.write_table(pa.table({"body": ["another"] * 9}), file)
    with pytest.raises(SourceChanged, match=r"shelf.parquet changed since"):
        list(item_source(settings).items(0, 9))


def test_an_empty_table_has_no_items(settings: Settings) -> None:
    source(settings, [])
    assert len(item_source(settings)) == 0
    assert list(item_source(settings).items(0, 0)) == []


def test_a_table_of_verdicts_is_no_source(settings: Settings) -> None:
    documents(Lake(settings), "web", "ab")
    snapshot = verdicts(Lake(settings), "web", {}, "ab")
    with pytest.raises(ConfigurationError, match=r"Table filtered.web has no column `source`"):
        ItemSource(Lake(settings), names.filtered("web"), snapshot)


def test_a_job_of_more_items_than_its_source_has_is_refused(settings: Settings) -> None:
    source(settings, ROWS)
    assert len(open_source(settings, job(settings, 25))) == 25
    with pytest.raises(InvalidJob, match=r"asks for 26 items, and raw\.web has 25"):
        open_source(settings, job(settings, 26))


def test_an_expired_snapshot_is_replaced_by_one_of_the_same_content(settings: Settings) -> None:
    source(settings, ROWS)
    assert len(open_source(settings, job(settings, 25, snapshot=1))) == 25
    with pytest.raises(SourceChanged, match=r"raw\.web has changed, and snapshot 1"):
        open_source(settings, job(settings, 25, snapshot=1, content="other"))
