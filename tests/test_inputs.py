"""A datasets file over a bucket, the Hub and a web server gives the tables of the same files in a folder."""

from __future__ import annotations

import base64
import gzip
import json
import os
import re
import sqlite3
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from factory.settings import Settings
from tests.engines.processes import ObjectStore
from tests.ingest.remote.bucket_server import serving_objects
from tests.ingest.remote.conftest import upload
from tests.ingest.remote.web_server import WebServer, serving_files
from tests.killed_runs import contents

ROOT = Path(__file__).parents[1]
FACTORY = [sys.executable, "-c", "from factory.cli.entry import main; main()"]
DATASETS = """\
  - {{name: {group}_web, format: jsonl, paths: "{bucket}/web/**/*.jsonl", {fields}}}
  - {{name: {group}_hub, format: parquet, paths: "{hub}", {fields}}}
  - {{name: {group}_books, format: jsonl, paths: "{books}/b.jsonl.gz", {fields}}}
"""
FIELDS = (
    "group: {group}, kind: prose, text: text, key: id, rules: [word_count], limits: {{word_count: [1, 1000]}}"
)
FAILING = """\
datasets:
  - {name: bucket, kind: prose, format: jsonl, paths: "s3://bucket", text: text}
  - {name: hub, kind: prose, format: jsonl, paths: "hf://datasets/owner/name", text: text}
"""
BOOKS = """\
  - {{name: books, kind: prose, format: jsonl, paths: "{address}", text: text}}
"""

ZLIB = (b"x\x01", b"x\x5e", b"x\x9c", b"x\xda")

pytestmark = [pytest.mark.slow, pytest.mark.process, pytest.mark.long, pytest.mark.timeout(1_800)]


def write_corpus(folder: Path) -> None:
    from pydoc_data.topics import topics

    words = re.findall(r"\S+", " ".join(topics[name] for name in sorted(topics)))
    texts = [" ".join(words[60 * n : 60 * n + 60]) for n in range(300)]
    rows = [{"id": number, "text": text} for number, text in enumerate(texts)]
    lines = [json.dumps(row) for row in rows]
    for name, part in (("web/a.jsonl", lines[:60]), ("web/deep/b.jsonl", lines[60:120])):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("\n".join([*part, "no json", ""]))
    (folder / "web" / "left.txt").write_text("no records")
    (folder / "name" / "data").mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows[120:220]), folder / "name" / "data" / "train.parquet")
    (folder / "name" / "README.md").write_text("---\nlicense: mit\nlanguage: en\n---\n")
    (folder / "books").mkdir()
    (folder / "books" / "b.jsonl.gz").write_bytes(gzip.compress("\n".join(lines[220:]).encode()))


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    write_corpus(tmp_path / "corpus")
    return tmp_path / "corpus"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ObjectStore]:
    (tmp_path / "store").mkdir()
    server = ObjectStore(tmp_path / "store")
    yield server
    server.stop()


@pytest.fixture
def web(corpus: Path) -> Iterator[WebServer]:
    """The books as files of a server with a password, and the dataset `owner/name` of a Hub."""
    hub = corpus / "name"
    files = {path.relative_to(hub).as_posix(): path for path in hub.rglob("*") if path.is_file()}
    files["b.jsonl.gz"] = corpus / "books" / "b.jsonl.gz"
    with serving_files({name: path.read_bytes() for name, path in files.items()}) as server:
        yield server


