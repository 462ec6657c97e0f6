"""One asset's run: write its tables to audit branches, check them there, publish, then report to Dagster.

1. The run keeps tables and partitions that it has no reason to write (`factory.orchestration.table.reuse`).
2. Spark writes every output to its audit branch.
3. The checks of every output run on its branch. One failure keeps the branches for inspection, leaves every
   main branch untouched and ends the asset.
4. Every branch is sealed with its lineage and content fingerprint, then published, the main table last.

The function of a partitioned asset is called once per partition, so a range of partitions holds the same rows
as its partitions one by one. They are written, checked and published together; other partitions stay.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any

import dagster as dg
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from factory.errors import DamagedFile
from factory.ingest.state import MOST_BYTES
from factory.lake.fingerprint import Fingerprint
from factory.lake.lineage import Lineage
from factory.lake.names import TableName, raw, registered
from factory.lake.publish import Audit, drop_branches, publish, seal
from factory.lake.registration import forget, register
from factory.lake.schemas.base import TableSchema
from factory.lake.schemas.ingest import TEXT_AT, thin
from factory.lake.tables import Lake, Published
from factory.lake_spark import audit as spark_audit
from factory.orchestration.host.resources import LakeRun
from factory.orchestration.keys import key_of
from factory.orchestration.table import code_parts
from factory.orchestration.table.branch import Branch
from factory.orchestration.table.branch_checks import check_branches, checks_of_reused, rejection_figures
from factory.orchestration.table.charts.totals import NOTE
from factory.orchestration.table.declaration import (
    AssetResult,
    Declaration,
    Output,
    PartitionSelection,
    Tables,
)
from factory.orchestration.table.frame_columns import with_columns
from factory.orchestration.table.materialization import leave_out, results, shown_of
from factory.orchestration.table.partition_groups import PartitionGroup, call
from factory.orchestration.table.progress import emit
from factory.orchestration.table.rejections import (
    n_rejected,
)
from factory.orchestration.table.reuse import (
    DAMAGED,
    NEW,
    Listings,
    Request,
    listings_of,
    omission,
    phrase,
    reasons,
    stale_lasting,
)
from factory.orchestration.table.rows import Rows
from factory.spark.session import batches_of

log = logging.getLogger(__name__)


def materialize(
    context: dg.AssetExecutionContext,
    declared: Declaration,
    function: Callable[[str | None], AssetResult],
    parts: PartitionSelection,
) -> Iterator[Any]:
    """Run the steps above; yield check results, then materializations.

    `function` returns the rows of the partition with the given key, or of the whole table for None.
    """
    run: LakeRun = context.resources.lake
    spark: SparkSession = context.resources.pyspark.spark_session
    began = time.monotonic()
    keys = context.job_def.asset_layer.selected_asset_keys
    if key_of(declared.table) not in keys:  # somebody runs checks of a table that is there
        for output in declared.outputs:
            run.lake.published(output.table)
            names = {check.name for check in context.selected_asset_check_keys}
            checks = checks_of_reused(spark, run, output)
            yield from (check for check in checks if check.check_name in names)
        return
    emit(str(declared.table), "started")
    upstream = {str(table): run.pin(table) for table in declared.upstream.values()}
    request = Request.of(declared, keys, reuse=run.reuse, named_tables=run.named_tables, readers=run.readers)
    listings = listings_of(declared, parts.keys)
    found = reasons(run.lake, declared, upstream, parts, request, listings)
    too_few = omission(run.lake, declared, request)
    if too_few is not None and NEW in found.values():
        leave_out(context, declared.outputs, too_few)
        return
    # What only people read and is there stays, unless it is damaged.
    made = parts.only(key for key, why in found.items() if too_few is None or why == DAMAGED)
    if not made.keys:
        current = [run.lake.published(output.table) for output in declared.outputs]
        kept_despite = stale_lasting(run.lake, declared, upstream)
        emit(
            str(declared.table),
            "reused",
            current[-1].rows,
            n_rejected(run.lake, declared.outputs),
            kept_despite,
        )
        for output in declared.outputs:
            yield from checks_of_reused(spark, run, output)
        yield from results(context, current, parts, {"reused": True})
        return
    try:
        tables, groups = call(function, made, declared)
        declaration, groups = with_columns(run.lake, declared, groups)
        published, written, rejected = yield from _write_audit_publish(
            spark, run, declaration, made, tables, groups, upstream, listings
        )
    except BaseException:
        emit(str(declared.table), "failed")
        raise
    seconds = time.monotonic() - began
    shown = [
        shown_of(output, rows, run.lake.table(output.table).properties)
        for output, rows in zip(declaration.outputs, written, strict=True)
    ]
    note = "; ".join(filter(None, [tables.note, *(str(figures.get(NOTE, "")) for figures in shown)]))
    emit(str(declared.table), "published", published[-1].rows, rejected.get("rejected"), phrase(found), note)
    of_all = {"seconds": seconds, "made because": phrase(found) or NEW, **tables.facts, **rejected}
    yield from results(context, published, parts, of_all, shown)


def _write_audit_publish(
    spark: SparkSession,
    run: LakeRun,
    declared: Declaration,
    parts: PartitionSelection,
    tables: Tables,
    groups: Sequence[PartitionGroup],
    upstream: dict[str, Published],
    listings: Listings,
) -> Generator[dg.AssetCheckResult, None, tuple[list[Published], list[Rows], dict[str, int]]]:
    """Run steps 2 to 4; return the published tables, their rows, and the rejection figures of a source.

    An error drops the begun branches, unless a failed check keeps them.
    """
    audits: dict[TableName, Audit] = {}
    try:
        _write(spark, run, declared, parts, tables, groups, audits)
        emit(str(declared.table), "written")
        branches = [
            Branch(spark, run.lake, audits[output.table], output, parts.partitions)
            for output in declared.outputs
        ]
        yield from check_branches(run, branches)
        rejected = rejection_figures(run, branches, tables)
        emit(str(declared.table), "checked")
        lineage = Lineage(
            asset=str(declared.table),
            run_id=run.run_id,
            code_version=declared.code_version,
            config=declared.config,
            upstream={table: published.snapshot_id for table, published in upstream.items()},
            inputs=_states(tables, listings),
            values=dict(declared.values),
            code=code_parts.text_of(declared.code),
            listings=_listing_texts(listings, parts.keys),
        )
        published = _publish(run, declared, branches, lineage, tables)
        tables.release()
        return published, [branch.read for branch in branches], rejected
    except BaseException:
        for audit in audits.values():
            _drop(run.lake, audit)
        # A dead JVM holds no scratch, and its error must not hide the first one.
        with contextlib.suppress(Py4JError, ConnectionError):
            tables.release()
        raise


def _drop(lake: Lake, audit: Audit) -> None:
    """Drop the branch of a failed write; the next run drops it if the catalog does not answer now."""
    try:
        drop_branches(lake, audit.table, audit.branch)
    except Exception:  # the error of the write is raised, and this one must not hide it
        log.warning("The branch `%s` of %s was not dropped", audit.branch, audit.table, exc_info=True)


def _listing_texts(listings: Listings, keys: Sequence[str | None]) -> dict[str, str]:
    """The listing of each partition; they stand together in the summary of one snapshot."""
    most_bytes = MOST_BYTES // max(len(keys), 1)
    return {key or "": listings[key].to_text(most_bytes) for key in keys if key in listings}


def _states(tables: Tables, listings: Listings) -> dict[str, str]:
    """The state of the files of each partition, as the source declares or reports them."""
    of_reader = {key: ingested.state for key, ingested in tables.inputs.items() if ingested.state}
    of_listing = {key: listings[key].state for key in listings.keys() & tables.inputs.keys()}
    return {key or "": state for key, state in (of_reader | of_listing).items()}


def _write(
    spark: SparkSession,
    run: LakeRun,
    declared: Declaration,
    parts: PartitionSelection,
    tables: Tables,
    groups: Sequence[PartitionGroup],
    audits: dict[TableName, Audit],
) -> None:
    """Write every output to its branch, the main table first, because side tables may derive from its rows.

    `audits` receives each branch as soon as it exists.
    """
    for output in reversed(declared.outputs):
        is_main = output.table == declared.table
        schema = _stored(run.lake, output, tables) if is_main else output.schema
        audit = spark_audit.begin(spark, run.lake, output.table, schema, run.run_id, replaced=parts.every)
        audits[output.table] = audit
        for group in groups:
            if is_main:
                rows = group.rows()
            else:
                written = spark_audit.read_branch(spark, run.lake, audits[declared.table])
                rows = group.side_rows(output.table.name.removeprefix(f"{declared.table.name}_"), written)
            with batches_of(spark, declared.rows_per_batch):
                properties = tables.said if is_main else {}
                spark_audit.replace_rows(rows, audit, schema, run.run_id, group.partitions, properties)


def _stored(lake: Lake, output: Output, tables: Tables) -> TableSchema:
    """Return the stored columns of the main table: as declared, and `text_at` for registered texts."""
    try:
        before = lake.table(output.table).schema().column_names if lake.exists(output.table) else []
    except DamagedFile:  # the table is recreated, or the error is raised where its branch begins
        before = []
    return thin(output.schema) if tables.registered or TEXT_AT.name in before else output.schema


def _publish(
    run: LakeRun, declared: Declaration, branches: Sequence[Branch], lineage: Lineage, tables: Tables
) -> list[Published]:
    for branch in branches:
        if branch.keys is None:
            sealed = lineage.with_content(str(branch.content()))
        else:
            sealed = _of_partitions(run, branch, lineage)
        seal(run.lake, branch.audit, sealed, tables.properties | tables.said)
    emit(str(declared.table), "sealed")
    published = []
    for branch in branches:
        published.append(publish(run.lake, branch.audit, tables.properties))
        if branch.audit.table != declared.table:
            emit(str(declared.table), "publishing")
    # Readers take texts from the registered files, not through the registered table, so it may follow later.
    files = registered(declared.table.name)
    if tables.registered:
        register(run.lake, files, tables.registered.files, tables.registered.columns, lineage)
    elif declared.table == raw(declared.table.name):
        forget(run.lake, files)
    return published


def _of_partitions(run: LakeRun, branch: Branch, lineage: Lineage) -> Lineage:
    """Add the content of the replaced partitions, and of the whole table, to the lineage.

    The rows of main are read only if its snapshots do not record the previous content of the partitions.
    """
    table, replaced = branch.audit.table, branch.replaced()
    before = run.lake.partitions(table)
    held = [before.content(key) for key in replaced]
    main = run.lake.table(table).current_snapshot()
    recorded = run.lake.published(table).lineage.content if main is not None else str(Fingerprint())
    if recorded and None not in held:
        kept = Fingerprint.parse(recorded) - sum((of for of in held if of is not None), Fingerprint())
        content = sum(replaced.values(), kept)
    else:
        content = branch.content()
    return lineage.with_content(str(content), {key: str(of) for key, of in replaced.items()})
