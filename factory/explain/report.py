"""A report of a run, or of the newest tables of a lake: their figures, checks and charts.

The lake has the tables and their rows. Dagster's records have the charts, which runs drew; a table without a
record is shown without a chart.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from factory.errors import DamagedFile, TableNotFound
from factory.explain.rejected_examples import RejectedExample, rejected_examples
from factory.explain.summary import StageRows, stage_rows
from factory.explain.tables import published_tables
from factory.lake.lineage import Lineage
from factory.lake.names import TableName
from factory.lake.tables import Lake, Published
from factory.orchestration.host.history import (
    CheckRecord,
    RunRecord,
    TableRecord,
    find_run,
    tables_left_out,
    tables_of_run,
)

if TYPE_CHECKING:
    import dagster as dg

_CHART = re.compile(r"!\[(?P<title>[^]]*)\]\((?P<source>data:image/[^)\s]+)\)")
_OWN_COLUMN = ("dagster/row_count", "bytes", "seconds")  # figures with a column of their own


@dataclass(frozen=True)
class Picture:
    """A chart; `source` is a data URI, so that a page needs no other file."""

    title: str
    source: str


@dataclass(frozen=True)
class ReportedTable:
    """A table of the report; `figures` are the further numbers that its run recorded.

    `reason` says why the run wrote the table, in the words of the run and its dry run.
    """

    table: TableName
    rows: int
    n_bytes: int
    seconds: float | None
    snapshot: str
    content: str
    run_id: str
    reused: bool
    reason: str
    figures: Mapping[str, float]
    picture: Picture | None
    checks: tuple[CheckRecord, ...]
    rejections: tuple[RejectedExample, ...] = ()
    changes: tuple[str, ...] = ()
    """Upstream tables whose snapshots changed or expired since they were read."""

    @property
    def complaints(self) -> list[CheckRecord]:
        """The checks that did not pass."""
        return [check for check in self.checks if not check.passed]


@dataclass(frozen=True)
class Report:
    """The tables of a run, or all of a lake if `run` is None; `stages` and `damaged` are the lake's.

    `left_out` are the tables that the run left out, each with the reason.
    """

    lake: str
    run: RunRecord | None
    tables: list[ReportedTable]
    stages: list[StageRows] = field(default_factory=list)
    damaged: list[DamagedFile] = field(default_factory=list)
    left_out: Mapping[TableName, str] = field(default_factory=dict)


def report_of_run(lake: Lake, instance: dg.DagsterInstance, run: str) -> Report:
    """Return the tables that a run made or kept; raise NotFound for an unknown run."""
    found = find_run(instance, run)
    tables = [
        _reported(table, found.run_id, record)
        for table, record in tables_of_run(instance, found.run_id).items()
    ]
    left_out = tables_left_out(instance, found.run_id)
    return Report(str(lake.settings.home), found, tables, left_out=left_out)


def report_of_lake(lake: Lake, instance: dg.DagsterInstance) -> Report:
    """Return every published table, with the records of the run that published it."""
    published, damaged = published_tables(lake)
    runs = {head.lineage.run_id for head in published if head.lineage.run_id}
    records = {run_id: tables_of_run(instance, run_id) for run_id in sorted(runs)}
    tables = [
        _newest(head, records.get(head.lineage.run_id, {}).get(head.table, TableRecord()))
        for head in published
    ]
    heads = {head.table: head for head in published}
    tables = [
        replace(table, changes=tuple(_changes(lake, head.lineage, heads)))
        for table, head in zip(tables, published, strict=True)
    ]
    tables = [
        replace(table, rejections=tuple(rejected_examples(lake, head.table, head.snapshot_id)))
        if head.table.namespace == "filtered"
        else table
        for table, head in zip(tables, published, strict=True)
    ]
    datasets = sorted(head.table.name for head in published if head.table.namespace == "deduplicated")
    stages = stage_rows(lake, datasets)
    return Report(str(lake.settings.home), None, tables, stages, damaged)


def _changes(lake: Lake, lineage: Lineage, heads: Mapping[TableName, Published]) -> Iterator[str]:
    """Yield the upstream tables that have changed or expired since, each with the snapshot that was read."""
    for name, snapshot_id in lineage.upstream.items():
        head = heads.get(TableName.parse(name))
        if head is None or head.snapshot_id == snapshot_id:
            continue
        read = f"{name} at snapshot {snapshot_id}"
        try:
            content = lake.published_at(head.table, snapshot_id).lineage.content
        except (TableNotFound, DamagedFile):
            yield f"{read}, which has expired"
            continue
        if not content or content != head.lineage.content:
            yield f"{read}, which has changed since"


def _newest(published: Published, record: TableRecord) -> ReportedTable:
    now = {
        "dagster/row_count": published.rows,
        "bytes": published.size_bytes,
        "snapshot": str(published.snapshot_id),
        "content": published.lineage.content,
    }
    record.figures |= now
    return _reported(published.table, published.lineage.run_id, record)


def _reported(table: TableName, run_id: str, record: TableRecord) -> ReportedTable:
    of = record.figures
    return ReportedTable(
        table=table,
        rows=int(of.get("dagster/row_count") or 0),
        n_bytes=int(of.get("bytes") or 0),
        seconds=of.get("seconds"),
        snapshot=str(of.get("snapshot", "")),
        content=str(of.get("content", "")),
        run_id=run_id,
        reused=bool(of.get("reused")),
        reason=str(of.get("made because", "")),
        figures={name: value for name, value in of.items() if name not in _OWN_COLUMN and _is_number(value)},
        picture=_picture(record.chart),
        checks=tuple(record.checks),
    )


def _picture(chart: str | None) -> Picture | None:
    found = _CHART.search(chart or "")
    return Picture(found["title"], found["source"]) if found else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