def run(folder: Path, lake: str, environment: dict[str, str], *, kill: bool = False, status: int = 0) -> str:
    """Make all tables of `<lake>.yaml`, or kill the run once it has made one; return its output."""
    log = folder / f"{lake}.log"
    with log.open("ab") as output:
        process = subprocess.Popen(
            [*FACTORY, "materialize", "*", "--changed", "-f", f"{lake}.yaml"],
            cwd=folder,
            env=os.environ | environment | {"FACTORY_HOME": str(folder / lake), "PYTHONPATH": str(ROOT)},
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    while kill and process.poll() is None and "made " not in log.read_text():
        time.sleep(0.1)
    if kill:
        os.killpg(process.pid, 9)
    assert process.wait() == (-9 if kill else status), log.read_text()
    return log.read_text()


@pytest.mark.invariant("Remote files give the tables of the same files in a folder; no secret is written.")
def test_remote_files_give_the_tables_of_a_folder(
    tmp_path: Path, corpus: Path, store: ObjectStore, web: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = {
        "FACTORY_CACHE": str(Settings().cache),
        "AWS_ENDPOINT_URL": store.endpoint,
        "AWS_ACCESS_KEY_ID": store.key_id,
        "AWS_SECRET_ACCESS_KEY": store.secret,
        "HF_ENDPOINT": web.address,
        "HF_TOKEN": web.token,
        "NETRC": str(tmp_path / "netrc"),
    }
    (tmp_path / "netrc").write_text(f"machine 127.0.0.1 login reader password {web.password}\n")
    with monkeypatch.context() as keys:
        for name, text in environment.items():
            keys.setenv(name, text)
        upload(corpus / "web", f"{store.bucket('corpus')}/web")
    places = {
        "remote": ("s3://corpus", "hf://datasets/owner/name@main", f"{web.address}/locked"),
        "local": (str(corpus), str(corpus / "name"), str(corpus / "books")),
    }
    datasets = [
        DATASETS.format(group=group, bucket=bucket, hub=hub, books=books, fields=FIELDS.format(group=group))
        for group, (bucket, hub, books) in places.items()
    ]
    (tmp_path / "lake.yaml").write_text("".join(["datasets:\n", *datasets]))
    run(tmp_path, "lake", environment, kill=True)
    run(tmp_path, "lake", environment)
    tables = {group: contents_of_group(tmp_path / "lake", group) for group in places}
    tables["local"].pop("registered.hub")  # the Parquet file stays, if it is on the storage of the lake
    assert tables["remote"] == tables["local"]
    assert {"packed.web", "packed.hub", "packed.books"} <= tables["remote"].keys()
    n_requests = sum(web.requests.values())
    assert "0 tables made" in run(tmp_path, "lake", environment)
    assert sum(web.requests.values()) - n_requests < 20  # states, and no text
    assert written_secrets(tmp_path / "lake", store.secret, web.password, web.token) == []
    assert store.secret not in (tmp_path / "lake.log").read_text()
    assert "hush" not in (tmp_path / "lake.log").read_text()


def contents_of_group(home: Path, group: str) -> dict[str, str]:
    """Return the content of each table of the datasets of a group, by its name without the group's."""
    tables = {
        name: content for name, content in contents(Settings(home=home)).items() if f".{group}_" in name
    }
    return {
        name.replace(f"{group}_", ""): content
        for name, content in tables.items()
        if not name.startswith("dedup.")  # its rows name the datasets
    }


def written_secrets(folder: Path, *secrets: str) -> list[Path]:
    """Return the files below a folder that hold a secret, also in compressed columns and database cells."""
    files = [Path(top) / name for top, _, names in os.walk(folder) for name in names]
    assert any(path.suffix == ".db" for path in files)
    return [path for path in files if any(map(contents_of(path).__contains__, map(str.encode, secrets)))]


def contents_of(path: Path) -> bytes:
    """Return the bytes of a file, with the text that a Parquet file or a database compresses."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:  # scratch of a JVM that is still ending
        return b""
    if path.suffix == ".parquet":
        content += repr(pq.ParquetFile(path).read().to_pylist()).encode()
    if content.startswith(b"SQLite format"):
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
            for (table,) in database.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table'"
            ).fetchall():
                for row in database.execute(f'SELECT * FROM "{table}"'):
                    blobs = [cell for cell in row if isinstance(cell, bytes) and cell.startswith(ZLIB)]
                    content += b"".join([repr(row).encode(), *map(zlib.decompress, blobs)])
    return content


@pytest.mark.invariant("No secret is written when a store, a server or the Hub refuses.")
def test_refused_keys_are_written_nowhere(tmp_path: Path) -> None:
    lines = b'{"text": "a record"}\n' * 9
    with (
        serving_objects({"a.jsonl": lines}) as bucket,
        serving_files({"a.jsonl": lines}) as web,
        serving_files({"a.jsonl": lines}) as host,
    ):
        bucket.refused_content = (400, "ExpiredToken")  # the listing answers, so a worker meets it
        web.content_host = f"{host.address}/locked"  # where a signature of the Hub is refused
        environment = {
            "FACTORY_CACHE": str(Settings().cache),
            "AWS_ENDPOINT_URL": bucket.endpoint,
            "AWS_ACCESS_KEY_ID": "hush-id",
            "AWS_SECRET_ACCESS_KEY": "hush-secret",
            "AWS_SESSION_TOKEN": "hush-session",
            "HF_ENDPOINT": web.address,
            "HF_TOKEN": web.token,
            "NETRC": str(tmp_path / "netrc"),
        }
        (tmp_path / "netrc").write_text("machine 127.0.0.1 login reader password hush-wrong\n")
        (tmp_path / "lake.yaml").write_text(FAILING)
        output = run(tmp_path, "lake", environment, status=2)
        assert re.search(
            r"The store refuses the keys for `s3://bucket` \(ExpiredToken\)\. Correct or renew AWS_", output
        )
        assert re.search(r"refuses access to `.*/a.jsonl` \(status 401\)\. Set or renew HF_TOKEN", output)
        for address, sentence in (
            (f"{web.address}/locked/a.jsonl", "Give the name and password of its server in ~/.netrc"),
            ("https://a.example/a.jsonl?X-Amz-Signature=hush-signature", "holds a password or a signature"),
            ("https://me:hush@a.example/a.jsonl", "holds a password or a signature"),
        ):
            (tmp_path / "lake.yaml").write_text(f"{FAILING}{BOOKS.format(address=address)}")
            assert sentence in run(tmp_path, "lake", environment, status=2)
    words = [base64.b64encode(b"reader:hush-wrong").decode(), "hush"]
    assert written_secrets(tmp_path / "lake", *words) == []
    for log in tmp_path.glob("*.log"):
        assert not any(word in log.read_text() for word in words), log.read_text()
