"""Parts of files in a bucket: the rows of the disk, few bytes more than the file has, and no other file."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import obstore
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from obstore.store import S3Store

from factory.ingest.items import files_of
from factory.ingest.listing import Work, as_table
from factory.ingest.parts import in_parts
from factory.ingest.state import listing
from spark_udfs.ingest.records import Fields
from spark_udfs.ingest.remote.buckets import BucketObjects
from spark_udfs.ingest.remote.files import objects_at
from spark_udfs.ingest.remote.objects import ObjectState
from spark_udfs.ingest.remote.range_reader import RangeReader
from spark_udfs.ingest.rows import Origin
from spark_udfs.ingest.work import read_work
from tests.engines.processes import ObjectStore
from tests.ingest.remote.bucket_server import serving_objects
from tests.ingest.remote.conftest import upload
from tests.ingest.test_frame_index import file_of
from tests.ingest.test_parts import scan
from tests.ingest.web.archives import text_record

pytestmark = pytest.mark.process

PART_BYTES = 300_000


@pytest.fixture
def bucket(store: ObjectStore, request: pytest.FixtureRequest) -> Iterator[str]:
    objects_at.cache_clear()
    yield store.bucket(f"p{abs(hash(request.node.name))}")
    objects_at.cache_clear()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("large") / "corpus"
    folder.mkdir()
    texts = [f"{n} " * 500 for n in range(700)]
    lines = [json.dumps({"text": text}) for text in texts]
    (folder / "a.jsonl").write_text("\n".join(["", "", *lines, "{"]))
    table = pa.table({"text": [*texts, None]})
    pq.write_table(table, folder / "a.parquet", row_group_size=40, compression="none", use_dictionary=False)
    records = [text_record(text.encode(), f"{number}") for number, text in enumerate(texts)]
    (folder / "a.warc").write_bytes(b"".join(records))
    return folder


def work_of(address: str | Path, format: str) -> list[Work]:
    work = files_of(format, address, Origin(""))
    return list(in_parts(work, listing([address], PART_BYTES).large, PART_BYTES))


def rows_of(work: list[Work]) -> list[dict[str, Any]]:
    batches = read_work(as_table(work).to_batches(), Fields())
    return [row for batch in batches for row in batch.to_pylist()]


@pytest.mark.parametrize("format, more_bytes", [("jsonl", 1 << 18), ("parquet", 1 << 18), ("warc", 1 << 19)])
def test_parts_of_a_bucket_have_the_rows_of_the_disk(
    bucket: str, folder: Path, format: str, more_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload(folder, f"{bucket}/corpus")
    work = work_of(f"{bucket}/corpus", format)
    assert len(work) > 3
    n_bytes = 0
    pieces = BucketObjects.pieces

    def counting(
        objects: BucketObjects, name: str, begin: int, end: int, state: ObjectState
    ) -> Iterator[bytes]:
        nonlocal n_bytes
        n_bytes += end - begin
        return pieces(objects, name, begin, end, state)

    monkeypatch.setattr(BucketObjects, "pieces", counting)
    assert rows_of(work) == rows_of(work_of(folder, format))
    size = (folder / f"a.{format}").stat().st_size
    assert n_bytes < size + len(work) * more_bytes


@pytest.mark.parametrize("form", ["seekable", "pzstd"])
def test_frames_of_a_bucket_are_read_in_parts_by_their_index(
    bucket: str, tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = random.Random(form)
    pieces = [b"".join(b'{"text": "%x"}\n' % draw.getrandbits(2_000) for _ in range(500)) for _ in range(9)]
    folder = tmp_path / "corpus"
    folder.mkdir()
    (folder / "a.jsonl.zst").write_bytes(file_of(pieces, form))
    (folder / "b.jsonl.zst").write_bytes(b"".join(map(zstandard.compress, pieces)))
    upload(folder, f"{bucket}/corpus")
    requests: list[int] = []
    fetch = RangeReader._fetch
    monkeypatch.setattr(
        RangeReader, "_fetch", lambda reader, n_bytes: (requests.append(n_bytes), fetch(reader, n_bytes))[1]
    )
    work = work_of(f"{bucket}/corpus", "jsonl")
    assert len(requests) < 40
    assert sum(requests) < 40 << 16
    parts = [files.part for files in work if files.names == (b"a.jsonl.zst",)]
    assert len(parts) > 3
    assert None not in parts
    assert [files.part for files in work if files.names == (b"b.jsonl.zst",)] == [None]
    on_disk = work_of(folder, "jsonl")
    for name in (b"a.jsonl.zst", b"b.jsonl.zst"):
        of_both = [[files for files in side if files.names == (name,)] for side in (work, on_disk)]
        in_bucket, of_disk = (scan(files, Fields()) for files in of_both)
        assert len(in_bucket) == 4_500
        assert in_bucket == of_disk


@pytest.mark.parametrize("scheme", ["gs", "az"])
def test_parts_of_a_store_that_lists_other_versions_than_it_serves(
    scheme: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects_at.cache_clear()
    content = (folder / "a.jsonl").read_bytes()
    with serving_objects({"corpus/a.jsonl": content}) as server:
        server.lists_other_tags = True
        for name in ("GOOGLE_BASE_URL", "AZURE_STORAGE_ENDPOINT"):
            monkeypatch.setenv(name, server.endpoint)
        for name in ("GOOGLE_SKIP_SIGNATURE", "AZURE_SKIP_SIGNATURE"):
            monkeypatch.setenv(name, "true")
        monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "account")
        work = work_of(f"{scheme}://bucket/corpus", "jsonl")
        assert len(work) > 3
        assert rows_of(work) == rows_of(work_of(folder, "jsonl"))
        server.objects["corpus/a.jsonl"] = content.replace(b"7", b"8")
        assert {row["reason"] for row in rows_of(work) if row["doc_id"]} == {"changed_while_read"}
    objects_at.cache_clear()


@pytest.mark.invariant(
    "A part of a file that was replaced since it was listed gives no row of the other file."
)
def test_a_file_that_is_replaced_before_it_is_read_gives_no_row(bucket: str, folder: Path) -> None:
    upload(folder, f"{bucket}/corpus")
    work = work_of(f"{bucket}/corpus", "jsonl")
    store = S3Store(bucket.removeprefix("s3://"), region="us-east-1", client_options={"allow_http": True})
    other = (folder / "a.jsonl").read_bytes().replace(b"7", b"8")
    before = rows_of(work[:2])
    obstore.put(store, "corpus/a.jsonl", other)
    after = rows_of(work[2:])
    assert any(row["text"] for row in before)
    assert [row["reason"] for row in after if row["doc_id"]] == ["changed_while_read"] * len(work[2:])
    assert len({row["doc_id"] for row in after if row["doc_id"]}) == len(work[2:])
