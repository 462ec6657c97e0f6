"""A report as one HTML file, which needs no other file and no network."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from factory.explain.report import Report


def page(report: Report, now: datetime) -> str:
    """Return the HTML of a report that was written at `now`."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"number": _number, "moment": _moment}
    title = f"Run {report.run.run_id[:8]}" if report.run else "Model Factory: the newest tables"
    template = environment.get_template("report.html")
    return template.render(report=report, title=title, written=_moment(now.timestamp()))


def _number(value: object) -> str:
    if isinstance(value, float) and not value.is_integer():
        return f"{value:,.4g}"
    return f"{value:,.0f}" if isinstance(value, int | float) else str(value)


def _moment(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"
