"""Assets declared with `@table_asset`, materialized by Dagster on a real lake."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from factory.errors import ConfigurationError
from factory.lake.files.checksums import sums_file
from factory.lake.names import TableName
from factory.lake.schemas.dedup import COMPONENTS
from factory.lake.tables import Lake
from factory.orchestration.table import progress
from factory.orchestration.table.checks import alarm, holds, layout, remark, remarks
from factory.orchestration.table.declaration import Tables
from factory.orchestration.table.table_asset import source_function, table_asset
from factory.settings import Settings
from tests.orchestration.runs import COLUMNS, component_table, failure, run, violations


def source(name: str, rows: list[tuple[str, str]], **options: Any) -> dg.AssetsDefinition:
    @component_table(name=name, **options)
    def made(context, pyspark) -> DataFrame:  # type: ignore[no-untyped-def]
        return pyspark.spark_session.createDataFrame(rows, COLUMNS)

    return made


def upper(name: str, upstream: str, version: str = "", **options: Any) -> dg.AssetsDefinition:
    upstreams = {"rows": TableName("dedup", upstream)}

    @component_table(name=name, upstream=upstreams, config={"version": version}, **options)
    def made(context, rows: DataFrame) -> DataFrame:  # type: ignore[no-untyped-def]
        return rows.selectExpr("upper(doc_id) doc_id", "component")

    return made


def ids(settings: Settings, name: str) -> list[str]:
    return sorted(Lake(settings).read(TableName("dedup", name), ["doc_id"])["doc_id"].to_pylist())


@pytest.mark.spark
def test_an_asset_is_published_with_its_lineage(
    spark: SparkSession, lake_settings: Settings, unique: str
) -> None:
    result = run(lake_settings, source(unique, [("a", "1"), ("b", "1")]))
    assert result.success
    published = Lake(lake_settings).published(TableName("dedup", unique))
    assert ids(lake_settings, unique) == ["a", "b"]
    assert published.lineage.run_id == result.run_id
    assert published.lineage.asset == f"dedup.{unique}"
    assert published.lineage.content.endswith("-2")
    (event,) = result.asset_materializations_for_node(f"dedup__{unique}")
    assert event.metadata["dagster/row_count"].value == 2


@pytest.mark.invariant(
    "A damaged table is one sentence in `tables`, `clean` and `doctor`, and affects no other table. A run"
    " that replaces all its rows recreates it, without its earlier snapshots."
)
@pytest.mark.spark
@pytest.mark.parametrize("pattern", [pytest.param("*.metadata.json", marks=pytest.mark.slow), "*-m0.avro"])
def test_a_damaged_table_stops_no_other_and_is_made_again(
    spark: SparkSession, lake_settings: Settings, unique: str, pattern: str
) -> None:
    good, bad = source(f"{unique}_good", [("a", "1")]), source(unique, [("b", "1")])
    assert run(lake_settings, good, bad).success
    folder = lake_settings.files.warehouse / "dedup" / unique
    file = max(folder.rglob(pattern))
    file.write_bytes(file.read_bytes()[:-100])
    reads_it = upper(f"{unique}_up", unique)
    result = run(lake_settings, reads_it, bad, selection=[f"dedup.{unique}_up"])
    assert file.name in failure(result)
    assert run(lake_settings, good).success
    assert run(lake_settings, bad).success
    assert ids(lake_settings, unique) == ["b"]


@pytest.mark.invariant(
    "The search for the damaged file of a table accuses no whole file: only what pyarrow cannot read is "
    "damage, and a reader's failure that no file explains is called a failure of the machine. Only a "
    "failure of Spark to read Parquet starts the search, and a search that fails leaves Spark's own error"
    " in place."
)
@pytest.mark.spark
@pytest.mark.parametrize("part", ["header", pytest.param("value", marks=pytest.mark.slow)])
def test_the_damaged_data_file_is_named_where_spark_names_none(
    spark: SparkSession, lake_settings: Settings, unique: str, part: str
) -> None:
    rows = [(f"{number}", "1") for number in range(8)]
    made = source(unique, rows)
    assert run(lake_settings, made).success
    files = sorted((lake_settings.files.warehouse / "dedup" / unique).rglob("*.parquet"))
    assert len(files) > 1
    for file in files:  # as in a copy without checksum files
        Path(sums_file(str(file))).unlink()
    chunk = pq.read_metadata(files[-1]).row_group(0).column(0)
    begin = chunk.dictionary_page_offset or chunk.data_page_offset
    at = begin if part == "header" else begin + chunk.total_compressed_size - 1
    content = files[-1].read_bytes()
    files[-1].write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
    failed = run(lake_settings, made, upper(f"{unique}_up", unique), selection=[f"dedup.{unique}_up"])
    sentence = failure(failed)
    assert [file for file in files if file.name in sentence] == [files[-1]]
    assert f"Table dedup.{unique} is damaged" in sentence


@pytest.mark.spark
def test_a_branch_that_cannot_be_dropped_does_not_hide_why_its_rows_failed(
    spark: SparkSession, lake_settings: Settings, unique: str
) -> None:
    folder = lake_settings.files.warehouse / "dedup" / f"{unique}_up"

    def fail_after_damage(_: str) -> str:
        max(folder.rglob("*.metadata.json")).write_text("{}")
        raise ValueError("the rows failed")

    @component_table(name=f"{unique}_up", upstream={"rows": TableName("dedup", unique)})
    def failing(rows: DataFrame) -> DataFrame:
        return rows.select(F.udf(fail_after_damage)("doc_id").alias("doc_id"), "component")

    assert "the rows failed" in failure(run(lake_settings, source(unique, [("a", "1")]), failing))


@pytest.mark.invariant("A failing check leaves main untouched, and nothing downstream runs.")
@pytest.mark.spark
def test_a_failing_check_leaves_main_untouched_and_downstream_alone(
    spark: SparkSession, lake_settings: Settings, unique: str
) -> None:
    run(lake_settings, source(unique, [("good", "1")]), upper(f"{unique}_up", unique))
    before = Lake(lake_settings).published(TableName("dedup", unique)).snapshot_id
    result = run(
        lake_settings,
        source(
            unique, [("wrong", "1"), ("wrong", "2")], checks=[holds("short", "length(doc_id) < 3", "doc_id")]
        ),
        upper(f"{unique}_up", unique),
    )
    assert not result.success
    assert Lake(lake_settings).published(TableName("dedup", unique)).snapshot_id == before
    assert ids(lake_settings, f"{unique}_up") == ["GOOD"]
    assert not result.get_asset_materialization_events()
    assert violations(result) == {"unique_doc_id": 1, "short": 2}
    refs = Lake(lake_settings).table(TableName("dedup", unique)).metadata.refs
    assert [name for name in refs if name.startswith("failed_")]
    assert not [name for name in refs if name.startswith("audit_")]


@pytest.mark.spark
def test_an_alarm_warns_again_whenever_its_table_is_reused(
    spark: SparkSession, lake_settings: Settings, unique: str
) -> None:
    few = alarm("few", "int(count(1) > 1)", "There is one row at most.", "doc_id")
    odd = layout("odd", lambda table, at: [f"{table.name()} at {at} is odd"], "No file is odd.")
    down = upper(f"{unique}_up", unique, checks=[few, odd])
    for reuse in (False, True):
        result = run(lake_settings, source(unique, [("a", "1"), ("b", "1")]), down, reuse=reuse)
        assert result.success
        assert ids(lake_settings, f"{unique}_up") == ["A", "B"]
        warned = {
            get_asset_check_evaluation.check_name: get_asset_check_evaluation
            for get_asset_check_evaluation in result.get_asset_check_evaluations()
            if not get_asset_check_evaluation.passed
        }
        assert list(warned) == ["few", "odd"]
        for check in warned.values():
            assert check.severity == dg.AssetCheckSeverity.WARN
            assert check.metadata["violations"].value == 1
            assert ("reused" in check.metadata) is reuse
        assert str(warned["odd"].metadata["found"].value).endswith(" is odd")


@pytest.mark.spark
def test_a_remark_is_said_again_whenever_its_table_is_reused(
    spark: SparkSession, lake_settings: Settings, unique: str
) -> None:
    checks = [remark("counted", "Every row counts."), remark("quiet", "Nothing to say.")]

    @component_table(name=unique, upstream={"rows": TableName("dedup", f"{unique}_raw")}, checks=checks)
    def made(context, rows: DataFrame) -> Tables:  # type: ignore[no-untyped-def]
        return Tables(rows, said=remarks({"counted": 'Two rows of "a" do not.', "quiet": ""}))

    for reuse in (False, True):
        result = run(lake_settings, source(f"{unique}_raw", [("a", "1")]), made, reuse=reuse)
        assert result.success
        (warned,) = [check for check in result.get_asset_check_evaluations() if not check.passed]
        assert (warned.check_name, warned.severity) == ("counted", dg.AssetCheckSeverity.WARN)
        assert warned.metadata["found"].value == 'Two rows of "a" do not.'
        assert ("reused" in warned.metadata) is reuse


@pytest.mark.invariant("A run reads an upstream table at one snapshot and records it.")
@pytest.mark.spark
def test_an_upstream_is_read_at_one_snapshot_and_recorded(
    spark: SparkSession, lake_settings: Settings, unique: str
) -> None:
    result = run(lake_settings, source(unique, [("a", "1")]), upper(f"{unique}_up", unique))
    assert result.success
    lake = Lake(lake_settings)
    upstream = lake.published(TableName("dedup", unique))
    assert lake.published(TableName("dedup", f"{unique}_up")).lineage.upstream == {
        f"dedup.{unique}": upstream.snapshot_id
    }
    (event,) = result.asset_materializations_for_node(f"dedup__{unique}_up")
    shown = event.metadata["upstream snapshots"].value
    assert shown == {f"dedup.{unique}": str(upstream.snapshot_id)}  # a browser would round a number


@pytest.mark.invariant("A table is reused until code, configuration or upstream content change.")
@pytest.mark.spark
def test_a_table_is_reused_until_code_config_or_upstream_content_change(
    spark: SparkSession, lake_settings: Settings, unique: str
) -> None:
    down = TableName("dedup", f"{unique}_up")
    lake = Lake(lake_settings)

    def snapshot(rows: list[tuple[str, str]], version: str = "") -> int:
        assert run(lake_settings, source(unique, rows), upper(down.name, unique, version), reuse=True).success
        return lake.published(down).snapshot_id

    first = snapshot([("a", "1")])
    assert snapshot([("a", "1")]) == first  # the source was read again and gave the same rows
    changed = snapshot([("b", "1")])
    assert changed != first
    assert ids(lake_settings, down.name) == ["B"]
    assert snapshot([("b", "1")], version="2") != changed


@pytest.mark.spark
def test_a_table_is_made_again_after_each_append_by_another_writer(
    spark: SparkSession, lake_settings: Settings, unique: str
) -> None:
    lake, name = Lake(lake_settings), TableName("dedup", unique)
    assert run(lake_settings, source(unique, [("a", "1")]), upper(f"{unique}_up", unique)).success
    for appended, expected in (("b", ["A", "B"]), ("c", ["A", "B", "C"])):
        rows = pa.Table.from_pylist([{"doc_id": appended, "component": "1"}], schema=COMPONENTS.columns)
        lake.table(name).append(rows)  # leaves no lineage, so no content fingerprint to compare
        definitions = [source(unique, []), upper(f"{unique}_up", unique)]
        assert run(lake_settings, *definitions, reuse=True, selection=[f"dedup.{unique}_up"]).success
        assert ids(lake_settings, f"{unique}_up") == expected


@pytest.mark.spark
def test_tables_written_beside_are_published_with_the_main_one(
    spark: SparkSession, lake_settings: Settings, unique: str
) -> None:
    released: list[bool] = []

    @component_table(name=unique, side_tables={"twice": COMPONENTS})
    def made(context, pyspark) -> Tables:  # type: ignore[no-untyped-def]
        frame = pyspark.spark_session.createDataFrame([("a", "1")], COLUMNS)
        return Tables(
            frame,
            {"twice": lambda rows: rows.selectExpr("concat(doc_id, doc_id) doc_id", "component")},
            properties={"factory.token-bytes": "2"},
            release=lambda: released.append(True),
        )

    assert run(lake_settings, made).success
    assert ids(lake_settings, f"{unique}_twice") == ["aa"]
    table = Lake(lake_settings).table(TableName("dedup", unique))
    assert table.properties["factory.token-bytes"] == "2"
    assert table.current_snapshot().summary["factory.token-bytes"] == "2"
    assert released == [True]


@pytest.mark.spark
def test_an_asset_that_raises_leaves_no_branch_and_releases_what_it_held(
    spark: SparkSession, lake_settings: Settings, unique: str
) -> None:
    released: list[bool] = []

    @component_table(name=unique)
    def made(context, pyspark) -> Tables:  # type: ignore[no-untyped-def]
        frame = pyspark.spark_session.sql("SELECT raise_error('spoiled') doc_id, '1' component")
        return Tables(frame, release=lambda: released.append(True))

    assert not run(lake_settings, made).success
    assert list(Lake(lake_settings).table(TableName("dedup", unique)).metadata.refs) == []
    assert released == [True]


def test_a_check_on_an_undeclared_column_is_refused_at_decoration(unique: str) -> None:
    with pytest.raises(ConfigurationError, match="`absent`"):
        source(unique, [], checks=[holds("present", "absent > 1", "absent")])


def test_an_unknown_keyword_is_refused_at_decoration(unique: str) -> None:
    with pytest.raises(TypeError, match="shema"):
        source(unique, [], shema=COMPONENTS)


def test_a_namespace_outside_the_law_is_refused_at_decoration() -> None:
    with pytest.raises(ConfigurationError, match="Unknown namespace `row`"):
        table_asset(namespace="row", name="x", asset_group="test", schema=COMPONENTS)(lambda context: None)


def test_the_undecorated_function_stays_reachable(unique: str) -> None:
    asset = source(unique, [("a", "1")])
    assert source_function(asset).__name__ == "made"


@pytest.mark.spark
def test_a_frozen_table_stands_until_its_input_has_grown(
    spark: SparkSession, lake_settings: Settings, unique: str
) -> None:
    given: list[list[str] | None] = []

    def rows(n: int, reuse: bool = True) -> list[str]:
        @component_table(name=f"{unique}_frozen", upstream={"rows": TableName("dedup", unique)}, growth=2)
        def frozen(previous: DataFrame | None, rows: DataFrame) -> DataFrame:
            given.append(previous and sorted(row.doc_id for row in previous.collect()))
            return rows.select("doc_id", "component")

        made = source(unique, [(str(number), "1") for number in range(n)])
        assert run(lake_settings, made, frozen, reuse=reuse).success
        return ids(lake_settings, f"{unique}_frozen")

    assert rows(2) == ["0", "1"]
    assert rows(3) == ["0", "1"]
    assert rows(4) == ["0", "1", "2", "3"]
    assert rows(2) == ["0", "1"]
    assert rows(3, reuse=False) == ["0", "1", "2"]
    assert given == [None, ["0", "1"], ["0", "1", "2", "3"], None]


@pytest.mark.invariant(
    "A trained tokenizer stays until its configuration changes, or a run selects it without its input."
)
@pytest.mark.spark
def test_a_lasting_table_stays_until_a_run_selects_it_without_its_input(
    spark: SparkSession, lake_settings: Settings, unique: str
) -> None:
    name = f"{unique}_lasting"
    events: list[progress.Progress] = []

    def rows(letter: str, selection: list[str] | None = None, version: str = "") -> list[str]:
        lasting = upper(name, unique, version, lasting=True)
        events.clear()
        with progress.listening(events.append):
            assert run(lake_settings, source(unique, [(letter, "1")]), lasting, selection=selection).success
        return ids(lake_settings, name)

    assert rows("a") == ["A"]
    assert rows("b") == ["A"]
    changed = f"dedup.{unique} changed; `factory materialize dedup.{name}` makes it again"
    assert (events[-1].phase, events[-1].reason) == ("reused", changed)
    assert rows("b", [f"dedup.{name}"]) == ["B"]
    assert (events[-1].phase, events[-1].reason) == ("published", f"dedup.{unique} changed")
    assert rows("c", version="2") == ["C"]
    assert events[-1].reason == 'version "" -> 2'
