"""Parquet files stay where they are if the warehouse reaches them there."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator
from threading import Lock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from factory.ingest.items import files_of
from factory.ingest.registering import N_THREADS, registering
from factory.lake.registration import Candidates, FooterFacts
from spark_udfs.ingest.remote.files import objects_at
from spark_udfs.ingest.rows import Origin
from tests.ingest.remote.bucket_server import BucketServer, serving_objects


def parquet(text: str) -> bytes:
    content = io.BytesIO()
    pq.write_table(pa.table({"text": [text] * 9}), content)
    return content.getvalue()


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[BucketServer]:
    objects_at.cache_clear()
    with serving_objects({f"web/{name}.parquet": parquet(name) for name in "ab"}) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.endpoint)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "id")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hush")
        yield server
    objects_at.cache_clear()


def candidates_of(storage: dict[str, str], warehouse: str) -> tuple[Candidates, list[str]]:
    """The candidates among the bucket's files, and the formats that these are read as."""
    candidates = Candidates("text", storage)
    work = files_of("parquet", "s3://bucket/web", Origin(""))
    return candidates, [files.format for files in registering(work, candidates, warehouse)]


def test_objects_in_the_store_of_the_warehouse_stay(bucket: BucketServer) -> None:
    candidates, formats = candidates_of(bucket.storage, "s3://lake/warehouse")
    assert formats == ["registered", "registered"]
    assert candidates.files == ["s3://bucket/web/a.parquet", "s3://bucket/web/b.parquet"]
    assert (candidates.rows, candidates.refused) == (18, {})


def test_footers_that_several_threads_read_keep_the_order_of_their_files(bucket: BucketServer) -> None:
    names = [f"web/{number:03}.parquet" for number in range(3 * N_THREADS)]
    bucket.objects |= {name: parquet(name) for name in names} | {names[5]: b"PAR1 damaged PAR1"}
    bucket.objects = dict(sorted(bucket.objects.items()))
    candidates, formats = candidates_of(bucket.storage, "s3://lake/warehouse")
    assert [position for position, format in enumerate(formats) if format == "parquet"] == [5]
    assert candidates.files == [f"s3://bucket/{name}" for name in bucket.objects if name != names[5]]
    assert list(candidates.refused) == ["005.parquet"]


def test_large_footers_are_parsed_one_after_the_other(
    bucket: BucketServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    small, large = len(bucket.objects), 8
    content = io.BytesIO()
    columns = {"text": ["a"]} | {f"a column with number {number}": [number] for number in range(200)}
    pq.write_table(pa.table(columns), content)
    bucket.objects |= {f"web/large{number}.parquet": content.getvalue() for number in range(large)}
    monkeypatch.setattr("factory.ingest.registering.SMALL_FOOTER_BYTES", 10_000)
    large_footers, most_at_once = 0, 0
    lock, footer = Lock(), Candidates.footer

    def counting(candidates: Candidates, file: str) -> FooterFacts:
        nonlocal large_footers, most_at_once
        is_large = "large" in file
        with lock:
            large_footers += is_large
            most_at_once = max(most_at_once, large_footers)
        time.sleep(0.02)
        try:
            return footer(candidates, file)
        finally:
            with lock:
                large_footers -= is_large

    monkeypatch.setattr(Candidates, "footer", counting)
    candidates, _ = candidates_of(bucket.storage, "s3://lake/warehouse")
    assert len(candidates.files) + len(candidates.refused) == small + large
    assert most_at_once == 1


def test_with_a_limit_no_footer_behind_it_is_read(bucket: BucketServer) -> None:
    candidates = Candidates("text", bucket.storage)
    work = files_of("parquet", "s3://bucket/web", Origin(""))
    formats = [files.format for files in registering(work, candidates, "s3://lake/warehouse", limit=3)]
    assert formats == ["registered", "parquet"]
    assert not any("b.parquet" in request for request in bucket.requests)


def test_objects_for_a_warehouse_on_a_disk_are_rewritten(bucket: BucketServer) -> None:
    assert bucket.objects
    candidates, formats = candidates_of({}, "file:///lake/warehouse")
    assert formats == ["parquet", "parquet"]
    assert set(candidates.refused.values()) == {
        "the warehouse file:///lake/warehouse is on another storage than this file"
    }


def test_an_object_of_another_store_with_the_same_address_is_rewritten(bucket: BucketServer) -> None:
    other = {"web/a.parquet": parquet("c"), "web/b.parquet": bucket.objects["web/b.parquet"]}
    with serving_objects(other) as store:
        candidates, formats = candidates_of(store.storage, "s3://lake/warehouse")
        assert formats == ["parquet", "registered"]
        store.refusals[0] = (403, "AccessDenied")
        others, formats = candidates_of(store.storage, "s3://lake/warehouse")
        assert formats == ["parquet", "parquet"]
    reason = "the store of the warehouse s3://lake/warehouse has no such file for its keys"
    assert candidates.refused == {"a.parquet": reason}
    assert others.refused == {"a.parquet": reason, "b.parquet": reason}
