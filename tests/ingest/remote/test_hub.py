"""Files of a dataset on a server with the interface of the Hub."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pyarrow as pa
import pytest
from huggingface_hub import constants

from factory.errors import ConfigurationError
from factory.ingest.hugging_face import card_of
from factory.ingest.items import files_of
from factory.ingest.listing import as_table
from factory.ingest.parts import in_parts
from factory.ingest.state import listing
from factory.lake.tables import Lake
from factory.orchestration.host.resources import resources
from factory.settings import Settings
from jobs.watched import Watched
from spark_udfs.ingest.address import place_of
from spark_udfs.ingest.records import Fields
from spark_udfs.ingest.remote import objects as remote_objects
from spark_udfs.ingest.remote.files import objects_at
from spark_udfs.ingest.remote.objects import RemoteFailure
from spark_udfs.ingest.rows import Origin
from spark_udfs.ingest.work import read_work
from tests.ingest.remote.web_server import COMMIT, WebServer, serving_files
from tests.jobs.chain import table
from tests.jobs.test_sensors import ticks

PUSHED = COMMIT[::-1]
ADDRESS = "hf://datasets/owner/name"
FILES = {
    "README.md": b"---\nlicense: mit\n---\n",
    "data/train-00000.jsonl": b'{"text": "one"}\n',
    "data/deep/a b.jsonl": b'{"text": "two"}\n',
}


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[WebServer]:
    objects_at.cache_clear()
    with serving_files(FILES) as server:
        monkeypatch.setattr(constants, "ENDPOINT", server.address)  # the library reads HF_ENDPOINT once
        monkeypatch.setenv("HF_TOKEN", server.token)
        yield server
    objects_at.cache_clear()


@pytest.mark.usefixtures("hub")
@pytest.mark.parametrize("revision", ["", "@main", f"@{COMMIT}"])
def test_a_dataset_is_a_folder(revision: str) -> None:
    place = place_of(f"hf://datasets/owner/name{revision}/")
    assert (place.kind(), place.name) == ("folder", "name")
    assert list(place.walk(lambda _: True)) == [name.encode() for name in FILES]
    assert list(place.walk(lambda folder: folder != b"data/deep/")) == [
        b"README.md",
        b"data/train-00000.jsonl",
    ]
    assert place.children() == [b"README.md", b"data"]
    assert [*place.below(b"data").walk(lambda _: True, deep=False)] == [b"train-00000.jsonl"]
    for name, content in FILES.items():
        assert place.kind(name.encode()) == "file"
        with place.open(name.encode()) as file:
            assert file.read() == content
    assert place.kind(b"gone") is None
    card = card_of(place)
    assert card is not None
    assert card.license == "mit"


@pytest.mark.usefixtures("hub")
@pytest.mark.parametrize("below", ["", "/data", "/data/*.jsonl", "/data/train-00000.jsonl"])
def test_a_large_file_of_a_dataset_is_read_in_parts(below: str) -> None:
    address = f"hf://datasets/owner/name{below}"
    work = list(in_parts(files_of("jsonl", address, Origin("")), listing([address], 5).large, 5))
    texts = ["one", "two"] if below in ("", "/data") else ["one"]
    assert len(work) > 3 * len(texts)
    assert sorted(texts_of(as_table(work))) == texts


def test_parts_of_a_dataset_are_of_the_commit_that_was_listed(hub: WebServer) -> None:
    work = as_table(in_parts(files_of("jsonl", ADDRESS, Origin("")), listing([ADDRESS], 5).large, 5))
    objects_at.cache_clear()  # as another process
    hub.push(PUSHED, {})
    hub.requests.clear()
    assert sorted(texts_of(work)) == ["one", "two"]
    assert {path.split("/")[5] for path in hub.requests if "/resolve/" in path} == {COMMIT}


def test_a_file_that_became_empty_since_it_was_listed_has_one_part(hub: WebServer) -> None:
    states = listing([ADDRESS], 5).large
    hub.files = dict.fromkeys(FILES, b"")
    work = list(in_parts(files_of("jsonl", ADDRESS, Origin("")), states, 5))
    assert [files.part for files in work] == [None, None]


def test_a_dataset_on_a_server_without_ranges_is_read_whole(hub: WebServer) -> None:
    with serving_files(FILES) as host:
        hub.content_host = f"{host.address}/rangeless"
        work = list(in_parts(files_of("jsonl", ADDRESS, Origin("")), listing([ADDRESS], 5).large, 5))
        assert [files.part for files in work] == [None, None]
        assert sorted(texts_of(as_table(work))) == ["one", "two"]


def texts_of(work: pa.Table) -> list[str]:
    """The texts of files or their parts, none of which has a rejected record."""
    batches = read_work(work.to_batches(), Fields())
    rows = [row for batch in batches for row in batch.to_pylist() if row["doc_id"]]
    assert {row["reason"] for row in rows} == {None}
    return [row["text"] for row in rows]


@pytest.mark.invariant("A worker reads the commit of a dataset that was listed, also after a push.")
@pytest.mark.parametrize("pattern", ["", "/**/*.jsonl"])
def test_a_worker_reads_the_commit_that_was_listed(hub: WebServer, pattern: str) -> None:
    work = as_table(files_of("jsonl", f"hf://datasets/owner/name@main{pattern}", Origin("")))
    objects_at.cache_clear()  # as another process
    hub.push(PUSHED, {})
    hub.requests.clear()
    rows = [row for batch in read_work(work.to_batches(), Fields()) for row in batch.to_pylist()]
    assert {row["text"] for row in rows} == {"one", "two"}
    assert {path.split("/")[5] for path in hub.requests if "/resolve/" in path} == {COMMIT}


@pytest.mark.invariant("A run reads one commit of a branch; the next run and the next tick see a push.")
def test_a_run_reads_one_commit_and_the_next_run_another(hub: WebServer, tmp_path: Path) -> None:
    lake = {"lake": resources(Settings(home=tmp_path))["lake"]}

    def names() -> list[bytes]:
        return [name for name, _ in place_of("hf://datasets/owner/name/data").states()]

    with dg.build_resources(lake):
        before = names()
        hub.push(PUSHED, {**FILES, "data/new.jsonl": b"{}"})
        assert names() == before
    with dg.build_resources(lake):
        assert sorted(names()) == sorted([*before, b"new.jsonl"])


def test_a_tick_of_the_sensor_sees_a_push(hub: WebServer, tmp_path: Path) -> None:
    dataset = Watched("hub", (place_of("hf://datasets/owner/name@main"),))
    tick = ticks(
        dg.DagsterInstance.ephemeral(), dataset, table("raw.hub"), lake=Lake(Settings(home=tmp_path))
    )
    assert [len(tick()) for _ in range(3)] == [0, 1, 0]
    hub.push(PUSHED, {**FILES, "data/new.jsonl": b"{}"})
    assert [len(tick()) for _ in range(3)] == [0, 1, 0]


@pytest.mark.usefixtures("hub")
@pytest.mark.parametrize(
    "address, sentence",
    [
        ("hf://datasets/owner/other", "has no dataset `owner/other`, or HF_TOKEN gives no access to it"),
        ("hf://datasets/owner/name@v9", "`hf://datasets/owner/name@v9` names a revision that"),
        ("hf://owner/name", "`hf://owner/name` names no dataset. Write `hf://datasets/OWNER/NAME`"),
    ],
)
def test_a_dataset_that_is_not_there_is_one_sentence(address: str, sentence: str) -> None:
    with pytest.raises(ConfigurationError, match=sentence):
        place_of(address).kind()


def test_a_wrong_token_is_one_sentence(hub: WebServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "another")
    with pytest.raises(ConfigurationError, match="HF_TOKEN gives no access") as refusal:
        place_of("hf://datasets/owner/name").kind()
    assert "another" not in str(refusal.value)


FAULTS = {
    "locked": r"refuses access to `.*` \(status 401\)\. Set or renew HF_TOKEN",
    "circle": "redirects in a circle",
    "endless": "does not tell the length",
    "short": "breaks off at byte 0 of 16",
    "http://127.0.0.1:9": "does not answer",
    "http://[": "does not answer",
    "ftp://127.0.0.1": "leads to no web server",
}


@pytest.mark.invariant("A signed address that the Hub redirects to gets no token and is in no sentence.")
@pytest.mark.parametrize("fault", ["whole", *FAULTS])
def test_a_signed_address_is_secret(hub: WebServer, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_objects, "_FIRST_PAUSE_S", 0.0)
    place, name = place_of("hf://datasets/owner/name"), "data/train-00000.jsonl"
    with serving_files(FILES) as host:
        hub.content_host = fault if ":" in fault else f"{host.address}/{fault}"
        if fault == "whole":
            assert place.head(name.encode(), 99) == FILES[name]
        else:
            with pytest.raises((ConfigurationError, RemoteFailure), match=FAULTS[fault]) as refusal:
                place.head(name.encode(), 99)
            assert "hush" not in str(refusal.value)
        assert not host.credentials
