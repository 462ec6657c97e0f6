"""Documents by doc_id, key and path, and the names near to one that nothing has."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from factory.errors import DamagedFile, NotFound
from factory.explain.find import find_ids
from factory.lake import names
from factory.lake.schemas.ingest import RAW, REJECTED
from factory.lake.tables import Lake
from factory.settings import Settings
from tests.explain.lakes import document, publish

FILES = {
    "a": ("flate2", "src/lib.rs"),
    "b": ("flate2", "src/gz/read.rs"),
    "c": ("tar", "src/lib.rs"),
    "d": ("talks", "AC / DC"),
    "e": ("gz", "read.rs"),
}
BAD = {"source": "flate2", "key": "src/bad.rs", "location": "byte 3", "reason": "not_utf8", "detail": "No."}


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """A lake with files of four sources, a rejected one, a table of no rows, and one never published."""
    lake = Lake(Settings(home=tmp_path_factory.mktemp("lake")))
    rows = [{**document(doc_id), "source": source, "key": key} for doc_id, (source, key) in FILES.items()]
    publish(lake, names.raw("crates"), RAW, rows)
    publish(lake, names.rejected("crates"), REJECTED, [{**BAD, "doc_id": "f", "n_bytes": 9}])
    publish(lake, names.rejected("empty"), REJECTED, [])
    lake.create(names.raw("half"), RAW)
    lines = {"g": b'{"url": "x.org/7", "id": 13, "text": 7}', "h": b'{"url": "x.org/70", "id": 130, "te'}
    bad_lines = [
        {**BAD, "doc_id": doc_id, "key": doc_id, "sample": line, "n_bytes": 40}
        for doc_id, line in lines.items()
    ]
    publish(lake, names.rejected("lines"), REJECTED, bad_lines)
    return lake


@pytest.mark.parametrize(
    "text, found",
    [
        ("a", "a"),
        ("src/lib.rs", "ac"),
        ("flate2 / src/lib.rs", "a"),
        ("flate2/src/lib.rs", "a"),
        ("/home/me/crates/flate2/src/lib.rs", "a"),
        ("flate2/src/gz/read.rs", "b"),  # whose end is the whole name of `e`
        ("elsewhere/gz/read.rs", "e"),
        ("talks / AC / DC", "d"),
        ("AC / DC", "d"),
        ("flate2/src/bad.rs", "f"),
        ("x.org/7", "g"),  # a value of a rejected record
        ("130", "h"),
    ],
)
def test_a_document_is_found_by_id_key_and_path(lake: Lake, text: str, found: str) -> None:
    assert sorted(find_ids(lake, text)) == list(found)


@pytest.mark.parametrize(
    "text, said",
    [
        ("lib.rs", "Did you mean `tar / src/lib.rs`, `flate2 / src/lib.rs`?"),
        ("flate2/lib.rs", "Did you mean `flate2 / src/lib.rs`?"),
        ("flat2/src/lib.rs", "Did you mean `flate2 / src/lib.rs`, `tar / src/lib.rs`?"),
        ("flate2/src/lip.rs", "Did you mean `flate2 / src/lib.rs`, `"),
        ("src/quite_another.cpp", "Look for keys with: factory sample raw.<dataset>."),
        ("Bad.rs", "Did you mean `flate2 / src/bad.rs`?"),
        ("zebra", "Look for keys with: factory sample raw.<dataset>."),
        ("url", "Look for keys with: factory sample raw.<dataset>."),  # the name of a field
        ("x.org", "Look for keys with: factory sample raw.<dataset>."),
        ("/", "Look for keys with: factory sample raw.<dataset>."),
    ],
)
def test_an_unknown_name_is_answered_with_near_ones(lake: Lake, text: str, said: str) -> None:
    with pytest.raises(NotFound) as caught:
        find_ids(lake, text)
    fact = f"No raw table holds `{text}`, neither as doc_id nor as key or path. "
    assert str(caught.value).startswith(fact + said)


def test_a_name_that_a_damaged_table_may_hold_is_not_called_unknown(tmp_path: Path) -> None:
    lake = Lake(Settings(home=tmp_path))
    publish(lake, names.raw("crates"), RAW, [document("a")])
    line = {**BAD, "doc_id": "g", "key": "line 1", "sample": b'{"id": 13, "te', "n_bytes": 40}
    publish(lake, names.rejected("crates"), REJECTED, [line])
    assert find_ids(lake, "13") == ["g"]
    [file] = (lake.settings.files.warehouse / "raw" / "crates_rejected").rglob("*.parquet")
    columns = pq.read_metadata(file).row_group(0)
    [sample] = [
        columns.column(number)
        for number in range(columns.num_columns)
        if columns.column(number).path_in_schema == "sample"
    ]
    begin = sample.dictionary_page_offset or sample.data_page_offset
    content = bytearray(file.read_bytes())
    content[begin + sample.total_compressed_size - 1] ^= 1
    file.write_bytes(content)
    with pytest.raises(DamagedFile, match=r"raw\.crates_rejected"):
        find_ids(lake, "13")


def test_an_empty_lake_has_no_near_names(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="Look for keys"):
        find_ids(Lake(Settings(home=tmp_path)), "src/lib.rs")
