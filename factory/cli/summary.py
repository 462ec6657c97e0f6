"""The figures of a pipeline as tables for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from rich.console import Console
from rich.table import Table

from factory.explain.stages.stage import Figure, Section
from factory.explain.summary import PipelineSummary, StageRows


def show_summary(summary: PipelineSummary, console: Console) -> None:
    """Print the figures as tables; neighboring sections of one title share a table."""
    show_stages(summary.stages, console)
    for title, sections in groupby(summary.sections, key=lambda section: section.title):
        _show_sections(title, [(section, summary.sections[section]) for section in sections], console)


def show_stages(stages: Sequence[StageRows], console: Console) -> None:
    """Print the rows in and out of tables."""
    table = Table("table", title="Rows in and out", title_justify="left", box=None, header_style="bold")
    for column in ("in", "out", "share", "MB"):
        table.add_column(column, justify="right")
    for rows in stages:
        same_kind = rows.table.partition(".")[0] != "packed"  # sequences are not a share of documents
        share = f"{rows.rows_out / rows.rows_in:.1%}" if rows.rows_in and same_kind else ""
        rows_in = "" if rows.rows_in is None else f"{rows.rows_in:,}"
        table.add_row(rows.table, rows_in, f"{rows.rows_out:,}", share, f"{rows.megabytes:,.1f}")
    console.print(table)


def _show_sections(title: str, sections: Sequence[tuple[Section, list[Figure]]], console: Console) -> None:
    heading = sections[0][0].heading
    table = Table(heading, "", title=title, title_justify="left", box=None, header_style="bold")
    table.show_header = bool(heading)
    for figure in (figure for _, figures in sections for figure in figures):
        for line in figure.lines:
            table.add_row(figure.subject, line)
    console.print(table)
