"""Parquet objects in the store of the warehouse stay as they are, and give the tables of rewritten files."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from pydoc_data.topics import topics

import obstore
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from obstore.store import ObjectStore as Bucket

from factory.errors import SourceChanged
from factory.lake.names import TableName, raw, registered
from factory.lake.store import bucket_store
from factory.lake.tables import Lake
from factory.settings import Settings
from tests.engines.processes import ObjectStore

ROOT = Path(__file__).parents[2]
FACTORY = [sys.executable, "-c", "from factory.cli.entry import main; main()"]
DATASET = """\
  - {{name: {name}, group: {name}, kind: prose, format: parquet, paths: "{path}", text: text, key: id,
      rules: [word_count], limits: {{word_count: [1, 100000]}}}}
"""

pytestmark = [pytest.mark.process, pytest.mark.long, pytest.mark.timeout(900)]


def write_corpus(folder: Path) -> None:
    words = re.findall(r"\S+", " ".join(topics[name] for name in sorted(topics)))
    rows = [{"id": n, "text": " ".join(words[60 * n : 60 * n + 60])} for n in range(300)]
    folder.mkdir()
    for name, part in (("a b.parquet", rows[:150]), ("c.parquet", rows[150:])):
        pq.write_table(pa.Table.from_pylist(part), folder / name, row_group_size=50)


def run(settings: Settings, folder: Path, paths: Mapping[str, str], *arguments: str) -> None:
    """Run a command with datasets at `paths`, by name."""
    datasets = [DATASET.format(name=name, path=path) for name, path in paths.items()]
    (folder / "d.yaml").write_text("".join(["datasets:\n", *datasets]))
    process = subprocess.run(
        [*FACTORY, *arguments],
        cwd=folder,
        env=os.environ | settings.environment() | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stdout + process.stderr


def states(bucket: Bucket) -> list[tuple[str, str | None]]:
    return sorted((entry["path"], entry["e_tag"]) for page in obstore.list(bucket) for entry in page)


@pytest.mark.invariant(
    "Every reader and the fingerprint treat a registered dataset like a rewritten one; dropping a table "
    "never deletes the user's files."
)
def test_objects_that_stay_give_the_tables_of_files_that_are_rewritten(
    object_store: ObjectStore, tmp_path: Path, unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    write_corpus(tmp_path / "web")
    object_store.bucket(f"{unique}-lake")
    keys = {
        "s3_endpoint": object_store.endpoint,
        "s3_access_key_id": object_store.key_id,
        "s3_secret_access_key": object_store.secret,
        "cache": Settings().cache,
    }
    settings = Settings(home=tmp_path / "home", warehouse=f"s3://{unique}-lake/w", **keys)
    bucket = bucket_store(settings, object_store.bucket(unique).removeprefix("s3://"))
    for file in (tmp_path / "web").iterdir():
        obstore.put(bucket, f"web/{file.name}", file)
    before = states(bucket)

    both = {"web": f"s3://{unique}/web", "copy": str(tmp_path / "web")}
    run(settings, tmp_path, both, "materialize", "*", "--changed", "-f", "d.yaml")
    run(settings, tmp_path, both, "clean")
    lake = Lake(settings)
    for namespace in ("raw", "deduplicated", "packed"):
        in_place, rewritten = (lake.published(TableName(namespace, name)).lineage.content for name in both)
        assert in_place == rewritten
    assert not lake.exists(registered("copy"))
    files = lake.table(registered("web")).inspect.files()["file_path"].to_pylist()
    assert sorted(files) == [f"s3://{unique}/web/{name}" for name in ("a b.parquet", "c.parquet")]
    assert lake.table(registered("web")).properties["gc.enabled"] == "false"
    texts, texts_of_copy = (
        dict(zip(*lake.read(raw(name), ["key", "text"]).to_pydict().values(), strict=True)) for name in both
    )
    assert texts == texts_of_copy

    run(settings, tmp_path, {"web": f"s3://{unique}/none"}, "doctor")
    assert states(bucket) == before
    obstore.put(bucket, "web/c.parquet", obstore.get(bucket, "web/a b.parquet").bytes())
    with pytest.raises(SourceChanged, match=f"The file s3://{unique}/web/c.parquet changed since its rows"):
        lake.read(raw("web"), ["text"])
    changed_object = {"web": f"s3://{unique}/web/c.parquet"}
    run(settings, tmp_path, changed_object, "materialize", "raw.web", "--changed", "-f", "d.yaml")
    assert lake.read(raw("web"), ["text"]).num_rows == 150
