"""The published tables of a lake, read without PyIceberg."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from factory.lake.heads import published_heads
from factory.lake.names import TableName, filtered, raw
from factory.lake.schemas.filters import FILTERED
from factory.lake.schemas.ingest import RAW
from factory.lake.tables import Lake, Published
from factory.settings import Settings
from tests.explain.lakes import publish


def document(number: int) -> dict[str, object]:
    return {
        "doc_id": f"{number:032x}",
        "source": "book",
        "key": f"page {number}",
        "text": f"text of page {number}",
        "content_hash": f"{number}",
        "n_bytes": 14,
        "media_type": "text/plain",
    }


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A lake with a table published twice, another published once, and one that never was."""
    lake = Lake(Settings(home=tmp_path))
    publish(lake, filtered("book"), FILTERED, [{"doc_id": "0" * 32, "kept": True, "rejections": []}])
    publish(lake, raw("book"), RAW, [document(1)])
    publish(lake, raw("book"), RAW, [document(1), document(2)])
    lake.create(raw("empty"), RAW)
    return lake


def metadata_of(lake: Lake, table: TableName) -> Path:
    return Path(lake.table(table).metadata_location.removeprefix("file://"))


def by_pyiceberg(lake: Lake) -> list[Published]:
    """The same states as PyIceberg reads them, without the properties of their rows."""
    tables, _ = lake.readable()
    names = [name for name, table in tables.items() if table.current_snapshot() is not None]
    return [replace(lake.published(name), properties={}) for name in names]


def test_the_states_are_those_that_pyiceberg_reads(lake: Lake) -> None:
    heads = published_heads(lake.settings)
    assert heads == by_pyiceberg(lake)
    assert [head.table for head in heads or ()] == [raw("book"), filtered("book")]


def test_a_new_catalog_has_none(tmp_path: Path) -> None:
    lake = Lake(Settings(home=tmp_path))
    assert published_heads(lake.settings) is None  # to be made
    assert not lake.settings.files.catalog_database.exists()
    assert lake.names() == []
    assert published_heads(lake.settings) == []


def test_a_server_catalog_is_left_to_pyiceberg(tmp_path: Path) -> None:
    servers = Settings(home=tmp_path, catalog="rest", catalog_uri="http://nowhere", warehouse=str(tmp_path))
    assert published_heads(servers) is None


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b"\xff"])
def test_damaged_metadata_are_left_to_the_reader_that_names_them(lake: Lake, content: bytes) -> None:
    file = metadata_of(lake, raw("book"))
    file.write_bytes(content)
    assert published_heads(lake.settings) is None
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    assert published_heads(lake.settings) is None
    file.unlink()
    assert published_heads(lake.settings) is None


def test_a_changed_byte_is_not_believed(lake: Lake) -> None:
    file = metadata_of(lake, raw("book"))
    file.write_bytes(file.read_bytes().replace(b'"total-records":"2"', b'"total-records":"3"'))
    assert published_heads(lake.settings) is None


def test_a_damaged_catalog_is_left_to_the_reader_that_names_it(lake: Lake) -> None:
    database = lake.settings.files.catalog_database
    database.write_bytes(database.read_bytes()[:5_000])
    assert published_heads(lake.settings) is None
