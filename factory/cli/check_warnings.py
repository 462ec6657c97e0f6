"""The checks of a run that only warn: which did, with their figures, for a person at a terminal.

A check that blocks is in the sentence of the asset it failed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import dagster as dg
from rich.console import Console
from rich.markup import escape

from factory.orchestration.asset.checks import said


@dataclass(frozen=True)
class CheckWarning:
    """A check that found more than it should in a table that was published all the same."""

    table: str
    check: str
    figures: dict[str, float]
    description: str
    found: str  # sentences on single files, a line each

    def __str__(self) -> str:
        lines = [f"{self.table}: {self.check} ({said(self.figures)}). {self.description}"]
        return "\n".join([*lines, *(f"         {line}" for line in self.found.splitlines())])


def warnings_of(evaluations: Iterable[dg.AssetCheckEvaluation]) -> list[CheckWarning]:
    """The warnings among what was evaluated; of a check that was asked twice what it said last."""
    last = {(of.asset_key, of.check_name): of for of in evaluations}
    return [
        CheckWarning(
            table=".".join(of.asset_key.path),
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
    """Print each warning in a paragraph of its own; a narrow terminal cuts none."""
    for warning in warnings:
        console.print(f"[yellow]warning[/]  {escape(str(warning))}", soft_wrap=True)
