"""Parquet files that stay where they lie: the same table to every reader, and never touched."""

from __future__ import annotations

import os
import random
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession

from factory.cli.clean import clean
from factory.errors import DamagedFile, SourceChanged
from factory.explain.named_state import named_state
from factory.explain.tables import sample
from factory.ingest.readers import Fields, Ingested
from factory.lake.files.stream import stream
from factory.lake.names import deduplicated, raw, registered
from factory.lake.place import take_claim
from factory.lake.schemas.dedup import DEDUPLICATED
from factory.lake.schemas.ingest import RAW, REJECTED
from factory.lake.tables import Lake
from factory.lake_spark.documents import kept_documents, located, map_texts
from factory.lake_spark.read import read_at
from factory.orchestration.host.partitions import RANGE_FIRST, RANGE_LAST
from factory.orchestration.host.resources import resources
from factory.orchestration.keys import table_of
from factory.orchestration.table import progress
from factory.orchestration.table.declaration import Tables
from factory.orchestration.table.table_asset import table_asset
from factory.settings import Settings

pytestmark = pytest.mark.spark

CARD = """---
license: cc-by-4.0
language: [en]
pretty_name: Small Talk
---
# A card
"""


def hashes(row: int) -> str:
    """A text that does not compress, the same for the same row."""
    return random.Random(row).randbytes(400).hex()


def write_hub(folder: Path) -> None:
    """Write a dataset in the layout of the Hugging Face Hub: a card, two files of train, one of test."""
    (folder / "data").mkdir(parents=True)
    (folder / "README.md").write_text(CARD)
    for name, first, n in (
        ("train-00000-of-00002", 0, 50),
        ("train-00001-of-00002", 50, 30),
        ("test-00000-of-00001", 80, 10),
    ):
        rows = range(first, first + n)
        table = pa.table(
            {
                "id": [f"id{row % 85}" for row in rows],  # the last five repeat the first five
                "text": [
                    None if row == 7 else "" if row == 8 else f"\ufeffText {row}, é. {hashes(row)}"
                    for row in rows
                ],
                "about": [{"words": row} for row in rows],
            }
        )
        pq.write_table(table, folder / "data" / f"{name}.parquet", row_group_size=16)


@pytest.fixture
def hub(tmp_path: Path) -> Path:
    write_hub(tmp_path / "hub")
    return tmp_path / "hub"


def dataset(name: str, read: Callable[[Any], Ingested | Tables]) -> dg.AssetsDefinition:
    @table_asset(
        namespace="raw", name=name, asset_group="test", schema=RAW, side_tables={"rejected": REJECTED}
    )
    def documents(context, ingests) -> Ingested:  # type: ignore[no-untyped-def]
        return read(ingests)  # type: ignore[return-value]

    return documents


def run(
    settings: Settings,
    *assets: dg.AssetsDefinition,
    selection: list[dg.AssetsDefinition] | None = None,
    tags: dict[str, str] | None = None,
) -> dg.ExecuteInProcessResult:
    return dg.materialize(
        list(assets),
        selection=selection,
        tags=tags,
        resources=resources(settings),
        raise_on_error=False,
        run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
    )


def materialize(
    settings: Settings, name: str, read: Callable[[Any], Ingested | Tables]
) -> dg.ExecuteInProcessResult:
    return run(settings, dataset(name, read))


def beside_spark(settings: Settings, folder: Path) -> Settings:
    """The same lake without the scratch of the Spark that runs here, which `clean` would remove."""
    home = folder / "home"
    home.mkdir()
    (home / "catalog.db").symlink_to(settings.files.catalog_database)
    beside = settings.model_copy(update={"home": home, "warehouse": settings.warehouse_uri})
    take_claim(beside, "of this test")  # Spark's lake needs none, since its warehouse is in its home
    return beside


