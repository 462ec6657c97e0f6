"""Files of a bucket on a real server of S3."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import obstore
import pytest
from obstore.store import S3Store

from factory.errors import ConfigurationError
from factory.ingest.state import differences, listing
from spark_udfs.ingest.address import place_of
from spark_udfs.ingest.place import Place
from spark_udfs.ingest.remote.files import objects_at
from spark_udfs.ingest.remote.objects import RemoteFailure
from spark_udfs.ingest.rows import BadRecord
from tests.engines.processes import ObjectStore
from tests.ingest.remote.conftest import upload
from tests.ingest.test_place import FILES, INGESTS, WorkOnly

pytestmark = pytest.mark.process


@pytest.fixture
def bucket(store: ObjectStore, request: pytest.FixtureRequest) -> Iterator[str]:
    objects_at.cache_clear()
    yield store.bucket(f"b{abs(hash(request.node.name))}")
    objects_at.cache_clear()


def objects(bucket: str) -> S3Store:
    return S3Store(bucket.removeprefix("s3://"), region="us-east-1", client_options={"allow_http": True})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with files of every reader, with names that a bucket can have."""
    folder = tmp_path_factory.mktemp("remote") / "corpus"
    files: dict[str, bytes] = {"repositories/one/a.py": b"a = 1\n", "repositories/loose.py": b"b = 2\n"}
    for format, by_name in FILES.items():
        files |= {f"{format}/{name}": content for name, content in by_name.items() if name.isascii()}
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


@pytest.mark.invariant("Files in a bucket give the rows of the same files in a folder.")
def test_every_reader_gives_the_rows_of_the_disk(bucket: str, folder: Path) -> None:
    upload(folder, f"{bucket}/corpus")
    remote, local = place_of(f"{bucket}/corpus"), place_of(folder)
    for read in INGESTS.values():
        rows, rows_of_disk = (sorted(map(str, read(WorkOnly(), place))) for place in (remote, local))
        assert rows == rows_of_disk
        assert rows


def test_a_bucket_is_listed_without_marks_of_folders(store: ObjectStore, bucket: str) -> None:
    odd = "é/ü ?%.txt"
    files = {"b/c.txt": b"1", "b-2.txt": b"22", "a.txt": b"", odd: b"4"}
    store.bucket(f"{bucket.removeprefix('s3://')}/b")  # marks the folder by an object `b/`
    for name, content in files.items():
        obstore.put(objects(bucket), name, content)
    place = place_of(bucket)
    names = list(place.walk(lambda _: True))
    assert sorted(names) == sorted(name.encode() for name in files)
    assert [*place.walk(lambda folder: folder != b"b/")] == [name for name in names if name != b"b/c.txt"]
    assert (place.kind(b"b"), place.kind(b"b-"), place.kind(b"b-2.txt")) == ("folder", None, "file")
    with place.open(odd.encode()) as file:
        assert file.read() == b"4"


def test_changes_are_seen_without_reading(bucket: str) -> None:
    store = objects(bucket)
    obstore.put(store, "x/a.txt", b"1")
    obstore.put(store, "x/b.txt", b"2")
    before = listing([f"{bucket}/x"])
    obstore.put(store, "x/b.txt", b"3")
    obstore.put(store, "x/c.txt", b"4")
    obstore.delete(store, "x/a.txt")
    assert differences(before, listing([f"{bucket}/x"])) == ["+1 c.txt", "-1 a.txt", "1 changed: b.txt"]


def test_an_object_that_changes_while_it_is_read_is_rejected(bucket: str) -> None:
    def read_in_two_halves() -> None:
        with place_of(bucket).open(b"a.txt") as file:
            file.read(10)
            obstore.put(objects(bucket), "a.txt", b"1" * 300_000)
            file.read()

    obstore.put(objects(bucket), "a.txt", bytes(300_000))
    with pytest.raises(BadRecord, match="changed while it was read"):
        read_in_two_halves()


ASKS: list[Callable[[Place], object]] = [
    lambda place: place.kind(),
    lambda place: place.kind(b"a"),
    lambda place: place.children(),
    lambda place: list(place.walk(lambda _: True)),
    lambda place: list(place.states()),
]


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize("ask", ASKS)
def test_a_bucket_that_is_not_there_is_one_sentence(ask: Callable[[Place], object]) -> None:
    with pytest.raises(ConfigurationError, match=r"There is no bucket `s3://nowhere`\. Correct its name\."):
        ask(place_of("s3://nowhere"))


@pytest.mark.parametrize("variable", ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"])
@pytest.mark.parametrize("ask", ASKS)
def test_wrong_keys_are_one_sentence_that_repeats_none(
    bucket: str, variable: str, ask: Callable[[Place], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "hush-hush")
    with pytest.raises(ConfigurationError, match="The store refuses the keys for `s3://") as refusal:
        ask(place_of(bucket))
    assert "hush" not in str(refusal.value)


def test_a_store_that_is_away_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    objects_at.cache_clear()
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    with pytest.raises(RemoteFailure, match="The store of `s3://b` does not answer"):
        place_of("s3://b/a").kind()


def test_missing_keys_are_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    objects_at.cache_clear()
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_NAME", raising=False)
    with pytest.raises(
        ConfigurationError, match=r"There are no keys for `az://b`.* AZURE_SKIP_SIGNATURE=true"
    ):
        place_of("az://b/a").kind()


@pytest.mark.parametrize("is_own", [True, False])
def test_the_store_of_the_warehouse_is_asked_unless_aws_has_another(
    bucket: str, is_own: bool, store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    obstore.put(objects(bucket), "a.txt", b"text")
    for name in ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("FACTORY_S3_ENDPOINT", store.endpoint if is_own else "http://127.0.0.1:9")
    monkeypatch.setenv("FACTORY_S3_ACCESS_KEY_ID", store.key_id)
    monkeypatch.setenv("FACTORY_S3_SECRET_ACCESS_KEY", store.secret if is_own else "hush-hush")
    if not is_own:
        monkeypatch.setenv("AWS_ENDPOINT_URL", store.endpoint)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", store.key_id)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", store.secret)
    assert place_of(bucket).head(b"a.txt", 99) == b"text"


def test_sentences_name_the_settings_of_the_store_that_was_asked(
    bucket: str, store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("FACTORY_S3_ENDPOINT", store.endpoint)
    monkeypatch.setenv("FACTORY_S3_ACCESS_KEY_ID", store.key_id)
    monkeypatch.setenv("FACTORY_S3_SECRET_ACCESS_KEY", store.secret)
    with pytest.raises(ConfigurationError, match=f"no bucket `s3://nowhere` at {store.endpoint}\\. Correct"):
        place_of("s3://nowhere").kind()
    monkeypatch.setenv("FACTORY_S3_SECRET_ACCESS_KEY", "hush-hush")
    objects_at.cache_clear()
    with pytest.raises(ConfigurationError, match="Correct or renew FACTORY_S3_ACCESS_KEY_ID and FACTORY_S3_"):
        place_of(bucket).kind()
