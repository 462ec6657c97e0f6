"""Names, refusals and losses of buckets that a store of the tests cannot be asked for."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator

import pytest

from factory.errors import ConfigurationError
from factory.ingest.overlapping_paths import refuse_overlap
from spark_udfs.ingest.address import place_of
from spark_udfs.ingest.place import Place
from spark_udfs.ingest.remote.files import objects_at
from spark_udfs.ingest.rows import BadRecord
from tests.ingest.remote.bucket_server import BucketServer, serving_objects
from tests.ingest.test_place import WorkOnly

RECORD = b'{"text": "a record"}\n'


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[BucketServer]:
    objects_at.cache_clear()
    with serving_objects({}) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.endpoint)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "hush-id")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hush-secret")
        monkeypatch.setenv("AWS_SESSION_TOKEN", "hush-token")
        yield server
    objects_at.cache_clear()


def content_of(place: Place, name: bytes) -> bytes:
    with place.open(name) as file:
        return file.read()


def names_of(place: Place) -> list[bytes]:
    return list(place.walk(lambda _: True))


def test_odd_names_are_read_as_they_are(bucket: BucketServer) -> None:
    names = [
        "100%.txt",
        "a%20b",
        "a b",
        "a+b",
        "é",
        "e\u0301",
        "q?x",
        "h#y",
        "back\\slash",
        "star*",
        "~",
        "z" * 1_024,
    ]
    bucket.objects = {name: name.encode() for name in sorted([*names, "y/" * 511 + "z"])}
    place = place_of("s3://bucket")
    assert [name.decode() for name in names_of(place)] == list(bucket.objects)
    assert all(content_of(place, name.encode()) == content for name, content in bucket.objects.items())


@pytest.mark.parametrize("name", ["a//b", "a/../b", "a/./b", "line\nbreak", "/b"])
def test_a_name_that_cannot_be_asked_for_is_one_sentence(bucket: BucketServer, name: str) -> None:
    bucket.objects = {name: b"1", "c": b"2"}
    place = place_of("s3://bucket")
    asks: list[Callable[[], object]] = [place.below(b"a").children, lambda: place.kind(name.encode())]
    if name == "/b":
        asks = [place.children]
    elif "//" not in name:
        asks = [lambda: names_of(place), lambda: list(place.states())]
    for ask in asks:
        with pytest.raises(ConfigurationError, match=r"has an empty part, a part `\.` or"):
            ask()


def test_a_name_that_the_client_cannot_tell_apart_is_read_once_or_refused(bucket: BucketServer) -> None:
    bucket.objects = {"a": RECORD, "a/": RECORD, "empty": b"", "mark/": b""}
    place = place_of("s3://bucket")
    names = names_of(place)
    assert names == [b"a", b"a", b"empty"]
    sentence = (
        r"lists `s3://bucket/a` twice, because it also holds that name with a slash before or behind it"
    )
    with pytest.raises(ConfigurationError, match=sentence):
        refuse_overlap([place], ((place.address, name) for name in names))


@pytest.mark.invariant("An object that no client can ask for is a rejected record that says so.")
def test_an_object_with_a_slash_at_an_end_of_its_name_is_rejected_for_it(bucket: BucketServer) -> None:
    bucket.objects = {"/lead.jsonl": RECORD, "b.jsonl/": RECORD, "b.jsonl/c.jsonl": RECORD, "d.jsonl": RECORD}
    rows = WorkOnly().jsonl("s3://bucket")
    assert sorted(row["key"] for row in rows if row["reason"] is None) == ["b.jsonl/c.jsonl:1", "d.jsonl:1"]
    refusals = {row["file"]: (row["reason"], row["detail"]) for row in rows if row["reason"] is not None}
    lead, behind = refusals.pop("lead.jsonl"), refusals.pop("b.jsonl")
    assert not refusals
    assert lead[0] == behind[0] == "unreadable"
    assert "its name begins with a slash, as others in this bucket, which cannot be asked for" in lead[1]
    assert "its name ends with a slash, which cannot be asked for; rename it." in behind[1]


@pytest.mark.parametrize(
    "status, code, sentence",
    [
        (400, "ExpiredToken", r"refuses the keys for `s3://bucket` \(ExpiredToken\)\. Correct or renew AWS_"),
        (403, "InvalidAccessKeyId", r"refuses the keys for `s3://bucket` \(InvalidAccessKeyId\)"),
        (404, "NoSuchBucket", r"There is no bucket `s3://bucket`\. Correct its name\."),
        (301, "PermanentRedirect", r"`s3://bucket` is in another region\. Set AWS_REGION to its own\."),
    ],
)
@pytest.mark.parametrize("n_requests", [2, 3, 4])  # of a listing, and of the state and a part of a file
def test_a_store_that_refuses_after_the_listing_ends_the_run(
    bucket: BucketServer, status: int, code: str, sentence: str, n_requests: int
) -> None:
    bucket.objects = {f"{number}.jsonl": RECORD * 10_000 for number in range(9)}
    bucket.refusals[n_requests] = (status, code)
    with pytest.raises(ConfigurationError, match=sentence) as refusal:
        WorkOnly().jsonl("s3://bucket")
    assert "hush" not in str(refusal.value)
    assert len(bucket.requests) >= n_requests


@pytest.mark.parametrize("heeds_conditions", [True, False])
def test_an_object_that_changes_while_it_is_read_is_rejected(
    bucket: BucketServer, heeds_conditions: bool
) -> None:
    bucket.objects, bucket.heeds_conditions = {"a": b"1" * 300_000}, heeds_conditions

    def read_in_two_halves() -> None:
        with place_of("s3://bucket").open(b"a") as file:
            file.read(10)
            bucket.objects["a"] = b"2" * 300_000
            file.read()

    with pytest.raises(BadRecord, match="changed while it was read"):
        read_in_two_halves()


@pytest.mark.invariant("A remote file that is gone since it was listed is one rejected record, and no other.")
def test_one_of_a_thousand_files_that_is_gone_is_one_rejected_record(bucket: BucketServer) -> None:
    bucket.objects = {f"{number:03}.jsonl": RECORD for number in range(1_000)}
    bucket.ghost = "999.jsonl"
    rows = WorkOnly().jsonl("s3://bucket")
    assert sorted(row["key"] for row in rows if row["reason"] is None) == [
        f"{n:03}.jsonl:1" for n in range(999)
    ]
    [rejection] = [row for row in rows if row["reason"] is not None]
    assert (rejection["file"], rejection["reason"]) == ("999.jsonl", "vanished")
    assert rejection["detail"] == "The file was listed, but it is not there."


def test_a_listing_of_100_000_names_is_complete_and_takes_the_memory_of_a_page(bucket: BucketServer) -> None:
    bucket.objects = {f"{number // 1_000:02}/{number:05}.jsonl": b"1" for number in range(100_000)}
    walk = place_of("s3://bucket").walk(lambda _: True)
    tracemalloc.start()
    try:
        assert all(name == key.encode() for name, key in zip(walk, bucket.objects, strict=True))
        _, most_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most_bytes < 8 << 20  # the server's page of 1,000 names is in it
    assert len(bucket.requests) == 100
