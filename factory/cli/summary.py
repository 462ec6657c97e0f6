"""The figures of a pipeline as tables for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from factory.explain.summary import PipelineSummary, StageRows


def show_summary(found: PipelineSummary, console: Console) -> None:
    """Print the figures as tables."""
    show_stages(found.stages, console)
    for title, counts in (
        ("Bad records", found.bad_records),
        ("Rejections by rule (a document can fail several)", found.rejections),
        ("Duplicates", found.duplicates),
    ):
        _show_counts(title, counts, console)
    results = Table(
        "dataset", "", title="Order and packing", title_justify="left", box=None, header_style="bold"
    )
    for dataset, order in found.order.items():
        results.add_row(
            dataset,
            f"{order.satisfied:,} of {order.edges:,} dependencies satisfied "
            f"({order.satisfied_weight:.1%} of their weight), "
            f"{order.in_cycles:,} inside cycles, {order.external:,} names resolve outside their repository",
        )
        if order.cycles:
            largest = order.cycles[0]
            results.add_row(
                dataset,
                f"{len(order.cycles):,} cycles, the largest of {len(largest.paths):,} files in "
                f"{largest.repository}: {', '.join(largest.paths[:3])} ...",
            )
    for dataset, fill in found.packing.items():
        results.add_row(
            dataset,
            f"{fill.sequences:,} sequences, {fill.tokens:,} tokens, {fill.fill:.2%} full, "
            f"{fill.split_documents_that_fit:,} documents split that would fit",
        )
    console.print(results)


def show_stages(stages: Sequence[StageRows], console: Console) -> None:
    """Print the rows in and out of tables."""
    table = Table("table", title="Rows in and out", title_justify="left", box=None, header_style="bold")
    for column in ("in", "out", "share", "MB"):
        table.add_column(column, justify="right")
    for it in stages:
        same_kind = it.table.partition(".")[0] != "packed"  # sequences are not a share of documents
        share = f"{it.rows_out / it.rows_in:.1%}" if it.rows_in and same_kind else ""
        rows_in = "" if it.rows_in is None else f"{it.rows_in:,}"
        table.add_row(it.table, rows_in, f"{it.rows_out:,}", share, f"{it.megabytes:,.1f}")
    console.print(table)


def _show_counts(title: str, counts: dict[str, dict[str, int]], console: Console) -> None:
    table = Table("", "", title=title, title_justify="left", box=None, show_header=False)
    for dataset, by_name in counts.items():
        said = ", ".join(f"{name} {count:,}" for name, count in by_name.items())
        table.add_row(dataset, said or "none")
    console.print(table)
