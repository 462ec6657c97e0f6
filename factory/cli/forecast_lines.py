"""The lines of a dry run: one for each reason and dataset, or one for each table."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from rich.markup import escape

from factory.counted import counted
from factory.orchestration.asset.forecast import Expectation, Forecast

_MOST_NAMED = 2  # tables of a line that have their names in it
_LEADS: dict[Expectation, tuple[str, str]] = {
    "make": ("[green]make[/] ", "because"),
    "maybe": ("[yellow]maybe[/]", "if"),
    "keep": ("[dim]keep[/] ", "although"),
}


def table_lines(forecasts: Sequence[Forecast]) -> Iterator[str]:
    """Yield the verdict on each table, with its reason."""
    for forecast in forecasts:
        yield _line(forecast.verdict, str(forecast.table), forecast.reason)


def dataset_lines(forecasts: Sequence[Forecast]) -> Iterator[str]:
    """Yield a line for each reason of each dataset or dedup group, and one for all kept tables."""
    alike: dict[tuple[Expectation, str, str], list[str]] = defaultdict(list)
    kept_by_owner: Counter[str] = Counter()
    for forecast in forecasts:
        owner = _owner(forecast.group)
        if forecast.verdict == "keep" and not forecast.reason:
            kept_by_owner[owner] += 1
            continue
        changes = " or ".join(map(str, forecast.roots))
        reason = f"{changes} changes" if forecast.verdict == "maybe" else forecast.reason
        alike[forecast.verdict, owner, reason].append(str(forecast.table))
    for verdict in _LEADS:
        for (group_verdict, owner, reason), tables in alike.items():
            if group_verdict == verdict:
                n_tables = len(tables)
                subject = (
                    " and ".join(tables)
                    if n_tables <= _MOST_NAMED
                    else f"{counted(n_tables, 'table')} of {owner}"
                )
                yield _line(verdict, subject, reason)
    if kept_by_owner:
        owners = ", ".join(f"{n:,} of {owner}" for owner, n in kept_by_owner.items())
        yield _line("keep", f"{counted(kept_by_owner.total(), 'table')}: {owners}", "")


def forecast_json(forecasts: Sequence[Forecast]) -> str:
    """Return every table with its verdict and reason as JSON."""
    return json.dumps(
        [
            {
                "table": str(forecast.table),
                "group": forecast.group,
                "verdict": forecast.verdict,
                "reason": forecast.reason,
                "depends_on": [str(root) for root in forecast.roots],
            }
            for forecast in forecasts
        ]
    )


def _line(verdict: Expectation, subject: str, reason: str) -> str:
    lead, conjunction = _LEADS[verdict]
    rest = f"{subject:<40} {conjunction} {reason}" if reason else subject
    return f"{lead} {escape(rest)}"


def _owner(group: str) -> str:
    """The dataset of a group and its variants, or the dedup group."""
    n_parts = 2 if group.startswith("dedup/") else 1
    return " ".join(group.split("/")[:n_parts])
