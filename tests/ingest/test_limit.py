"""A limit reads the first records of a dataset, the same on any machine, and opens no file behind them."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factory.errors import ConfigurationError
from factory.ingest import readers
from factory.ingest.items import files_of
from factory.ingest.listing import Work, as_table, first_names
from factory.ingest.readers import Ingested, Ingests
from spark_udfs.ingest import place
from spark_udfs.ingest.place import LocalFiles
from spark_udfs.ingest.records import Fields
from spark_udfs.ingest.rows import Origin
from spark_udfs.ingest.work import read_work
from tests.ingest.inputs import zipped
from tests.ingest.outcomes import rows
from tests.ingest.web.archives import Fetch, archive, page

RECORDS = 7  # of each file or folder; the third is not text, unless the format has pages


def _jsonl(folder: Path) -> None:
    for name in "abc":
        lines = [json.dumps({"text": f"{name} {number}"}) for number in range(RECORDS)]
        lines[2] = "no JSON"
        (folder / f"{name}.jsonl").write_text("\n".join(lines))


def _parquet(folder: Path) -> None:
    for name in "abc":
        texts = [f"{name} {number}" for number in range(RECORDS)]
        texts[2] = ""
        pq.write_table(pa.table({"text": texts}), folder / f"{name}.parquet")


def _archive(folder: Path) -> None:
    for name in "abc":
        members = {f"{number}.txt": b"text" if number != 2 else b"\xff" for number in range(RECORDS)}
        (folder / f"{name}.zip").write_bytes(zipped(members))


def _warc(folder: Path) -> None:
    for number, name in enumerate("abc"):
        offset = number * RECORDS
        fetches = [Fetch(f"http://a.example/{n}", page(n)) for n in range(offset, offset + RECORDS)]
        (folder / f"{name}.warc.gz").write_bytes(archive(fetches, offset=offset))


def _files(folder: Path) -> None:
    for name in "abc":
        for number in range(RECORDS):
            (folder / f"{name}{number}.txt").write_bytes(b"text" if number != 2 else b"\xff")


def _html(folder: Path) -> None:
    for name in "abc":
        for number in range(RECORDS):
            (folder / f"{name}{number}.html").write_text(f"<p>{'Words of a page. ' * 30}{name}{number}</p>")


def _repositories(folder: Path) -> None:
    for name in "abc":
        (folder / name).mkdir()
        for number in range(RECORDS):
            (folder / name / f"{number}.py").write_bytes(b"1" if number != 2 else b"\xff")


FORMATS: dict[str, tuple[Callable[[Path], None], str]] = {  # the files, and the key of a record
    "files": (_files, "{name}{number}.txt"),
    "jsonl": (_jsonl, "{name}.jsonl:{line}"),
    "parquet": (_parquet, "{name}.parquet:{number}"),
    "archive": (_archive, "{name}.zip!/{number}.txt"),
    "html": (_html, "{name}{number}.html"),
    "warc": (_warc, "urn:uuid:{id:08d}-0000-0000-0000-000000000000"),
    "repositories": (_repositories, "{name}/{number}.py"),
}


@pytest.mark.spark
@pytest.mark.parametrize("format", FORMATS)
def test_a_limit_reads_the_first_records_of_any_format(ingests: Ingests, tmp_path: Path, format: str) -> None:
    make, key = FORMATS[format]
    make(tmp_path)
    whole, found = (getattr(ingests, format)(tmp_path, limit=limit) for limit in (None, 10))
    assert (whole.limit, found.limit) == (None, 10)
    in_order = [
        key.format(name=name, number=number, line=number + 1, id=place * RECORDS + number)
        for place, name in enumerate("abc")
        for number in range(RECORDS)
    ]
    assert sorted(_keys(whole)) == sorted(in_order)
    assert sorted(_keys(found)) == sorted(in_order[:10])


def _keys(ingested: Ingested) -> list[str]:
    """The keys of documents and rejected records; in repositories with the name of the repository."""
    found = [*rows(ingested.documents), *rows(ingested.rejected)]
    return [f"{row['source']}/{row['key']}" if row["source"] in set("abc") else row["key"] for row in found]


def test_no_file_behind_a_limit_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _jsonl(tmp_path)
    opened: list[str] = []

    def record(path: bytes, *arguments: Any) -> int:
        opened.append(Path(os.fsdecode(path)).name)
        return os_open(path, *arguments)

    os_open = os.open
    monkeypatch.setattr(place.os, "open", record)
    work = as_table(first_names(files_of("jsonl", tmp_path, Origin("")), RECORDS + 1))
    [batch] = read_work(work.to_batches(), Fields(), RECORDS + 1)
    assert batch.num_rows == RECORDS + 1
    assert opened == ["a.jsonl", "b.jsonl"]


@given(st.data())
def test_the_first_records_do_not_depend_on_how_items_arrive(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        _jsonl(Path(folder))
        whole = as_table(files_of("jsonl", folder, Origin("")))
        records = [row for batch in read_work(whole.to_batches(), Fields()) for row in batch.to_pylist()]
        limit = data.draw(st.integers(1, len(records) + 2))
        order = data.draw(st.permutations(range(whole.num_rows)))
        shuffled = whole.take(order).to_batches(max_chunksize=data.draw(st.integers(1, 3)))
        found = [row for batch in read_work(shuffled, Fields(), limit) for row in batch.to_pylist()]
        assert found == records[:limit]


@given(st.lists(st.integers(1, 5), max_size=6), st.integers(1, 20))
def test_names_behind_a_limit_are_not_even_listed(sizes: list[int], limit: int) -> None:
    taken: list[int] = []

    def items() -> Iterator[Work]:
        for number, size in enumerate(sizes):
            taken.append(number)
            yield Work(
                "text", Origin("s"), LocalFiles(b""), tuple(b"%d.%d" % (number, name) for name in range(size))
            )

    names = [name for item in first_names(items(), limit) for name in item.names]
    every = [b"%d.%d" % (number, name) for number, size in enumerate(sizes) for name in range(size)]
    assert names == every[:limit]
    assert sum(sizes[number] for number in taken[:-1]) < limit


class ItemsOnly(Ingests):
    """The items of a reader up to a limit, without Spark."""

    items: list[Work]

    def __init__(self) -> None:
        pass

    def _ingest(self, work: Iterable[Work], *_: Any, limit: int | None = None, **__: Any) -> Any:
        self.items = list(first_names(work, limit))


def test_licenses_behind_a_limit_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _repositories(tmp_path)
    folders: list[str] = []
    monkeypatch.setattr(readers, "license_of", lambda folder: folders.append(folder.name))
    ItemsOnly().repositories(tmp_path, limit=RECORDS)
    assert folders == ["a"]


@pytest.mark.spark
def test_records_behind_a_damaged_row_group_fill_the_limit(ingests: Ingests, tmp_path: Path) -> None:
    _parquet(tmp_path)
    content = bytearray((tmp_path / "a.parquet").read_bytes())
    content[4:40] = b"\xff" * 36
    (tmp_path / "a.parquet").write_bytes(content)
    found = ingests.parquet(tmp_path, limit=RECORDS)
    assert sorted(_keys(found))[:3] == ["a.parquet:0", "b.parquet:0", "b.parquet:1"]
    assert len(_keys(found)) == RECORDS


@pytest.mark.spark
def test_a_limit_is_at_least_one(ingests: Ingests, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="`limit` is 0, and a dataset needs a record"):
        ingests.files(tmp_path, limit=0)
