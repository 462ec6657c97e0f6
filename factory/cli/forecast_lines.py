"""The lines of a dry run: one for each reason and dataset, or one for each table."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from rich.markup import escape

from factory.counted import counted
from factory.lake.names import TableName
from factory.orchestration.table.forecast import Expectation, Forecast

_MOST_NAMED = 2  # tables of a line that have their names in it
_MOST_ALIKE = 4  # owners of tables with the same reason that have a line each
_MOST_OWNERS = 9  # whose tables a line counts apart
_MOST_ROOTS = 4  # tables of a condition that have their names in it
_LEADS: dict[Expectation, tuple[str, str]] = {
    "make": ("[green]make[/] ", "because"),
    "maybe": ("[yellow]maybe[/]", "if"),
    "keep": ("[dim]keep[/] ", "although"),
    "leave": ("[dim]leave[/]", "because it is"),
}


def table_lines(forecasts: Sequence[Forecast]) -> Iterator[str]:
    """Yield the verdict on each table, with its reason."""
    for forecast in forecasts:
        yield _line(forecast.verdict, str(forecast.table), forecast.reason)


def dataset_lines(forecasts: Sequence[Forecast]) -> Iterator[str]:
    """Yield a line for each reason of each dataset or dedup group, and lines for kept and left-out tables."""
    alike: dict[tuple[Expectation, str], dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    n_kept: Counter[str] = Counter()
    n_left: Counter[str] = Counter()
    for forecast in forecasts:
        owner = _owner(forecast.group)
        if forecast.verdict == "leave":
            n_left[owner] += 1
            continue
        if forecast.verdict == "keep" and not forecast.reason:
            n_kept[owner] += 1
            continue
        reason = _changes(forecast.roots) if forecast.roots else forecast.reason
        alike[forecast.verdict, reason][owner].append(str(forecast.table))
    for verdict in _LEADS:
        for (verdict_of_reason, reason), tables_of in alike.items():
            if verdict_of_reason == verdict:
                yield from (_line(verdict, subject, reason) for subject in _subjects(tables_of))
    if n_left:
        yield _line("leave", _counts(n_left, " that only people read"), "")
    if n_kept:
        yield _line("keep", _counts(n_kept), "")


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


def _changes(roots: Sequence[TableName]) -> str:
    """The phrase for a change of any of the tables."""
    parts = list(map(str, roots))
    if len(roots) > _MOST_ROOTS:
        parts[_MOST_ROOTS - 1 :] = [f"one of {len(roots) - _MOST_ROOTS + 1:,} others"]
    return f"{' or '.join(parts)} changes"


def _subjects(tables_of: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield the subject of a line for each owner of tables, or one of all if there are many owners."""
    if len(tables_of) > _MOST_ALIKE:
        yield _counts(Counter({owner: len(tables) for owner, tables in tables_of.items()}))
        return
    for owner, tables in tables_of.items():
        few = len(tables) <= _MOST_NAMED
        yield " and ".join(tables) if few else f"{counted(len(tables), 'table')} of {owner}"


def _counts(n_tables: Counter[str], attribute: str = "") -> str:
    """The number of tables of each owner, and of the others together if there are many."""
    parts = [f"{n:,} of {owner}" for owner, n in n_tables.items()]
    rest = sum(list(n_tables.values())[_MOST_OWNERS:])
    if rest:
        parts[_MOST_OWNERS:] = [f"{rest:,} of {counted(len(n_tables) - _MOST_OWNERS, 'other')}"]
    return f"{counted(n_tables.total(), 'table')}{attribute}: {', '.join(parts)}"


def _line(verdict: Expectation, subject: str, reason: str) -> str:
    lead, conjunction = _LEADS[verdict]
    rest = f"{subject:<40} {conjunction} {reason}" if reason else subject
    return f"{lead} {escape(rest)}"


def _owner(group: str) -> str:
    """The dataset of a group and its variants, or the dedup group."""
    n_parts = 2 if group.startswith("dedup/") else 1
    return " ".join(group.split("/")[:n_parts])
