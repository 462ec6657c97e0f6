"""A warehouse in a real S3-compatible store: tables, blends, batches, refusals, doctor and bootstrap."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlparse

import obstore
import pyarrow as pa
import pytest
from obstore.exceptions import AlreadyExistsError
from typer.testing import CliRunner, Result

from blender.catalog.blends import open_blends
from blender.errors import BlendNotFound, StoreUnavailable
from blender.records import Source
from blender.trainer.client import BlenderClient
from factory.cli import main, root
from factory.cli.serving import blender_process
from factory.errors import ConfigurationError, FactoryError, MachineError
from factory.lake.catalog import spark_properties, spark_secrets
from factory.lake.files.fetch import LocatedTexts
from factory.lake.files.storage import STORAGE
from factory.lake.names import raw
from factory.lake.servers import create_bucket, probe_conditional_put, probe_store
from factory.lake.store import object_store as opened
from factory.lake.tables import Lake
from factory.settings import CATALOG_NAME, Settings
from tests.blender.lakes import packed_rows, write_table
from tests.engines.processes import ObjectStore
from tests.ports import free_ports

pytestmark = pytest.mark.process

STEPS = 7


def on_store(store: ObjectStore, home: Path, bucket: str) -> Settings:
    """A lake whose warehouse is a folder of a bucket."""
    return Settings(
        home=home,
        warehouse=f"s3://{bucket}/some/folder",
        s3_endpoint=store.endpoint,
        s3_access_key_id=store.key_id,
        s3_secret_access_key=store.secret,
    )


@pytest.fixture
def bucket(object_store: ObjectStore, unique: str) -> str:
    """A new bucket."""
    return urlparse(object_store.bucket(unique)).netloc


@pytest.fixture
def lake(object_store: ObjectStore, bucket: str, tmp_path: Path) -> Settings:
    """An empty lake in a bucket of its own."""
    return on_store(object_store, tmp_path / "lake", bucket)


def filled(settings: Settings) -> Settings:
    """The lake with two packed tables."""
    write_table(settings, "packed.code", packed_rows("code", 40))
    write_table(settings, "packed.prose", packed_rows("prose", 150))
    return settings


SOURCES = [
    Source(table="packed.code", weight=2, oversample=True),
    Source(table="packed.prose", weight=3),
]


def test_a_blend_has_the_id_and_the_batches_it_has_on_a_local_disk(lake: Settings, tmp_path: Path) -> None:
    local = filled(Settings(home=tmp_path / "local"))
    found = []
    for settings in (filled(lake), local):
        blend = open_blends(settings).create(SOURCES, seed=5)
        with blender_process(settings) as address, BlenderClient(address) as blender:
            steps = [batch.arrow.to_pylist() for batch in blender.fetch(blend.id, offset=0, steps=STEPS)]
        found.append((blend.id, steps))
    assert found[0] == found[1]
    assert len(found[0][1]) == STEPS
    names = [entry["path"] for entry in obstore.list(opened(lake)).collect()]
    assert f"blends/{found[0][0]}.json" in names
    assert any(name.startswith("packed/code/data/") and name.endswith(".parquet") for name in names)
    assert not (lake.files.warehouse).exists()


def test_a_blend_reads_pages_of_the_bucket_until_its_store_is_away(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, unique: str
) -> None:
    store = ObjectStore(tmp_path_factory.mktemp("store"))  # of its own, because it is ended
    try:
        away = on_store(store, tmp_path / "away", urlparse(store.bucket(unique)).netloc)
        opened, steps = [], []
        for settings in (away, Settings(home=tmp_path / "local")):
            write_table(settings, "packed.prose", packed_rows("prose", 150), row_group=16)
            blends = open_blends(settings)
            source = Source(table="packed.prose", weight=4, shuffle="row")
            opened.append(blends.open(blends.create([source], seed=3).id))
            steps.append([opened[-1].step(number).to_pylist() for number in range(5)])
        assert steps[0] == steps[1]
        readers = [blend.sources[0].reader for blend in opened]
        assert readers[0].paths[0].startswith(f"s3://{unique}/some/folder/packed/prose/data/")
        read = [reader.column("tokens").groups[0].index.read_so_far for reader in readers]
        assert read[0] == read[1] > (0, 0)  # as many pages and bytes, of the same pages
        assert not (away.files.warehouse).exists()
    finally:
        store.stop()
    with pytest.raises(
        StoreUnavailable, match=r"packed\.prose at snapshot \d+: the store of its files does not answer"
    ):
        opened[0].step(7)
    assert opened[1].step(7).num_rows == 4


def test_workers_read_texts_of_the_bucket_with_what_spark_knows_of_it(lake: Settings) -> None:
    texts = [f"text {number}" for number in range(100)]
    write_table(lake, "raw.web", pa.table({"text": texts}))
    (task,) = Lake(lake).table(raw("web")).scan().plan_files()
    conf = spark_properties(lake) | spark_secrets(lake)
    storage = {name: conf[f"spark.sql.catalog.{CATALOG_NAME}.{name}"] for name in STORAGE}
    read = LocatedTexts(storage).read(task.file.file_path, [3, 70, 99])
    assert [text for part in read for text in part["text"].to_pylist()] == ["text 3", "text 70", "text 99"]


def test_blends_are_listed_and_retired_in_the_bucket(lake: Settings) -> None:
    blends = open_blends(filled(lake))
    first, second = blends.create(SOURCES, seed=1), blends.create(SOURCES, seed=2)
    blends.retire(first.id)
    assert [stored_blend.id for stored_blend in open_blends(lake).list()] == [second.id]
    with pytest.raises(BlendNotFound):
        open_blends(lake).get("0" * 32)


def test_of_many_who_create_one_object_one_wins(lake: Settings) -> None:
    store = opened(lake)

    def create(number: int) -> bool:
        try:
            obstore.put(store, "blends/once", str(number).encode(), mode="create")
        except AlreadyExistsError:
            return False
        return True

    with ThreadPoolExecutor(16) as pool:
        won = list(pool.map(create, range(32)))
    assert won.count(True) == 1
    assert obstore.get(store, "blends/once").bytes().to_bytes() == str(won.index(True)).encode()


def test_the_same_blend_created_by_many_at_once_is_one_blend(lake: Settings) -> None:
    filled(lake)
    with ThreadPoolExecutor(6) as pool:
        ids = set(pool.map(lambda _: open_blends(lake).create(SOURCES, seed=9).id, range(6)))
    assert len(ids) == 1
    assert [stored_blend.id for stored_blend in open_blends(lake).list()] == list(ids)


@pytest.mark.parametrize(
    "wrong, kind, words",
    [
        ({"s3_secret_access_key": "hush"}, ConfigurationError, "SignatureDoesNotMatch"),
        ({"s3_access_key_id": "nobody"}, ConfigurationError, "InvalidAccessKeyId"),
        ({"warehouse": "s3://nowhere"}, ConfigurationError, "has no bucket nowhere"),
        ({"s3_endpoint": "http://127.0.0.1:PORT"}, MachineError, "Connection refused"),
        ({"s3_endpoint": "http://nowhere.invalid"}, MachineError, "Name or service not known"),
    ],
    ids=["secret", "key", "bucket", "port", "host"],
)
def test_a_store_that_refuses_or_is_away_is_one_sentence_and_an_exit_code(
    lake: Settings,
    monkeypatch: pytest.MonkeyPatch,
    wrong: dict[str, str],
    kind: type[FactoryError],
    words: str,
) -> None:
    given = {name: value.replace("PORT", str(free_ports(1)[0])) for name, value in wrong.items()}
    settings = lake.model_copy(update=given)
    with pytest.raises(kind, match=words) as raised:
        probe_store(settings)
    assert "FACTORY_" in str(raised.value)
    assert len(str(raised.value).splitlines()) == 1
    monkeypatch.setattr(root, "lake_settings", lambda: settings)
    result = factory("bootstrap")
    if "warehouse" not in wrong:  # a missing bucket it makes
        assert result.exit_code == kind.exit_code
        assert words in result.stderr
    assert "Traceback" not in result.output
    assert "hush" not in result.output


def factory(*arguments: str) -> Result:
    return CliRunner().invoke(main.app, list(arguments))


def test_bootstrap_makes_the_bucket_once_and_doctor_finds_everything(
    object_store: ObjectStore, tmp_path: Path, unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = on_store(object_store, tmp_path, unique)
    monkeypatch.setattr(root, "lake_settings", lambda: settings)
    monkeypatch.setenv("DAGSTER_HOME", "")
    doctor = factory("doctor")
    assert doctor.exit_code == MachineError.exit_code
    assert f"has no bucket {unique}" in doctor.stdout
    assert "bucket made, create-only puts hold" in factory("bootstrap").stdout
    assert "bucket there, create-only puts hold" in factory("bootstrap").stdout
    assert f"bucket {unique} at {object_store.endpoint}" in factory("doctor").stdout
    assert not create_bucket(settings)


class Overwriting(BaseHTTPRequestHandler):
    """A store that takes every put, as those without conditional writes do."""

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("ETag", '"1"')
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_POST(self) -> None:
        """Delete the one object that is named."""
        key = self.rfile.read(int(self.headers["Content-Length"])).split(b"Key>")[1].removesuffix(b"</")
        answer = b"<DeleteResult><Deleted><Key>%s</Key></Deleted></DeleteResult>" % key
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_arguments: object) -> None:
        """Say nothing."""


@pytest.fixture
def overwriting() -> Iterator[str]:
    """The address of a store that overwrites."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Overwriting)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_a_store_that_overwrites_what_it_must_keep_is_told(lake: Settings, overwriting: str) -> None:
    with pytest.raises(MachineError, match="overwrites what a create-only put must keep"):
        probe_conditional_put(lake.model_copy(update={"s3_endpoint": overwriting}))
