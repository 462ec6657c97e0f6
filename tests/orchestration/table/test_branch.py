"""A branch answers alike whether it is read here or asked of Spark."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from factory.lake.fingerprint import fingerprint
from factory.lake.names import TableName
from factory.lake.publish import drop_branches
from factory.lake.schemas.base import TableSchema
from factory.lake.schemas.depsort import SYMBOLS
from factory.lake.schemas.filters import FILTERED
from factory.lake.schemas.ingest import RAW
from factory.lake.schemas.packing import PACKED
from factory.lake.tables import Lake
from factory.lake_spark import audit as spark_audit
from factory.orchestration.table import rows as module
from factory.orchestration.table.branch import Branch
from factory.orchestration.table.charts.totals import no_figures
from factory.orchestration.table.checks import checks_of, holds
from factory.orchestration.table.checks import unique as alone
from factory.orchestration.table.declaration import Output
from factory.settings import Settings

DOCUMENT = {"source": "s", "content_hash": "c", "n_bytes": 1, "media_type": "text/plain"}
SEGMENT = {"doc_id": "a", "doc_offset": 0, "length": 1}
ROWS: list[tuple[TableSchema, list[dict[str, Any]]]] = [
    (
        RAW,
        [
            {**DOCUMENT, "doc_id": "a", "key": "a", "text": "né", "metadata": [("k", "v")], "partition": "p"},
            {**DOCUMENT, "doc_id": "b", "key": "b", "stars": 3, "content": b"\0", "metadata": []},
            {**DOCUMENT, "doc_id": "b", "key": "c", "created_at": datetime(2026, 1, 2, tzinfo=UTC)},
        ],
    ),
    (
        FILTERED,
        [
            {"doc_id": "a", "kept": True, "rejections": []},
            {"doc_id": "b", "kept": False, "rejections": [{"rule": "r", "value": None, "threshold": 0.5}]},
            {"doc_id": "c", "kept": True, "rejections": None},
        ],
    ),
    (
        PACKED,
        [
            {"ordinal": n, "tokens": b"ab", "n_tokens": 1, "segments": [SEGMENT] * n, "partition": str(n)}
            | {"append": 0, "shard": 1, "chunk": 2}
            for n in range(3)
        ],
    ),
    (
        SYMBOLS,
        [
            {"doc_id": "a", "repository": "r", "path": "p", "kind": kind, "name": "n", "count": 1}
            | {"resolution": "internal", "resolved_to": ["b"] * n, "weights": [0.1] * n}
            for n, kind in enumerate(("definition", "reference"))
        ],
    ),
]


@pytest.mark.spark
@pytest.mark.parametrize(
    "schema, rows",
    [*ROWS[:2], *(pytest.param(*rows, marks=pytest.mark.slow) for rows in ROWS[2:])],
    ids=["raw", "filtered", "packed", "symbols"],
)
def test_few_rows_are_told_here_as_spark_tells_them(
    spark: SparkSession,
    lake_settings: Settings,
    unique: str,
    monkeypatch: pytest.MonkeyPatch,
    schema: TableSchema,
    rows: list[dict[str, Any]],
) -> None:
    lake, table = Lake(lake_settings), TableName("dedup", unique)
    audit = spark_audit.begin(spark, lake, table, schema, "run")
    given = pa.Table.from_pylist(rows, schema=schema.columns)
    spark_audit.replace_rows(spark.createDataFrame(given), audit, schema, "run")
    never = holds("never", "partition = 'p'", "partition")
    one_each = alone("partition")
    checks = checks_of(schema, [never, one_each])
    output = Output(table, schema, checks, chart=lambda rows: "", figures=no_figures)

    def branch() -> Branch:
        return Branch(spark, lake, audit, output, None)

    here = branch()
    assert here.violations() == {
        checks_of(schema)[0].name: len(rows) - len({tuple(row[of] for of in schema.key) for row in rows}),
        "never": sum(row.get("partition") != "p" for row in rows),
        "unique_partition": len(rows) - len({row.get("partition") for row in rows} - {None}),
    }
    assert here.content() == fingerprint(given.to_batches(), schema.fingerprinted)
    monkeypatch.setattr(module, "MAX_BYTES", -1)
    in_spark = branch()
    assert in_spark.violations() == here.violations()
    assert in_spark.content() == here.content()
    drop_branches(lake, table, audit.branch)
