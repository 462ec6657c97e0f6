"""The warnings of a run's checks, with their figures, for the terminal.

A blocking check is part of the message of the asset that it failed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import dagster as dg
from rich.console import Console
from rich.markup import escape

from factory.orchestration.table.checks import said


@dataclass(frozen=True)
class CheckWarning:
    """A check that exceeded its limit in a table that was published regardless."""

    table: str
    check: str
    figures: dict[str, float]
    description: str
    found: str  # sentences of a file check, one per line

    def __str__(self) -> str:
        lines = [f"{self.table}: {self.check} ({said(self.figures)}). {self.description}"]
        return "\n".join([*lines, *(f"         {line}" for line in self.found.splitlines())])


def warnings_of(evaluations: Iterable[dg.AssetCheckEvaluation]) -> list[CheckWarning]:
    """Return the warnings among the evaluations; the last evaluation of a check counts."""
    last = {(evaluation.asset_key, evaluation.check_name): evaluation for evaluation in evaluations}
    return [
        CheckWarning(
            table=of.asset_key.to_user_string(),
            check=of.check_name,
            figures={
                name: value.value
                for name, value in of.metadata.items()
                if isinstance(value, (dg.IntMetadataValue, dg.FloatMetadataValue)) and value.value is not None
            },
            description=of.description or "",
            found=str(of.metadata["found"].value) if "found" in of.metadata else "",
        )
        for of in last.values()
        if not of.passed and of.severity == dg.AssetCheckSeverity.WARN
    ]


def show_warnings(warnings: Sequence[CheckWarning], console: Console) -> None:
    """Print each warning as a paragraph, unabridged in narrow terminals."""
    for warning in warnings:
        console.print(f"[yellow]warning[/]  {escape(str(warning))}", soft_wrap=True)
