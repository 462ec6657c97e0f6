"""A source that loses nearly all of its input fails; one that loses some says how much."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import dagster as dg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from rich.console import Console

from factory.cli.runs import RunReport, _drawn
from factory.errors import ConfigurationError
from factory.ingest.readers import Fields, Ingested, Ingests
from factory.ingest.state import state
from factory.lake.names import raw, rejected
from factory.lake.tables import Lake
from factory.orchestration.chain.ingest import source
from factory.orchestration.datasets.assets import corpus
from factory.orchestration.table import progress
from factory.orchestration.table.rejections import Rejections, n_rejected, require_rows
from factory.orchestration.table.table_asset import declaration_of
from factory.settings import Settings
from tests.orchestration.runs import failure, run

SHARES = [
    (Rejections(10), 0.0, None),
    (Rejections(0), 0.0, None),  # no input at all, which is told where files are listed
    (Rejections(0, {"no_text": 3}), 1.0, "no row is a document (3 rejected)"),
    (Rejections(0, {"empty": 3}), 1.0, "no row is a document (3 rejected)"),
    (Rejections(5, {"no_text": 5}), 0.5, None),
    (
        Rejections(4, {"no_text": 4, "not_json": 2}),
        0.5,
        "6 of 10 rows are rejected (60.0%, and `max_rejected` allows 50.0%)",
    ),
    (Rejections(1, {"empty": 99}), 0.5, None),  # empty parts of a table lose nothing
    (Rejections(1, {"notebook": 3}), 0.0, None),  # a course of notebooks with one script
    (Rejections(1000, {"no_text": 1}, files=2, lost_files=1), 0.5, None),
    (
        Rejections(1000, {"no_text": 2}, files=3, lost_files=2),
        0.5,
        "2 of 3 files give no document (66.7%, and `max_rejected` allows 50.0%)",
    ),
    (
        Rejections(99, {"no_text": 1}),
        0.0,
        "1 of 100 rows are rejected (1.0%, and `max_rejected` allows 0.0%)",
    ),
]


@pytest.mark.parametrize("found, limit, said", SHARES)
def test_a_share_above_the_limit_is_told(found: Rejections, limit: float, said: str | None) -> None:
    assert found.excess(limit) == said


def test_a_frame_without_rows_is_refused_by_partition() -> None:
    counts: dict[str | None, Rejections] = {
        "de": Rejections(0, {"empty": 1}),
        "en": Rejections(2),
        "fr": Rejections(0),
    }
    require_rows(raw("books"), counts, ["de", "en"])
    with pytest.raises(ConfigurationError, match=r"The DataFrame of raw\.books of partition fr has no row"):
        require_rows(raw("books"), counts, ["de", "en", "fr"])


def materialize(
    settings: Settings, name: str, read: Callable[[Ingests], Ingested]
) -> dg.ExecuteInProcessResult:
    def documents(ingests: Ingests) -> Ingested:
        return read(ingests)

    return run(settings, source(name=name)(documents))


@pytest.mark.invariant(
    "A source that yields no document, or rejects more than its `max_rejected`, fails and publishes nothing."
)
@pytest.mark.spark
def test_a_source_without_a_document_fails_and_quotes_why(
    spark: SparkSession, lake_settings: Settings, unique: str, tmp_path: Path
) -> None:
    pq.write_table(pa.table({"id": [1], "text": ["x"]}), tmp_path / "art.parquet")
    result = materialize(lake_settings, unique, lambda it: it.parquet(tmp_path, Fields(text="body")))
    assert not result.success
    said = failure(result)
    assert said.startswith(
        f"In raw.{unique}, no row is a document (1 rejected). The most common reason is `no_text` (1), "
        "for example `art.parquet` at byte 0: The file has no column `body`, only id, text. Main is as it "
        f"was; the rows are in raw.{unique}.branch_failed_"
    )
    assert not Lake(lake_settings).table(raw(unique)).current_snapshot()


@pytest.mark.spark
def test_some_rejected_are_told_and_too_many_fail(
    spark: SparkSession, lake_settings: Settings, unique: str, tmp_path: Path
) -> None:
    for number in range(2):
        lines = [json.dumps({"text": f"{number} {n}"}) for n in range(4)]
        (tmp_path / f"{number}.jsonl").write_text("\n".join([*lines, "[]", ""]))
    (tmp_path / "2.jsonl").write_text("{}\n")
    told: list[progress.Progress] = []
    with progress.listening(told.append):
        result = materialize(lake_settings, unique, lambda it: it.jsonl(tmp_path))
    assert result.success
    for event in result.asset_materializations_for_node(f"raw__{unique}"):
        assert event.metadata["rejected"].value == 3
        assert event.metadata["files without a document"].value == 1
    assert (told[-1].phase, told[-1].rows, told[-1].rejected) == ("published", 8, 3)

    limited = materialize(lake_settings, unique, lambda it: it.jsonl(tmp_path).limited(0.3))
    assert failure(limited).startswith(
        f"In raw.{unique}, 1 of 3 files give no document (33.3%, and `max_rejected` allows 30.0%). The most "
        "common reason is `not_an_object` (2), for example `0.jsonl:5` at line 5: The line holds list, not "
        "an object."
    )
    published = Lake(lake_settings).published(raw(unique))
    assert published.rows == 8
    assert published.lineage.inputs == {"": state([tmp_path])}
    nothing = materialize(lake_settings, unique, lambda it: it.parquet(tmp_path))
    assert failure(nothing) == (
        f"raw.{unique} found no file to read. Correct its paths and patterns, or put files there."
    )


@pytest.mark.spark
def test_records_that_share_a_row_count_one_by_one(
    spark: SparkSession, lake_settings: Settings, unique: str, tmp_path: Path
) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "a"}\n' + "{}\n" * 3_000 + "\n" * 500)
    limited = materialize(lake_settings, unique, lambda it: it.jsonl(tmp_path))
    assert failure(limited).startswith(f"In raw.{unique}, 3,000 of 3,001 rows are rejected")

    def documents(ingests: Ingests) -> Ingested:
        return ingests.jsonl(tmp_path).limited(1)

    made, told = source(name=unique)(documents), list[progress.Progress]()
    with progress.listening(told.append):
        assert run(lake_settings, made).success
    assert (told[-1].phase, told[-1].rows, told[-1].rejected) == ("published", 1, 3_500)
    lake = Lake(lake_settings)
    assert lake.published(rejected(unique)).rows == 1_002
    assert n_rejected(lake, declaration_of(made).outputs) == 3_500  # what a run says that keeps the table


@pytest.mark.spark
def test_each_partition_is_held_to_the_limit(
    spark: SparkSession, lake_settings: Settings, unique: str, tmp_path: Path
) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "x"}\n' * 9 + "[]\n")
    (tmp_path / "b.jsonl").write_text("[]\n")

    @source(name=unique, partitions_def=dg.StaticPartitionsDefinition(["a", "b"]))
    def documents(ingests: Ingests, partition: str) -> Ingested:
        return ingests.jsonl(tmp_path / f"{partition}.jsonl")

    assert run(lake_settings, documents, span=("a", "a")).success
    assert failure(run(lake_settings, documents, span=("a", "b"))).startswith(
        f"In raw.{unique}, partition b, no row is a document (1 rejected). The most common reason is "
        "`not_an_object` (1), for example `b.jsonl:1` at line 1"
    )


def test_the_progress_of_a_run_says_how_many_records_were_rejected() -> None:
    console = Console(file=io.StringIO(), width=120)
    report = RunReport()
    with _drawn(console, 2, report):
        for asset, rejected in (("raw.a", 1234), ("raw.b", 0)):
            progress.emit(asset, "started")
            progress.emit(asset, "published", 10, rejected)
    first, second = [line for line in console.file.getvalue().splitlines() if line.startswith("made")]  # type: ignore[attr-defined]
    assert first.endswith(" s  1,234 rejected")
    assert "rejected" not in second
    assert report.rejected == {"raw.a": 1234}


def test_the_limit_is_a_field_of_a_dataset_and_a_share(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    text = "datasets:\n  - {name: a, kind: prose, format: files, paths: notes, max_rejected: %s}\n"
    (tmp_path / "my.yaml").write_text(text % "0.1")
    assert corpus(tmp_path / "my.yaml").datasets == ("a",)
    (tmp_path / "my.yaml").write_text(text % "10")
    with pytest.raises(ConfigurationError, match=r"line 2, datasets\[0\].max_rejected"):
        corpus(tmp_path / "my.yaml")
