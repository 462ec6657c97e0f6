"""The checks of a run's audit branches, and of the tables that a run keeps, as Dagster records them.

A blocking check that fails, or too many rejected records, keep the branches for inspection, and every main
branch as it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import dagster as dg
from pyspark.sql import SparkSession

from factory.errors import CheckFailed
from factory.lake.publish import set_aside
from factory.lake.schemas.ingest import REJECTED
from factory.lake_spark.read import read_at
from factory.orchestration.host.history import SQL
from factory.orchestration.host.resources import LakeRun
from factory.orchestration.keys import key_of
from factory.orchestration.table.branch import Branch
from factory.orchestration.table.checks import Check, in_files, said, unique, violations
from factory.orchestration.table.declaration import Output, Tables
from factory.orchestration.table.rejections import count_rejections, facts, require_documents, require_rows

_MAX_SENTENCES = 20  # of a file check, shown in Dagster


def check_branches(run: LakeRun, branches: Sequence[Branch]) -> Iterator[dg.AssetCheckResult]:
    """Yield the results of all checks; raise Failure if a blocking one failed, and keep the branches."""
    failed: list[str] = []
    for branch in branches:
        output, found, sentences = branch.output, branch.violations(), branch.in_files()
        for check in output.checks:
            figure = len(sentences[check.name]) if check.files else found[check.name]
            result = _result(output, check, figure, sentences.get(check.name))
            if not result.passed and check.blocking:
                is_key = check == unique(*output.schema.key)
                shown = f", for example {branch.repeated()}" if is_key else ""
                failed.append(f"{output.table}: {check.name} ({said(check.figures(figure))}{shown})")
            yield result
    if failed:
        raise dg.Failure(
            description=f"Checks failed: {'; '.join(failed)}. {_kept(run, branches)}", allow_retries=False
        )


def rejection_figures(run: LakeRun, branches: Sequence[Branch], tables: Tables) -> dict[str, int]:
    """Return the rejection figures of a source, none for other tables; raise Failure above the limit.

    Raises ConfigurationError for a DataFrame without rows.
    """
    rejected = next((branch for branch in branches if branch.output.schema.columns == REJECTED.columns), None)
    if rejected is None:
        return {}
    documents = branches[-1]
    lost = rejected.count_by()
    files = {key: found.count_files() for key, found in tables.inputs.items() if lost[(key,)]}
    found = count_rejections(documents, rejected, files)
    of_frames = [key for key, reading in tables.inputs.items() if reading.of_frame]
    require_rows(documents.audit.table, found, of_frames)
    try:
        require_documents(documents.audit.table, found, rejected, tables.max_rejected)
    except CheckFailed as error:
        raise dg.Failure(
            description=f"{error} {_kept(run, branches)} Fix the files or their declaration, or raise "
            "`max_rejected`.",
            allow_retries=False,
        ) from error
    return facts(list(found.values()))


def checks_of_reused(spark: SparkSession, run: LakeRun, output: Output) -> Iterator[dg.AssetCheckResult]:
    """Blocking checks passed when the table was published; alarms run again."""
    alarms = [check for check in output.checks if not check.blocking]
    found: dict[str, float] = {}
    sentences: dict[str, list[str]] = {}
    if alarms:
        at = run.lake.published(output.table).snapshot_id
        found = violations(read_at(spark, output.table, at), alarms)
        sentences = in_files(run.lake.table(output.table), at, alarms)
    for check in output.checks:
        figure = found.get(check.name, len(sentences.get(check.name, ())))
        yield _result(output, check, figure, sentences.get(check.name), {"reused": True})


def _kept(run: LakeRun, branches: Sequence[Branch]) -> str:
    """Set the branches aside and return a sentence with their names."""
    kept = [
        f"{branch.audit.table}.branch_{set_aside(run.lake, branch.audit)}" for branch in reversed(branches)
    ]
    return f"Main is as it was; the rows are in {', '.join(kept)} (`factory sample` shows them)."


def _result(
    output: Output,
    check: Check,
    figure: float,
    sentences: Sequence[str] | None,
    of_all: Mapping[str, Any] | None = None,
) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        asset_key=key_of(output.table),
        check_name=check.name,
        passed=check.passes(figure),
        severity=dg.AssetCheckSeverity.ERROR if check.blocking else dg.AssetCheckSeverity.WARN,
        description=check.description,
        metadata={**check.figures(figure), **(of_all or {}), **_excerpt(sentences), **_sql(check)},
    )


def _sql(check: Check) -> dict[str, dg.MetadataValue]:
    """Return the aggregate that counts the violations, for people who look for them."""
    return {} if check.files else {SQL: dg.MetadataValue.text(check.violations)}


def _excerpt(sentences: Sequence[str] | None) -> dict[str, dg.MetadataValue]:
    """Return the first sentences of a file check as Dagster metadata."""
    return {"found": dg.MetadataValue.text("\n".join(sentences[:_MAX_SENTENCES]))} if sentences else {}
