"""One asset's run: write its tables to audit branches, check them there, publish, then tell Dagster.

1. A table whose code, configuration and upstream content are unchanged is left as it is, when the run
   asks for that.
2. Every output is written to its audit branch.
3. The checks of every output run on its branch; one failure keeps the branches for inspection, leaves
   every main as it was and ends the asset.
4. Every branch is sealed with its lineage and content fingerprint, then published, the main table last.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import dagster as dg
from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession

from factory.errors import TableNotFound
from factory.lake.lineage import Lineage
from factory.lake.names import TableName
from factory.lake.publish import Audit, drop_branches, publish, seal, set_aside
from factory.lake.schemas import TableSchema
from factory.lake.tables import Published
from factory.lake_spark import audit as spark_audit
from factory.lake_spark.read import read_at
from factory.orchestration.checks import Check, repeated, unique, violations
from factory.orchestration.progress import tell
from factory.orchestration.resources import LakeRun

Derived = Callable[[DataFrame], DataFrame]


@dataclass(frozen=True)
class Tables:
    """What an asset with several tables, table properties or scratch to release returns.

    `beside` gives the further tables by suffix, each a DataFrame or a function of the main table's rows
    as they were written. `release` is called when everything is written.
    """

    rows: DataFrame
    beside: dict[str, DataFrame | Derived] = field(default_factory=dict)
    properties: dict[str, str] = field(default_factory=dict)
    release: Callable[[], object] = lambda: None


@dataclass(frozen=True)
class Output:
    """One table an asset writes."""

    table: TableName
    schema: TableSchema
    checks: Sequence[Check]


@dataclass(frozen=True)
class Declaration:
    """What `table_asset` knows of an asset; `outputs` ends with the main table."""

    table: TableName
    outputs: tuple[Output, ...]
    upstream: dict[str, TableName]
    code_version: str
    config: str
    chart: Callable[[DataFrame], str] | None = None


def materialize(
    context: dg.AssetExecutionContext, declared: Declaration, function: Callable[[], DataFrame | Tables]
) -> Iterator[Any]:
    """Run the steps above; yields check results, then materializations."""
    run: LakeRun = context.resources.lake
    spark: SparkSession = context.resources.pyspark.spark_session
    began = time.monotonic()
    tell(str(declared.table), "started")
    upstream = {str(table): run.pin(table) for table in declared.upstream.values()}
    current = _unchanged(run, declared, upstream) if run.reuse else None
    if current is not None:
        tell(str(declared.table), "reused", current[-1].rows)
        yield from (_check_passed(output, check) for output in declared.outputs for check in output.checks)
        yield from (_result(published, {"reused": True}) for published in current)
        return
    try:
        made = function()
        tables = made if isinstance(made, Tables) else Tables(made)
        published = yield from _write_audit_publish(spark, run, declared, tables, upstream)
    except BaseException:
        tell(str(declared.table), "failed")
        raise
    tell(str(declared.table), "published", published[-1].rows)
    seconds = time.monotonic() - began
    for result in published:
        extra: dict[str, Any] = {"seconds": seconds, "rows per second": result.rows / seconds}
        if declared.chart is not None and result.table == declared.table:
            rows = read_at(spark, result.table, result.snapshot_id)
            extra["chart"] = dg.MetadataValue.md(declared.chart(rows))
        yield _result(result, extra)


def _write_audit_publish(
    spark: SparkSession,
    run: LakeRun,
    declared: Declaration,
    tables: Tables,
    upstream: dict[str, Published],
) -> Generator[dg.AssetCheckResult, None, list[Published]]:
    """Steps 2 to 4; an error drops the branches that were begun, but for those a failed check keeps."""
    audits: dict[TableName, Audit] = {}
    try:
        _write(spark, run, declared, tables, audits)
        tell(str(declared.table), "written")
        yield from _check(spark, run, declared, audits)
        tell(str(declared.table), "checked")
        lineage = Lineage(
            asset=str(declared.table),
            run_id=run.run_id,
            code_version=declared.code_version,
            config=declared.config,
            upstream={table: published.snapshot_id for table, published in upstream.items()},
        )
        published = _publish(spark, run, declared, audits, lineage, tables.properties)
        tables.release()
        return published
    except BaseException:
        for audit in audits.values():
            drop_branches(run.lake, audit.table, audit.branch)
        # A JVM that died holds nothing any more, and saying so must not hide why it failed.
        with contextlib.suppress(Py4JError, ConnectionError):
            tables.release()
        raise


def _unchanged(run: LakeRun, declared: Declaration, upstream: dict[str, Published]) -> list[Published] | None:
    """The published outputs where making them again would change nothing; a source is always read again."""
    if not upstream:
        return None
    try:
        outputs = [run.lake.published(output.table) for output in declared.outputs]
        for output in outputs:
            lineage = output.lineage
            if (lineage.code_version, lineage.config) != (declared.code_version, declared.config):
                return None
            if set(lineage.upstream) != set(upstream):
                return None
            for table, snapshot_id in lineage.upstream.items():
                before = run.lake.published_at(TableName.parse(table), snapshot_id)
                if not _same_content(before, upstream[table]):
                    return None
    except TableNotFound:
        return None
    return outputs


def _same_content(before: Published, now: Published) -> bool:
    """Whether two states of a table hold the same rows; another writer leaves no fingerprint to compare."""
    same = before.lineage.content == now.lineage.content
    return before.snapshot_id == now.snapshot_id or (same and bool(now.lineage.content))


def _write(
    spark: SparkSession,
    run: LakeRun,
    declared: Declaration,
    tables: Tables,
    audits: dict[TableName, Audit],
) -> None:
    """Write every output to its branch, the main table first, since others may derive from what it holds.

    A branch is noted in `audits` as soon as it is begun.
    """
    for output in reversed(declared.outputs):
        audit = spark_audit.begin(spark, run.lake, output.table, output.schema, run.run_id)
        audits[output.table] = audit
        if output.table == declared.table:
            rows = tables.rows
        else:
            beside = tables.beside[output.table.name.removeprefix(f"{declared.table.name}_")]
            main = audits[declared.table]
            rows = (
                beside
                if isinstance(beside, DataFrame)
                else beside(spark_audit.read_branch(spark, run.lake, main))
            )
        spark_audit.replace_rows(rows, audit, output.schema, run.run_id)


def _check(
    spark: SparkSession, run: LakeRun, declared: Declaration, audits: dict[TableName, Audit]
) -> Iterator[dg.AssetCheckResult]:
    failed: list[str] = []
    for output in declared.outputs:
        rows = spark_audit.read_branch(spark, run.lake, audits[output.table])
        found = violations(rows, output.checks)
        for check in output.checks:
            count = found[check.name]
            if count:
                keys = repeated(rows, output.schema) if check == unique(*output.schema.key) else []
                shown = f", for example {'; '.join(keys)}: give every row a key of its own" if keys else ""
                failed.append(f"{output.table}: {check.name} ({count} violations{shown})")
            yield dg.AssetCheckResult(
                asset_key=dg.AssetKey(output.table.identifier),
                check_name=check.name,
                passed=count == 0,
                metadata={"violations": count},
            )
    if failed:
        kept = {audit.table: set_aside(run.lake, audit) for audit in audits.values()}
        branches = ", ".join(f"{table}.branch_{branch}" for table, branch in kept.items())
        raise dg.Failure(
            description=f"Checks failed: {'; '.join(failed)}. Main is as it was; the rows are in {branches}.",
            allow_retries=False,
        )


def _publish(
    spark: SparkSession,
    run: LakeRun,
    declared: Declaration,
    audits: dict[TableName, Audit],
    lineage: Lineage,
    properties: dict[str, str],
) -> list[Published]:
    for output in declared.outputs:
        audit = audits[output.table]
        content = spark_audit.content(spark_audit.read_branch(spark, run.lake, audit), output.schema)
        seal(run.lake, audit, lineage.with_content(str(content)), properties)
    tell(str(declared.table), "sealed")
    published = []
    for output in declared.outputs:
        published.append(publish(run.lake, audits[output.table], properties))
        if output.table != declared.table:
            tell(str(declared.table), "publishing")
    return published


def _check_passed(output: Output, check: Check) -> dg.AssetCheckResult:
    """The checks of a reused table passed when it was published."""
    return dg.AssetCheckResult(
        asset_key=dg.AssetKey(output.table.identifier),
        check_name=check.name,
        passed=True,
        metadata={"reused": True},
    )


def _result(published: Published, extra: dict[str, Any]) -> dg.MaterializeResult:
    return dg.MaterializeResult(
        asset_key=dg.AssetKey(published.table.identifier),
        data_version=dg.DataVersion(published.lineage.content),
        metadata={
            "dagster/row_count": published.rows,
            "bytes": published.size_bytes,
            "snapshot": str(published.snapshot_id),
            "content": published.lineage.content,
            "upstream snapshots": dg.MetadataValue.json(published.lineage.upstream),
            **extra,
        },
    )