def state(folder: Path) -> dict[str, tuple[bytes, int]]:
    """What the files below a folder hold and when they were written."""
    return {
        str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def content(settings: Settings, name: str) -> str:
    return Lake(settings).published(raw(name)).lineage.content


def texts(frame: DataFrame) -> dict[str, str]:
    return {row.key: row.text for row in frame.select("key", "text").collect()}


FIELDS = Fields(key="id", metadata=("about",))


@dataclass(frozen=True)
class Registered:
    """A dataset of the Hub whose files are registered, and which no test changes for good."""

    name: str
    hub: Path
    before: dict[str, tuple[bytes, int]]  # its files before they were registered
    documents: dg.AssetsDefinition


@pytest.fixture(scope="module")
def small_talk(
    spark: SparkSession, lake_settings: Settings, tmp_path_factory: pytest.TempPathFactory
) -> Registered:
    hub = tmp_path_factory.mktemp("registered") / "hub"
    write_hub(hub)
    before, documents = state(hub), dataset("small_talk", lambda ingests: ingests.parquet(hub, FIELDS))
    assert run(lake_settings, documents).success
    return Registered("small_talk", hub, before, documents)


@pytest.mark.invariant(
    "Every reader and the fingerprint treat a registered dataset like a rewritten one; dropping a table "
    "never deletes the user's files."
)
def test_a_registered_dataset_is_to_every_reader_what_a_rewritten_one_is(
    spark: SparkSession, lake_settings: Settings, small_talk: Registered
) -> None:
    name, hub = small_talk.name, small_talk.hub
    lake, rewritten = Lake(lake_settings), f"{name}_rewritten"

    def rewriting(ingests: Any) -> Tables:
        found = ingests.parquet(hub, FIELDS)
        return Tables(found.documents, {"rejected": found.rejected}, release=found.release)

    assert materialize(lake_settings, rewritten, rewriting).success
    assert content(lake_settings, name) == content(lake_settings, rewritten)
    assert lake.published(raw(name)).size_bytes < lake.published(raw(rewritten)).size_bytes

    # Spark, PyIceberg, the sample: all see the texts, and only the columns that are declared.
    snapshots = {of: lake.published(raw(of)).snapshot_id for of in (name, rewritten)}
    frames = {of: read_at(spark, raw(of), at) for of, at in snapshots.items()}
    assert frames[name].columns == frames[rewritten].columns == RAW.names
    expected = texts(frames[rewritten])
    assert texts(frames[name]) == expected
    assert len(expected) == 83
    assert expected["id9"] == f"Text 9, é. {hashes(9)}"
    read = lake.read(raw(name))
    assert sorted(read.column_names) == sorted(RAW.names)
    assert dict(zip(read["key"].to_pylist(), read["text"].to_pylist(), strict=True)) == expected
    assert lake.read(raw(name), ["key"], "key = 'id9'").to_pylist() == [{"key": "id9"}]
    assert lake.read(raw(name), ["text"], "key = 'id9'").to_pylist() == [{"text": expected["id9"]}]
    assert {
        row["key"]: row["text"] for row in sample(lake, named_state(lake, str(raw(name))), 5, 1)
    }.items() <= expected.items()
    for frame in frames.values():  # what stages do that read texts where they lie
        kept = kept_documents(located(frame, "text"), frame.selectExpr("doc_id", "true kept"))
        assert (
            texts(map_texts(kept.select("key", "file", "row"), iter, "key string, text string")) == expected
        )

    # The card and the names of the files.
    facts = frames[name].select("source", "license", "language", "metadata.split").distinct().collect()
    assert sorted(map(tuple, facts)) == [
        ("Small Talk", "cc-by-4.0", "en", split) for split in ("test", "train")
    ]

    # Every input is accounted for.
    reasons = frames[name].sparkSession.table(f"lake.{raw(name)}_rejected").collect()
    assert sorted((row.reason, row.location) for row in reasons) == [
        ("empty", "row 8"),
        ("key_taken", "row 0"),
        ("key_taken", "row 1"),
        ("key_taken", "row 2"),
        ("key_taken", "row 3"),
        ("key_taken", "row 4"),
        ("no_text", "row 7"),
    ]
    assert len(expected) + len(reasons) == 90

    # The registered table has the files as they are, and says where each text lies.
    table = lake.table(registered(name))
    assert table.properties["gc.enabled"] == "false"
    assert sorted(table.inspect.files()["file_path"].to_pylist()) == sorted(
        f"file://{path}" for path in hub.rglob("*.parquet")
    )
    places = spark.sql(
        f"SELECT r.key, f.text FROM lake.{raw(name)} r JOIN (SELECT *, _file, _pos FROM "
        f"lake.{registered(name)}) f ON r.text_at.file = f._file AND r.text_at.row = f._pos"
    )
    assert {row.key: row.text.removeprefix("\ufeff") for row in places.collect()} == expected
    assert state(hub) == small_talk.before


@pytest.mark.invariant(
    "Every reader and the fingerprint treat a registered dataset like a rewritten one; dropping a table "
    "never deletes the user's files."
)
def test_nobodys_files_are_deleted_whatever_happens_to_the_tables(
    spark: SparkSession, lake_settings: Settings, unique: str, hub: Path, tmp_path: Path
) -> None:
    before = state(hub)
    assert materialize(lake_settings, unique, lambda ingests: ingests.parquet(hub, FIELDS)).success
    clean(beside_spark(lake_settings, tmp_path))
    assert Lake(lake_settings).table(registered(unique)).scan().to_arrow().num_rows == 90
    with pytest.raises(Py4JJavaError, match="GC is disabled"):
        spark.sql(f"DROP TABLE lake.{registered(unique)} PURGE")
    spark.sql(f"DROP TABLE lake.{raw(unique)} PURGE")
    assert state(hub) == before

    # Other columns: the registered table is made again. No fit file: it goes.
    shutil.rmtree(hub / "data")
    pq.write_table(pa.table({"text": ["one"], "id": [1]}), hub / "a.parquet")
    again = state(hub)
    assert materialize(lake_settings, unique, lambda ingests: ingests.parquet(hub, FIELDS)).success
    assert Lake(lake_settings).table(registered(unique)).schema().column_names == ["text", "id"]
    (hub / "a.parquet").rename(hub / "a#b.parquet")
    assert materialize(lake_settings, unique, lambda ingests: ingests.parquet(hub, FIELDS)).success
    assert not Lake(lake_settings).exists(registered(unique))
    assert Lake(lake_settings).read(raw(unique), ["text"]).to_pylist() == [{"text": "one"}]
    assert {name.replace("#b", ""): of for name, of in state(hub).items()} == again


def test_a_run_that_ends_before_it_publishes_leaves_registered_tables(
    spark: SparkSession, lake_settings: Settings, unique: str, hub: Path
) -> None:
    lake, read = Lake(lake_settings), lambda ingests: ingests.parquet(hub / "data", FIELDS)
    assert materialize(lake_settings, unique, read).success
    before = (lake.published(raw(unique)).snapshot_id, lake.table(registered(unique)).current_snapshot())

    reached = []

    def crash(event: progress.Progress) -> None:
        if (event.asset, event.phase) == (str(raw(unique)), "publishing"):
            reached.append(lake.table(registered(unique)).current_snapshot())
            raise RuntimeError("between the rejected records and the documents")

    (hub / "data" / "test-00000-of-00001.parquet").unlink()
    with progress.listening(crash):
        assert not materialize(lake_settings, unique, read).success
    now = (lake.published(raw(unique)).snapshot_id, lake.table(registered(unique)).current_snapshot())
    assert now == before
    assert reached[0] == before[1]


def test_a_partition_of_registrable_files_is_rewritten_and_says_so(
    lake_settings: Settings, unique: str, hub: Path
) -> None:
    parts = dg.StaticPartitionsDefinition(["test", "train"])

    @table_asset(
        namespace="raw",
        name=unique,
        asset_group="test",
        schema=RAW,
        side_tables={"rejected": REJECTED},
        partitions_def=parts,
    )
    def documents(context, ingests, partition: str) -> Ingested:  # type: ignore[no-untyped-def]
        return ingests.parquet(sorted((hub / "data").glob(f"{partition}-*")), FIELDS, source=partition)  # type: ignore[no-any-return]

    span = {RANGE_FIRST: "test", RANGE_LAST: "train"}
    result = run(lake_settings, documents, tags=span)
    assert result.success
    lake = Lake(lake_settings)
    rows = lake.read(raw(unique), ["key", "text", "partition"]).to_pylist()
    assert {row["text"] for row in rows if row["key"] == "id9"} == {f"Text 9, é. {hashes(9)}"}
    assert {row["partition"] for row in rows} == {"test", "train"}
    assert not lake.exists(registered(unique))
    made = [
        event.step_materialization_data.materialization for event in result.get_asset_materialization_events()
    ]
    said = next(it.metadata for it in made if table_of(it.asset_key).name == unique)
    assert said["rewritten files"].value == 3
    assert said["why rewritten"].value == "files of a partitioned table are not registered"
    assert "registered files" not in said


def test_a_registered_file_that_is_not_what_it_was_is_told_in_one_sentence(
    lake_settings: Settings, small_talk: Registered
) -> None:
    name, documents = small_talk.name, small_talk.documents
    path = small_talk.hub / "data" / "test-00000-of-00001.parquet"
    modified_ns = path.stat().st_mtime_ns
    os.utime(path, ns=(0, modified_ns + 1))
    said = (
        f"The file {path} changed since its rows were registered .*\\. Put it back as it was, or materialize"
    )
    lake = Lake(lake_settings)
    with pytest.raises(SourceChanged, match=said):
        lake.read(raw(name))
    assert lake.read(raw(name), ["key"]).num_rows == 83  # who asks for no text needs no file

    @table_asset(
        namespace="deduplicated",
        name=name,
        asset_group="test",
        schema=DEDUPLICATED,
        upstream={"documents": raw(name)},
    )
    def kept(documents: DataFrame) -> DataFrame:
        return documents

    failed = run(lake_settings, documents, kept, selection=[kept])
    [failure] = [event for event in failed.all_events if event.is_step_failure]
    assert re.match(said, str(failure.step_failure_data.user_failure_data.description))  # type: ignore[union-attr]
    os.utime(path, ns=(0, modified_ns))
    assert run(lake_settings, documents, kept, selection=[kept]).success
    path.rename(path.with_suffix(".away"))
    assert lake.read(deduplicated(name), ["text"]).num_rows == 83  # it has texts of its own
    path.with_suffix(".away").rename(path)


@pytest.mark.invariant(
    "A text of a registered file is served only if it has the hash that its raw table holds, even if size"
    " and time of the file are as they were."
)
def test_a_flipped_bit_in_a_registered_text_is_named_by_every_reader(
    spark: SparkSession, lake_settings: Settings, unique: str, tmp_path: Path
) -> None:
    file = tmp_path / "own" / "a.parquet"
    file.parent.mkdir()
    texts = [f"The text of row {row}. {hashes(row)}" for row in range(40)]
    # As most writers leave it: no checksums of pages. Without compression nothing else notices a flipped bit.
    pq.write_table(pa.table({"text": texts}), file, compression="none", use_dictionary=False)

    @table_asset(
        namespace="deduplicated",
        name=unique,
        asset_group="test",
        schema=DEDUPLICATED,
        upstream={"documents": raw(unique)},
    )
    def kept(documents: DataFrame) -> DataFrame:
        return documents

    documents = dataset(unique, lambda ingests: ingests.parquet(file.parent))
    assert run(lake_settings, documents, kept).success
    lake = Lake(lake_settings)
    expected = lake.read(deduplicated(unique), ["key", "text"]).sort_by("key")
    modified_ns = file.stat().st_mtime_ns
    file.write_bytes(file.read_bytes().replace(b"row 23.", b"row 22."))
    os.utime(file, ns=(modified_ns, modified_ns))

    named = f"The text in row 23, column `text`, of the registered file {file} is not the one"
    with pytest.raises(DamagedFile, match=named):
        lake.read(raw(unique), ["text"])
    with pytest.raises(DamagedFile, match=named):
        sample(lake, named_state(lake, str(raw(unique))), 40, seed=1)
    at = lake.published(raw(unique)).snapshot_id
    with pytest.raises(DamagedFile, match=named):  # as an export reads it
        list(stream(lake.table(raw(unique)), at, pa.schema([RAW.columns.field("text")])))
    with pytest.raises(PythonException, match=named):
        read_at(spark, raw(unique), at).select("text").collect()
    rows = located(read_at(spark, raw(unique), at), "text").select("doc_id", "file", "row")
    with pytest.raises(PythonException, match=named):
        map_texts(rows, iter, "doc_id string, text string").collect()
    failed = run(lake_settings, documents, kept, selection=[kept])
    [failure] = [event for event in failed.all_events if event.is_step_failure]
    assert str(failure.step_failure_data.user_failure_data.description).startswith(named)  # type: ignore[union-attr]
    assert lake.read(raw(unique), ["key"]).num_rows == 40  # who asks for no text needs no file
    assert lake.read(deduplicated(unique), ["key", "text"]).sort_by("key") == expected


def test_unregistrable_files_are_rewritten_and_the_reason_is_given(
    spark: SparkSession, lake_settings: Settings, unique: str, tmp_path: Path
) -> None:
    good = pa.table({"text": ["one", "two"]})
    pq.write_table(good, tmp_path / "a.parquet")
    pq.write_table(good.append_column("more", pa.array([1, 2])), tmp_path / "b.parquet")
    pq.write_table(good, tmp_path / "c%20d.parquet")
    (tmp_path / "e.parquet").write_bytes((tmp_path / "a.parquet").read_bytes()[:-4])
    result = materialize(lake_settings, unique, lambda ingests: ingests.parquet(tmp_path))
    assert result.success
    made = [
        event.step_materialization_data.materialization for event in result.get_asset_materialization_events()
    ]
    [said] = [it.metadata for it in made if table_of(it.asset_key).name == unique]
    assert (said["registered files"].value, said["rewritten files"].value) == (1, 3)
    why = str(said["why rewritten"].value)
    assert "b.parquet: its columns are not those of the first file" in why
    assert "c%20d.parquet: its path holds one of `#?%`" in why
    assert "e.parquet: Iceberg cannot take it as it is" in why
    lake = Lake(lake_settings)
    rows = lake.read(raw(unique), ["key", "text"]).to_pylist()
    assert sorted((row["key"], row["text"]) for row in rows) == [
        (f"{name}.parquet:{row}", text)
        for name in ("a", "b", "c%20d")
        for row, text in enumerate(("one", "two"))
    ]
    assert lake.read(raw(f"{unique}_rejected"), ["key", "reason"]).to_pylist() == [
        {"key": "e.parquet", "reason": "corrupt"}
    ]
