"""Tables of users: declared with the public `table_asset`, made on a real lake, refused in one sentence."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from factory.api import source, table_asset
from factory.errors import ConfigurationError
from factory.ingest.readers import Ingested, Ingests
from factory.lake.names import TableName
from factory.lake.tables import Lake
from factory.orchestration.host.definitions import require_writers
from factory.orchestration.table.frame_columns import frame_columns
from factory.orchestration.table.table_asset import declaration_of
from factory.settings import Settings
from tests.orchestration.runs import failure, run

LEFT_OUT = "rejected records left out"
LANGUAGES = dg.StaticPartitionsDefinition(["de", "en"])


def own(name: str, *columns: Any, n: int = 2, **options: Any) -> dg.AssetsDefinition:
    """A table of `n` rows with the number `id` and further columns."""

    @table_asset(name=name, **options)
    def rows(pyspark: Any) -> DataFrame:
        frame: DataFrame = pyspark.spark_session.range(n).select("id", *columns)
        return frame

    return rows


def rows_of(settings: Settings, name: str, *columns: str) -> list[tuple[Any, ...]]:
    rows = Lake(settings).read(TableName("own", name), columns).to_pylist()
    return sorted((tuple(row[column] for column in columns) for row in rows), key=str)


@pytest.mark.spark
def test_the_example_makes_a_table_by_partition(
    spark: SparkSession, lake_settings: Settings, unique: str
) -> None:
    @table_asset(name=unique, group_name="nl", partitions_def=LANGUAGES)
    def example_asset(context, pyspark, ingests, partition) -> DataFrame:  # type: ignore[no-untyped-def]
        df = pyspark.spark_session.range(3).withColumn("language", F.lit(partition))
        return df.filter("id > 0")

    assert run(lake_settings, example_asset, partition_key="de").success
    assert run(lake_settings, example_asset, partition_key="en").success
    partitions = [(1, "de", "de"), (1, "en", "en"), (2, "de", "de"), (2, "en", "en")]
    assert rows_of(lake_settings, unique, "id", "language", "partition") == partitions
    assert {spec.group_name for spec in example_asset.specs} == {"nl"}
    table = Lake(lake_settings).table(TableName("own", unique))
    assert [field.name for field in table.spec().fields] == ["partition"]


@pytest.mark.invariant("A backfill of a user's table replaces the rows of its partitions and no others.")
@pytest.mark.spark
def test_a_backfill_replaces_its_own_partitions_and_no_others(
    spark: SparkSession, lake_settings: Settings, unique: str
) -> None:
    months = dg.StaticPartitionsDefinition([f"2026-0{month}" for month in range(1, 6)])

    def tables(version: int, *columns: Any) -> list[dg.AssetsDefinition]:
        @table_asset(name=unique, partitions_def=months, config={"version": version})
        def by_month(pyspark, partition) -> DataFrame:  # type: ignore[no-untyped-def]
            rows = pyspark.spark_session.range(int(partition[-1]))
            return rows.withColumn("version", F.lit(version)).select("*", *columns)

        @table_asset(name=f"{unique}_n", partitions_def=months, upstream={"rows": f"own.{unique}"})
        def numbers(rows: DataFrame) -> DataFrame:
            return rows.groupBy("version").count()

        return [by_month, numbers]

    def rows_by_month(name: str, *columns: str) -> dict[str, set[tuple[Any, ...]]]:
        months_of_rows: dict[str, set[tuple[Any, ...]]] = {}
        for month, *cells in rows_of(lake_settings, name, "partition", *columns):
            months_of_rows.setdefault(month, set()).add(tuple(cells))
        return months_of_rows

    def state_of(name: str) -> tuple[str, set[str]]:
        lake, table = Lake(lake_settings), TableName("own", name)
        files = lake.table(table).inspect.files()["file_path"].to_pylist()
        return lake.published(table).lineage.content, {path for path in files if "2026-03" in path}

    both = (unique, f"{unique}_n")
    assert run(lake_settings, *tables(1), span=("2026-01", "2026-03")).success
    assert rows_by_month(both[1], "version", "count") == {f"2026-0{n}": {(1, n)} for n in (1, 2, 3)}
    before = [state_of(name) for name in both]
    assert run(lake_settings, *tables(1), span=("2026-01", "2026-02")).success  # the same rows again
    assert [state_of(name) for name in both] == before
    assert run(lake_settings, *tables(2, F.lit("x").alias("word")), span=("2026-02", "2026-04")).success
    assert rows_by_month(both[1], "version", "count") == {
        "2026-01": {(1, 1)},
        **{f"2026-0{n}": {(2, n)} for n in (2, 3, 4)},
    }
    assert rows_by_month(unique, "id", "word")["2026-01"] == {(0, None)}
    assert rows_by_month(unique, "id", "word")["2026-04"] == {(number, "x") for number in range(4)}
    rerun = run(lake_settings, *tables(2, F.lit("x").alias("word")), span=("2026-01", "2026-04"), reuse=True)
    assert rerun.success
    assert rows_by_month(both[1], "version", "count") == {f"2026-0{n}": {(2, n)} for n in (1, 2, 3, 4)}


@pytest.mark.spark
def test_a_table_without_a_schema_grows_and_is_reused(
    spark: SparkSession, lake_settings: Settings, unique: str
) -> None:
    parts = F.struct(F.lit("a").alias("a"), F.array(F.lit(1.5)).alias("b")).alias("nested")
    plain = own(unique, key="id")

    @table_asset(name=f"{unique}_down", upstream={"rows": f"own.{unique}"})
    def down(rows: DataFrame) -> DataFrame:
        return rows.where("id > 0")

    assert run(lake_settings, plain, down).success
    assert run(lake_settings, own(unique, parts, key="id"), down).success
    assert rows_of(lake_settings, unique, "id", "nested") == [
        (0, {"a": "a", "b": [1.5]}),
        (1, {"a": "a", "b": [1.5]}),
    ]
    rerun = run(lake_settings, own(unique, parts, key="id"), down, reuse=True)
    [event] = rerun.asset_materializations_for_node(f"own__{unique}_down")
    assert event.metadata["reused"].value is True
    # The column stays, because older snapshots have it.
    assert run(lake_settings, own(unique, key="id"), down).success
    assert rows_of(lake_settings, unique, "id", "nested") == [(0, None), (1, None)]
    other_type = run(lake_settings, own(unique, F.lit(1).alias("nested")))
    assert f"Table own.{unique} has column `nested` as struct<" in failure(other_type)


REFUSED = {
    "days": "interval '1' day",
    "months": "interval '1' month",
    "spans": "make_interval(1, 2, 3)",
    "variant": """parse_json('{"a": 1}')""",
    "void": "null",
    "voids": "array(null)",
    "parts": "map('a', named_struct('length', interval '1' day, 'amount', 1.50))",
}


def refused_column(spark: SparkSession, name: str, text: str) -> Column:
    """Return a column of a type that no table has, cast as the sentence that refuses it says."""
    column = F.expr(text)
    with pytest.raises(
        ConfigurationError, match=f"Column `{name}.*, which the lake does not store"
    ) as refusal:
        frame_columns(TableName("own", "books"), spark.range(1).select(column.alias(name)).schema)
    cast = re.search(r'Cast it: `F\.col\("(.*)"\)\.cast\("(.*)"\)`, or drop it\.$', str(refusal.value))
    assert cast is not None
    assert cast[1] == name
    return column.cast(cast[2]).alias(name)


@pytest.mark.spark
def test_every_type_is_written_read_and_fingerprinted(
    spark: SparkSession, lake_settings: Settings, unique: str
) -> None:
    columns = [
        F.lit(None).cast("double").alias("nothing"),
        F.expr("CASE WHEN id = 0 THEN double('NaN') ELSE double('inf') END").alias("odd"),
        F.expr("tinyint(id)").alias("small"),
        F.expr("float(id)").alias("single"),
        F.expr("date '2024-02-29'").alias("day"),
        F.expr("timestamp '2024-02-29 10:00:00'").alias("instant"),
        F.expr("timestamp_ntz '2024-02-29 10:00:00'").alias("local"),
        F.expr("map('a', array(named_struct('b', map(1, true))))").alias("deep"),
        F.expr("unhex('ff')").alias("content"),
        F.expr("cast('-12345678901234567890.123456789012345678' AS decimal(38, 18))").alias("amount"),
        F.expr("array(1.50, null)").alias("amounts"),
        F.lit(1).alias("größe"),
        *(refused_column(spark, name, text) for name, text in REFUSED.items()),
    ]
    assert run(lake_settings, own(unique, *columns)).success
    table = Lake(lake_settings).published(TableName("own", unique))
    [first, _] = sorted(Lake(lake_settings).read(table.table).to_pylist(), key=lambda row: row["id"])
    assert (first["small"], first["content"], first["größe"]) == (0, b"\xff", 1)
    assert first["amount"] == Decimal("-12345678901234567890.123456789012345678")
    assert first["amounts"] == [Decimal("1.50"), None]
    assert [first[name] for name in ("variant", "voids", "void")] == ['{"a":1}', [None], None]
    assert first["deep"] == [("a", [{"b": [(1, True)]}])]
    assert run(lake_settings, own(unique, *columns)).success
    assert Lake(lake_settings).published(table.table).lineage.content == table.lineage.content


@pytest.mark.spark
def test_a_declared_schema_and_a_key_hold(spark: SparkSession, lake_settings: Settings, unique: str) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("word", pa.string())])
    word = F.lit("w").alias("word")
    assert run(lake_settings, own(unique, word, schema=schema, key="id")).success
    twice = run(lake_settings, own(unique, word, schema=schema, key="word"))
    assert f"own.{unique}: unique_word (1 violation, for example w" in failure(twice)
    lacking = failure(run(lake_settings, own(unique, schema=schema)))
    assert lacking.startswith(f"The rows of own.{unique} lack column `word`, which its schema declares.")
    assert "have no column `isbn`, which its key" in failure(
        run(lake_settings, own(f"{unique}b", key="isbn"))
    )


@pytest.mark.spark
def test_the_error_of_a_function_in_a_worker_is_seen(
    spark: SparkSession, lake_settings: Settings, unique: str
) -> None:
    def year(_: int) -> int:
        raise ValueError('no year in "n. d."')

    udf = F.udf(year, "int")("id").alias("year")
    assert failure(run(lake_settings, own(unique, udf))) == 'ValueError: no year in "n. d."'


@pytest.mark.spark
@pytest.mark.parametrize(
    "rows, sentence",
    [
        (lambda _: None, "returns nothing. End it with `return` and a DataFrame."),
        (lambda frame: frame.toPandas(), "Return `pyspark.spark_session.createDataFrame(frame)`."),
        (lambda frame: frame.toArrow(), "Return `pyspark.spark_session.createDataFrame(frame)`."),
        (lambda _: [1], "returns builtins.list. Return a DataFrame of Spark."),
        (lambda frame: frame.select("id", "id"), "have the columns `id` and `id`"),
    ],
)
def test_other_results_are_one_sentence(
    spark: SparkSession, lake_settings: Settings, unique: str, rows: Any, sentence: str
) -> None:
    @table_asset(name=unique)
    def odd(pyspark: Any) -> Any:
        return rows(pyspark.spark_session.range(1))

    assert sentence in failure(run(lake_settings, odd))


@pytest.mark.spark
def test_an_own_table_is_a_dataset_by_way_of_a_source(
    spark: SparkSession, lake_settings: Settings, unique: str
) -> None:
    @source(name=unique, upstream={"rows": TableName("own", unique)})
    def texts(rows: DataFrame) -> DataFrame:
        return rows.selectExpr("id AS key", "if(id = 0, '', 'a text') AS text", "id * 2 AS twice")

    assert run(lake_settings, own(unique, n=3), texts).success
    rows = Lake(lake_settings).read(TableName("raw", unique), ["key", "metadata"]).to_pylist()
    assert sorted((row["key"], row["metadata"]) for row in rows) == [
        ("1", [("twice", "2")]),
        ("2", [("twice", "4")]),
    ]
    assert Lake(lake_settings).published(TableName("raw", f"{unique}_rejected")).rows == 1

    @source(name=unique, upstream={"rows": TableName("own", unique)}, max_rejected=0.1)
    def strict(rows: DataFrame) -> DataFrame:
        return rows.selectExpr("id AS key", "if(id = 0, null, 'a text') AS text")

    assert "1 of 3 rows are rejected" in failure(run(lake_settings, own(unique, n=3), strict))


@pytest.mark.spark
def test_a_source_of_a_frame_frees_its_readers_and_keeps_main_from_no_rows(
    spark: SparkSession, lake_settings: Settings, unique: str, tmp_path: Path
) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "a text"}\n')
    scans = []

    def texts(ingests: Ingests, where: str) -> DataFrame:
        reading = ingests.jsonl(tmp_path)
        scans.append(reading.scan)
        return reading.documents.where(where)

    def dataset(where: str) -> dg.AssetsDefinition:
        return source(name=unique)(lambda ingests: texts(ingests, where))

    assert run(lake_settings, dataset("true")).success
    assert f"The DataFrame of raw.{unique} has no row" in failure(run(lake_settings, dataset("false")))
    assert Lake(lake_settings).published(TableName("raw", unique)).rows == 1
    assert [scan.storageLevel.useMemory for scan in scans] == [False, False]


def facts_of(ended_run: dg.ExecuteInProcessResult, node: str) -> dict[str, Any]:
    """Return the metadata of the tables that a node has made."""
    assert ended_run.success, failure(ended_run)
    return {
        name: fact.value
        for event in ended_run.asset_materializations_for_node(node)
        for name, fact in event.metadata.items()
    }


@pytest.mark.invariant("No rejected record of a reader is left out of a dataset in silence.")
@pytest.mark.spark
def test_the_rejected_records_of_readers_are_published_or_counted(
    spark: SparkSession, lake_settings: Settings, unique: str, tmp_path: Path
) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_text(f'{{"text": "a text of {name}"}}\nno json\n{{"text": ""}}\n')
    a, b = (tmp_path / f"{name}.jsonl" for name in "ab")
    (tmp_path / "c.csv").write_text("no records")

    @source(name=unique)
    def both(ingests: Ingests) -> Ingested:
        first, second = ingests.jsonl(a), ingests.jsonl(b)
        short = first.documents.union(second.documents).withColumn("short", F.substring("text", 1, 1))
        return first.with_documents(short, second)

    @source(name=unique)
    def both_again(ingests: Ingests) -> Ingested:
        first, second = ingests.jsonl(a), ingests.jsonl(b)
        texts = first.documents.union(second.documents)
        own = second.with_documents(second.documents, first)
        return first.with_documents(texts, second, own, first).with_documents(texts, second)

    of_both = facts_of(run(lake_settings, both_again), f"raw__{unique}")
    assert Lake(lake_settings).published(TableName("raw", f"{unique}_rejected")).rows == 4
    assert LEFT_OUT not in of_both
    of_both = facts_of(run(lake_settings, both), f"raw__{unique}")
    documents, bad_records = TableName("raw", unique), TableName("raw", f"{unique}_rejected")
    lake = Lake(lake_settings)
    assert [row["metadata"] for row in lake.read(documents).to_pylist()] == [[("short", "a")]] * 2
    assert sorted(row["reason"] for row in lake.read(bad_records).to_pylist()) == [
        "empty",
        "empty",
        "not_json",
        "not_json",
    ]
    assert LEFT_OUT not in of_both

    @source(name=unique)
    def texts_alone(ingests: Ingests) -> DataFrame:
        return ingests.jsonl(a).documents.union(ingests.jsonl(b).documents)

    assert facts_of(run(lake_settings, texts_alone), f"raw__{unique}")[LEFT_OUT] == 4

    @source(name=unique)
    def one_of_two(ingests: Ingests) -> Ingested:
        ingests.jsonl(b)
        return ingests.jsonl(a)

    assert facts_of(run(lake_settings, one_of_two), f"raw__{unique}")[LEFT_OUT] == 2

    @table_asset(name=unique)
    def own_rows(ingests: Any) -> DataFrame:
        rows: DataFrame = ingests.jsonl(tmp_path).documents
        return rows.select("key", "text")

    facts = facts_of(run(lake_settings, own_rows), f"own__{unique}")
    assert (facts[LEFT_OUT], facts["files left out: .csv"]) == (4, 1)


@pytest.mark.spark
def test_a_partition_that_is_none_of_the_lake_is_refused(
    spark: SparkSession, lake_settings: Settings, unique: str
) -> None:
    sentence = failure(run(lake_settings, own(unique, F.lit("a").alias("partition"))))
    assert "have a column `partition`, which every table keeps for itself" in sentence


def frame() -> DataFrame:
    raise AssertionError("declared, never called")


@pytest.mark.parametrize(
    "options, sentence",
    [
        ({"name": "Books"}, "`Books` is not a table name"),
        ({"name": "packed.web"}, "`packed.web` is not a table name"),
        ({"group_name": "a b"}, "`a b` is not a group"),
        ({"schema": {"id": "long"}}, "The schema of own.frame is dict. Give a schema of pyarrow"),
        (
            {"schema": pa.schema({"id": pa.int64()}), "key": "key"},
            "The key of own.frame is `key`, which is not",
        ),
        ({"schema": pa.schema({"a b": pa.int64()})}, "have a column named `a b`"),
        ({"schema": pa.schema({"t": pa.time64("us")})}, "Column `t` of own.frame is time(6), which the lake"),
        ({"schema": pa.schema({"t": pa.dictionary(pa.int8(), pa.month_day_nano_interval())})}, "Spark lacks"),
        ({"upstream": {"rows": "own.rows"}}, "`upstream` names `rows`, which is not an argument"),
    ],
)
def test_a_wrong_declaration_is_one_sentence(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        table_asset(**options)(frame)
    assert sentence in str(caught.value)


def test_arguments_are_upstream_tables_or_refused() -> None:
    @table_asset()
    def both(own_books: DataFrame, raw_web: DataFrame, pyspark: Any) -> DataFrame:
        return own_books

    assert declaration_of(both).upstream == {
        "own_books": TableName("own", "books"),
        "raw_web": TableName("raw", "web"),
    }
    with pytest.raises(ConfigurationError, match="takes a `partition` and is declared without partitions"):

        @table_asset()
        def of_language(partition: str) -> DataFrame:
            return frame()

    with pytest.raises(ConfigurationError, match="Argument `books` names no table"):

        @table_asset()
        def unknown(books: DataFrame) -> DataFrame:
            return books


def test_two_tables_of_one_name_and_a_missing_table_are_named() -> None:
    books, again = own("books"), own("books")
    with pytest.raises(ConfigurationError, match=r"Two assets write own\.books"):
        require_writers([books, again])

    @table_asset()
    def down(own_boks: DataFrame) -> DataFrame:
        return own_boks

    with pytest.raises(ConfigurationError, match=r"reads own\.boks .* Did you mean `own\.books`"):
        require_writers([books, down])


def test_the_files_of_a_table_are_its_size_and_its_reason(tmp_path: Path) -> None:
    assert declaration_of(own("books", files=lambda _: [tmp_path])).files is not None
