"""Texts of registered objects are read by ranges from their store, and a change of an object is seen."""

from __future__ import annotations

import io
import random
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from factory.errors import DamagedFile, SourceChanged
from factory.lake.files.registered import RegisteredTexts, TextLocation
from factory.lake.files.storage import version_of
from factory.lake.identity import content_hash
from tests.ingest.remote.bucket_server import BucketServer, serving_objects

FILE = "s3://bucket/a b.parquet"
TEXTS = [random.Random(row).randbytes(2_000).hex() for row in range(400)]


def parquet(texts: list[str]) -> bytes:
    """A file with ten row groups, half of it a column that nobody reads."""
    content = io.BytesIO()
    table = pa.table({"text": texts, "wide": texts[::-1]})
    pq.write_table(table, content, row_group_size=40, use_dictionary=False, write_statistics=False)
    return content.getvalue()


@pytest.fixture(scope="module")
def server() -> Iterator[BucketServer]:
    with serving_objects({}) as server:
        yield server


@pytest.fixture
def bucket(server: BucketServer) -> BucketServer:
    server.objects, server.bytes_sent = {"a b.parquet": parquet(TEXTS)}, 0
    return server


def locations(bucket: BucketServer, rows: range) -> list[dict[str, object]]:
    version = version_of(FILE, bucket.storage)
    return [TextLocation(FILE, "text", row, version.n_bytes, version.stamp)._asdict() for row in rows]


def texts_at(bucket: BucketServer, places: list[dict[str, object]], rows: range) -> list[str]:
    hashes = pa.array([content_hash(TEXTS[row].encode()) for row in rows])
    pieces = RegisteredTexts(bucket.storage).read(places, hashes)
    return [text for piece in pieces for text in piece.to_pylist()]


@pytest.mark.invariant("Texts of a registered object cost the bytes of their column and row groups alone.")
def test_texts_of_a_row_group_cost_its_bytes_of_their_column(bucket: BucketServer) -> None:
    rows = range(120, 160)
    assert texts_at(bucket, locations(bucket, rows), rows) == [TEXTS[row] for row in rows]
    file_bytes = len(bucket.objects["a b.parquet"])
    assert file_bytes / 21 < bucket.bytes_sent < file_bytes / 20 + 100_000  # and the footer


@pytest.mark.parametrize("other", [TEXTS[:9], ["x" * 4_000, *TEXTS[1:]]])
def test_a_changed_object_is_named(bucket: BucketServer, other: list[str]) -> None:
    rows = range(40)
    places = locations(bucket, rows)
    bucket.objects["a b.parquet"] = parquet(other).ljust(len(bucket.objects["a b.parquet"]), b"\0")
    with pytest.raises(SourceChanged, match=f"The file {FILE} changed since its rows were registered"):
        texts_at(bucket, places, rows)


def test_a_missing_object_is_named(bucket: BucketServer) -> None:
    rows = range(40)
    places = locations(bucket, rows)
    bucket.objects.clear()
    with pytest.raises(SourceChanged, match=f"The file {FILE}, whose rows are registered, cannot be read"):
        texts_at(bucket, places, rows)


def test_a_text_with_another_hash_is_named(bucket: BucketServer) -> None:
    with pytest.raises(DamagedFile, match=f"row 0, column `text`, of the registered file {FILE} is not"):
        texts_at(bucket, locations(bucket, range(1)), range(1, 2))
