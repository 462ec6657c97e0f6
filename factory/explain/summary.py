"""The figures of a pipeline, computed from its published tables alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from factory.errors import DamagedFile, TableNotFound
from factory.explain.stages.registry import STAGES
from factory.explain.stages.stage import Figure, Section, SummaryScope
from factory.lake import names
from factory.lake.tables import Lake


@dataclass(frozen=True)
class StageRows:
    """The rows of a table, and of the table they were selected or made from."""

    stage: str
    table: str
    rows_in: int | None
    rows_out: int
    megabytes: float


@dataclass(frozen=True)
class PipelineSummary:
    """The rows of every stage, and the figures of each section that a stage has."""

    stages: list[StageRows]
    sections: dict[Section, list[Figure]]

    def values(self, section: str) -> dict[str, Any]:
        """Return the values of a section, such as `rejections`, by dataset or group."""
        figures = next(figures for by, figures in self.sections.items() if by.name == section)
        return {figure.subject: figure.values for figure in figures}

    def plain(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        rows = [asdict(stage) for stage in self.stages]
        return {"stages": rows, **{section.name: self.values(section.name) for section in self.sections}}


def summarize(lake: Lake, datasets: Sequence[str], groups: Sequence[str]) -> PipelineSummary:
    """The figures of packed `datasets` and of dedup `groups`."""
    scope = SummaryScope.in_lake(lake, datasets, groups)
    figures = [figure for view in STAGES for figure in view.figures(scope)]
    sections = {
        section: [figure for figure in figures if figure.section == section.name]
        for view in STAGES
        for section in view.sections
    }
    return PipelineSummary(_rows(scope), sections)


def stage_rows(lake: Lake, datasets: Sequence[str]) -> list[StageRows]:
    """The rows in and out of the tables of `datasets`, from raw documents to packed sequences.

    Tables that are damaged or not published are left out. Tables that a variant shares with its dataset are
    listed with the dataset.
    """
    return _rows(SummaryScope.in_lake(lake, datasets))


def _rows(scope: SummaryScope) -> list[StageRows]:
    return [
        rows
        for dataset in scope.datasets
        for rows in _rows_of(scope, dataset)
        if rows.table.partition(".")[2] in (dataset, names.validation(dataset))
    ]


def _rows_of(scope: SummaryScope, dataset: str) -> Iterator[StageRows]:
    before: int | None = None
    tables = [(view, table) for view in STAGES for table in view.tables(scope, dataset)]
    for view, table in tables:
        try:
            published = scope.lake.published(table)
            rows_in, rows_out = view.count(scope, published)
        except TableNotFound:
            continue
        except DamagedFile:
            before = None
            continue
        rows_in = before if rows_in is None else rows_in
        yield StageRows(table.stage, str(table), rows_in, rows_out, published.size_bytes / 1e6)
        before = rows_out
