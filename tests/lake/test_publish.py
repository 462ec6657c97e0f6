"""Write-audit-publish and appends, on real tables in real catalogs."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.table.refs import SnapshotRefType
from pyiceberg.table.snapshots import Operation, Summary
from pyiceberg.table.update import AddSnapshotUpdate, SetSnapshotRefUpdate
from pyspark.sql import SparkSession

from factory.errors import ConfigurationError, PublishConflict, TableNotFound
from factory.lake.fingerprint import fingerprint
from factory.lake.lineage import Lineage
from factory.lake.names import TableName
from factory.lake.publish import AUDIT, Audit, append, drop_branches, publish, seal, set_aside
from factory.lake.schemas.base import TableSchema, columns
from factory.lake.schemas.dedup import COMPONENTS
from factory.lake.schemas.filters import FILTERED, signals_table
from factory.lake.schemas.packing import (
    N_TOKENS,
    PACKED,
    SEQUENCE_LENGTH,
    TOKEN_BYTES,
    TOKENIZER_ID,
    VOCABULARY_SIZE,
)
from factory.lake.tables import Lake
from factory.lake_spark import audit as spark_audit
from factory.settings import Settings

LINEAGE = Lineage(asset="dedup.x", run_id="run", code_version="1")


def rows(*ids: str) -> pa.Table:
    return pa.table(
        {"doc_id": list(ids), "component": list(ids), "partition": [None] * len(ids)},
        schema=COMPONENTS.columns,
    )


@pytest.fixture
def lake(lake_settings: Settings) -> Lake:
    return Lake(lake_settings)


@pytest.fixture
def table(unique: str) -> TableName:
    return TableName("dedup", unique)


Write = Callable[..., Audit]


@pytest.fixture
def write(spark: SparkSession, lake: Lake, table: TableName) -> Write:
    """Write documents of these ids to the audit branch of a run."""

    def written(run_id: str, *ids: str) -> Audit:
        return audited(spark, lake, table, COMPONENTS, rows(*ids), run_id)

    return written


def audited(
    spark: SparkSession, lake: Lake, table: TableName, schema: TableSchema, given: pa.Table, run_id: str
) -> Audit:
    audit = spark_audit.begin(spark, lake, table, schema, run_id)
    spark_audit.replace_rows(spark.createDataFrame(given), audit, schema, run_id)
    content = spark_audit.content(spark_audit.read_branch(spark, lake, audit), schema)
    seal(lake, audit, LINEAGE.with_content(str(content)))
    return audit


def ids(lake: Lake, table: TableName) -> list[str]:
    return sorted(lake.read(table, ["doc_id"])["doc_id"].to_pylist())


def at_once(*works: Callable[[], object]) -> list[object]:
    """What works that run at the same time return."""
    with ThreadPoolExecutor(len(works)) as pool:
        return [future.result() for future in [pool.submit(work) for work in works]]


@pytest.mark.spark
def test_main_shows_nothing_until_it_is_published(lake: Lake, table: TableName, write: Write) -> None:
    audit = write("aaaa", "x", "y")
    with pytest.raises(TableNotFound, match="never been published"):
        lake.published(table)
    published = publish(lake, audit, {"factory.width": "2"})
    assert ids(lake, table) == ["x", "y"]
    assert published.rows == 2
    assert lake.table(table).properties["factory.width"] == "2"
    assert list(lake.table(table).metadata.refs) == ["main"]


@pytest.mark.spark
def test_rows_and_properties_are_published_in_one_commit(lake: Lake, table: TableName, write: Write) -> None:
    audit = write("aaaa", "x")
    before = len(lake.table(table).metadata.metadata_log)
    publish(lake, audit, {"factory.width": "4"})
    assert len(lake.table(table).metadata.metadata_log) == before + 1  # a kill finds no table between them


@pytest.mark.spark
def test_a_full_refresh_replaces_rows_even_by_none(lake: Lake, table: TableName, write: Write) -> None:
    publish(lake, write("aaaa", "x", "y"))
    publish(lake, write("bbbb", "z"))
    assert ids(lake, table) == ["z"]
    assert publish(lake, write("cccc")).rows == 0
    assert ids(lake, table) == []


@pytest.mark.invariant("When two runs publish at once, one wins and the other raises.")
@pytest.mark.spark
def test_of_two_publishes_at_once_one_wins(lake: Lake, table: TableName, write: Write) -> None:
    publish(lake, write("aaaa", "first"))
    audits = [write("bbbb", "b"), write("cccc", "c")]

    def attempt(audit: Audit) -> object:
        try:
            return publish(Lake(lake.settings), audit).snapshot_id
        except PublishConflict as conflict:
            return str(conflict)

    outcomes = at_once(*(partial(attempt, audit) for audit in audits))
    [winner] = [outcome for outcome in outcomes if isinstance(outcome, int)]
    [conflict] = [outcome for outcome in outcomes if isinstance(outcome, str)]
    assert str(winner) in conflict
    assert str(audits[0].began_at) in conflict
    assert ids(lake, table) in (["b"], ["c"])


@pytest.mark.spark
def test_a_failed_branch_is_kept_and_only_the_last_one(lake: Lake, table: TableName, write: Write) -> None:
    publish(lake, write("aaaa", "good"))
    set_aside(lake, write("bbbb", "bad"))
    assert set_aside(lake, write("cccc", "worse")) == "failed_cccc"
    assert sorted(lake.table(table).metadata.refs) == ["failed_cccc", "main"]
    assert ids(lake, table) == ["good"]


@pytest.mark.spark
def test_the_next_run_clears_the_branch_of_a_killed_one(lake: Lake, table: TableName, write: Write) -> None:
    write("dead", "half")
    assert drop_branches(lake, table, AUDIT) == ["audit_dead"]
    publish(lake, write("aaaa", "whole"))
    assert ids(lake, table) == ["whole"]


@pytest.mark.invariant("Appends of both engines, in turn and concurrently, lose nothing.")
@pytest.mark.spark
def test_spark_and_pyiceberg_append_at_once_and_lose_nothing(
    spark: SparkSession, lake: Lake, table: TableName, catalog: Catalog
) -> None:
    lake.create(table, COMPONENTS)
    expected: list[str] = []
    for turn in range(3):
        append(lake, table, COMPONENTS, rows(f"python{turn}"), LINEAGE)
        spark.createDataFrame(rows(f"spark{turn}")).writeTo(f"lake.{table}").append()
        expected += [f"python{turn}", f"spark{turn}"]
        # no stale read after the other engine's commit
        assert spark.table(f"lake.{table}").count() == len(expected)
        assert catalog.load_table(table.identifier).scan().to_arrow().num_rows == len(expected)

    def in_python() -> None:
        for number in range(5):
            append(Lake(lake.settings), table, COMPONENTS, rows(f"p{number}"), LINEAGE)

    def in_spark() -> None:
        for number in range(5):
            spark.createDataFrame(rows(f"s{number}")).writeTo(f"lake.{table}").append()

    at_once(in_python, in_python, in_spark)
    expected += [f"p{n}" for n in range(5)] * 2 + [f"s{n}" for n in range(5)]
    assert ids(lake, table) == sorted(expected)


@pytest.mark.spark
def test_an_append_adds_to_the_fingerprint_whoever_wrote_before(
    spark: SparkSession, lake: Lake, table: TableName
) -> None:
    lake.create(table, COMPONENTS)
    append(lake, table, COMPONENTS, rows("a"), LINEAGE)
    spark.createDataFrame(rows("b")).writeTo(f"lake.{table}").append()
    published = append(lake, table, COMPONENTS, rows("c"), LINEAGE)
    whole = fingerprint(rows("c", "a", "b").to_batches(), COMPONENTS.fingerprinted)
    assert published.lineage.content == str(whole)


def packed(first: int, end: int) -> pa.Table:
    row = {"tokens": b"", "n_tokens": 8, "segments": [], "partition": None}
    row |= dict.fromkeys(("append", "shard", "chunk"), 0)
    found = [row | {"ordinal": ordinal} for ordinal in range(first, end)]
    return pa.Table.from_pylist(found, schema=PACKED.columns)


def test_an_append_records_the_properties_of_all_tokens(lake: Lake, table: TableName) -> None:
    lake.create(table, PACKED)
    said = {TOKENIZER_ID: "1" * 32, VOCABULARY_SIZE: "99", TOKEN_BYTES: "2", SEQUENCE_LENGTH: "8"}
    append(lake, table, PACKED, packed(0, 4), LINEAGE, said)
    published = append(lake, table, PACKED, packed(4, 7), LINEAGE, {TOKENIZER_ID: "1" * 32})
    assert said | {N_TOKENS: "56"} == {of: published.properties[of] for of in (*said, N_TOKENS)}
    compact(lake, table)
    compacted = lake.published(table)
    assert compacted.snapshot_id != published.snapshot_id
    assert compacted.properties == published.properties


def compact(lake: Lake, table: TableName) -> None:
    """Add a snapshot as maintenance by another engine does: the same rows without our properties."""
    found = lake.table(table)
    head = found.current_snapshot()
    assert head is not None
    later = head.model_copy(
        update={
            "snapshot_id": head.snapshot_id ^ 1,
            "parent_snapshot_id": head.snapshot_id,
            "sequence_number": found.metadata.last_sequence_number + 1,
            "summary": Summary(Operation.REPLACE),
        }
    )
    to_main = SetSnapshotRefUpdate(
        ref_name="main", type=SnapshotRefType.BRANCH, snapshot_id=later.snapshot_id
    )
    lake.catalog.commit_table(found, (), (AddSnapshotUpdate(snapshot=later), to_main))


@pytest.mark.parametrize(
    "said, words",
    [
        ({TOKENIZER_ID: "2" * 32}, f"`factory.tokenizer` {'1' * 32}, the rows to append {'2' * 32}"),
        ({}, "`factory.tokenizer` 1+, the rows to append unknown"),
        (
            {TOKENIZER_ID: "1" * 32, SEQUENCE_LENGTH: "16"},
            "`factory.sequence-length` 8, the rows to append 16",
        ),
    ],
)
def test_an_append_of_another_tokenizer_is_refused(
    lake: Lake, table: TableName, said: dict[str, str], words: str
) -> None:
    lake.create(table, PACKED)
    append(lake, table, PACKED, packed(0, 4), LINEAGE, {TOKENIZER_ID: "1" * 32, SEQUENCE_LENGTH: "8"})
    with pytest.raises(ConfigurationError, match=words):
        append(lake, table, PACKED, packed(4, 7), LINEAGE, said)
    assert lake.published(table).rows == 4


def verdicts(doc_id: str, rejections: list[object] | None) -> pa.Table:
    row = {"doc_id": doc_id, "kept": True, "rejections": rejections}
    return pa.Table.from_pylist([row], schema=FILTERED.columns)


@pytest.mark.spark
def test_an_append_reads_null_lists_of_another_writer_as_null(
    spark: SparkSession, lake: Lake, table: TableName
) -> None:
    lake.create(table, FILTERED)
    theirs, ours = verdicts("a", None), verdicts("b", [])
    spark.createDataFrame(theirs).writeTo(f"lake.{table}").append()
    published = append(lake, table, FILTERED, ours, LINEAGE)
    both = [*theirs.to_batches(), *ours.to_batches()]
    assert published.lineage.content == str(fingerprint(both, FILTERED.fingerprinted))


def test_an_append_refuses_null_lists_that_it_would_make_empty(lake: Lake, table: TableName) -> None:
    lake.create(table, FILTERED)
    with pytest.raises(ConfigurationError, match="Column `rejections` is null in 1 of 1 rows"):
        append(lake, table, FILTERED, verdicts("a", None), LINEAGE)
    assert lake.table(table).current_snapshot() is None


@pytest.mark.invariant("Spark and PyIceberg compute one fingerprint.")
@pytest.mark.spark
def test_both_engines_give_one_fingerprint(
    spark: SparkSession, lake: Lake, table: TableName, write: Write
) -> None:
    publish(lake, write("aaaa", *map(str, range(100))))
    recorded = lake.published(table).lineage.content
    assert recorded == str(fingerprint(lake.read(table).to_batches(), COMPONENTS.fingerprinted))
    frame = spark_audit.read_at(spark, table, lake.published(table).snapshot_id)
    assert recorded == str(spark_audit.content(frame.repartition(7), COMPONENTS))


@pytest.mark.invariant(
    "A schema grows and never shrinks, because Iceberg does not branch schemas. When a rule goes, its "
    "signal stays as a column of nulls."
)
def test_a_column_may_be_added_and_none_may_go(lake: Lake, table: TableName) -> None:
    lake.create(table, COMPONENTS)
    wider = TableSchema(COMPONENTS.columns.append(pa.field("size", pa.int64())), key=("doc_id",))
    assert "size" in lake.create(table, wider).schema().column_names
    with pytest.raises(ConfigurationError, match="`size`"):
        lake.create(table, COMPONENTS)


def list_of(**fields: pa.DataType) -> pa.DataType:
    """A list of structs of these fields."""
    return pa.list_(pa.field("element", pa.struct(list(fields.items()))))


BASE = TableSchema(
    columns(
        pa.field("id", pa.string(), nullable=False),
        pa.field("size", pa.int64()),
        pa.field("rejections", list_of(rule=pa.string())),
    ),
    key=("id",),
)


def changed(**fields: pa.DataType | pa.Field) -> TableSchema:
    """`BASE` with fields of these types, added where they are new."""
    declared = {field.name: field for field in BASE.columns}
    for name, given in fields.items():
        declared[name] = given if isinstance(given, pa.Field) else pa.field(name, given)
    return TableSchema(pa.schema(list(declared.values())), key=("id",))


WIDER = list_of(rule=pa.string(), value=pa.float64())


@pytest.mark.parametrize("wider", [changed(more=pa.int64()), changed(rejections=WIDER)])
def test_nullable_fields_may_be_added_at_any_depth(lake: Lake, table: TableName, wider: TableSchema) -> None:
    lake.create(table, BASE)
    made = lake.create(table, wider)
    assert lake.create(table, wider).schema() == made.schema()
    with pytest.raises(ConfigurationError, match="which its declared schema lacks"):
        lake.create(table, BASE)


def test_a_missing_property_is_set_and_an_existing_one_left(lake: Lake, table: TableName) -> None:
    lake.create(table, replace(BASE, properties={"write.parquet.page-row-limit": "8"}))
    both = {"write.parquet.page-row-limit": "1", "write.parquet.row-group-check-min-record-count": "1"}
    lake.create(table, replace(BASE, properties=both))
    found = lake.table(table).properties
    assert [found[name] for name in both] == ["8", "1"]


@pytest.mark.parametrize(
    "other, words",
    [
        (changed(size=pa.string()), "`size` as int64, which is declared as string"),
        (changed(size=pa.field("size", pa.int64(), nullable=False)), "may have nulls in column `size`"),
        (changed(more=pa.field("more", pa.int64(), nullable=False)), "has no column `more`"),
        (changed(rejections=list_of(rule=pa.int64())), "`rejections.element.rule` as string"),
        (replace(BASE, partition_by=("partition",)), "by no column, its declaration by partition"),
    ],
)
def test_a_declaration_that_differs_from_its_table_is_refused(
    lake: Lake, table: TableName, other: TableSchema, words: str
) -> None:
    before = lake.create(table, BASE).metadata_location
    with pytest.raises(ConfigurationError, match=words):
        lake.create(table, other)
    assert lake.table(table).metadata_location == before


@pytest.mark.spark
def test_the_column_of_a_removed_signal_stays_with_nulls(
    spark: SparkSession, lake: Lake, unique: str
) -> None:
    table = TableName("signals", unique)
    contents = []
    for run_id, names in (("aaaa", ["x", "y"]), ("bbbb", ["y"]), ("cccc", ["x", "y"])):
        schema = signals_table(names)
        given = pa.Table.from_pylist([{"doc_id": "d", **dict.fromkeys(names, 1.0)}], schema=schema.columns)
        published = publish(lake, audited(spark, lake, table, schema, given, run_id))
        contents.append(published.lineage.content)
        (row,) = lake.read(table).to_pylist()
        assert (row["x"], row["y"]) == (1.0 if "x" in names else None, 1.0)
    assert contents[0] == contents[2] != contents[1]


def test_an_absent_table_says_how_to_make_it(lake: Lake) -> None:
    with pytest.raises(TableNotFound, match=r"factory materialize '\*raw\.nothing' --changed"):
        lake.published(TableName("raw", "nothing"))


def test_a_partitioned_table_is_created_partitioned(lake: Lake, unique: str) -> None:
    schema = TableSchema(
        columns(pa.field("kept", pa.bool_(), nullable=False)), key=("kept",), partition_by=("kept",)
    )
    table = lake.create(TableName("filtered", unique), schema)
    assert [field.name for field in table.spec().fields] == ["kept"]
