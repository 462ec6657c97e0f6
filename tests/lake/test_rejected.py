"""The number of records that rows of rejected records stand for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from factory.explain.stages.ingest import origins
from factory.lake import names
from factory.lake.rejected import N_RECORDS, count_rejected
from factory.lake.schemas.ingest import REJECTED
from factory.lake.tables import Lake
from factory.settings import Settings
from tests.explain.lakes import publish

TABLE = names.rejected("web")


def row(number: int, reason: str, **columns: int) -> dict[str, object]:
    about = {"source": "s", "key": str(number), "location": "line 1", "detail": "It is odd.", "n_bytes": 1}
    return {"doc_id": str(number), "reason": reason, **about, **columns}


def test_a_row_counts_as_many_records_as_share_it(tmp_path: Path) -> None:
    lake = Lake(Settings(home=tmp_path))
    publish(lake, TABLE, REJECTED, [row(1, "b"), row(2, "a", n_records=7), row(3, "b"), row(4, "empty")])
    assert list(count_rejected(lake, TABLE).items()) == [("a", 7), ("b", 2), ("empty", 1)]


def test_the_trace_of_a_rejected_record_names_its_file(tmp_path: Path) -> None:
    lake = Lake(Settings(home=tmp_path))
    archive = {"file": "crawl/a.warc.gz", "location": "byte 512"}
    publish(lake, TABLE, REJECTED, [{**row(1, "b"), **archive, "key": "urn:uuid:1"}])
    [trace] = origins(lake, TABLE, ["1"])
    assert trace.about["file"] == "crawl/a.warc.gz"
    assert trace.reason == "bad record (b) at byte 512 of `crawl/a.warc.gz`: It is odd."


def test_a_record_from_before_the_file_was_told_has_a_trace(tmp_path: Path) -> None:
    columns = REJECTED.columns.remove(REJECTED.columns.get_field_index("file"))
    lake = Lake(Settings(home=tmp_path))
    publish(lake, TABLE, replace(REJECTED, columns=columns), [row(1, "b")])
    [trace] = origins(lake, TABLE, ["1"])
    assert trace.reason == "bad record (b) at line 1: It is odd."


def test_a_table_from_before_the_count_has_one_record_a_row(tmp_path: Path) -> None:
    columns = REJECTED.columns.remove(REJECTED.columns.get_field_index(N_RECORDS))
    lake = Lake(Settings(home=tmp_path))
    publish(lake, TABLE, replace(REJECTED, columns=columns), [row(1, "b"), row(2, "a"), row(3, "b")])
    assert count_rejected(lake, TABLE) == {"b": 2, "a": 1}
