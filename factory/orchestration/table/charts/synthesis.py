"""The chart and the figures of a job's documents."""

from __future__ import annotations

from collections.abc import Mapping

from factory.orchestration.table.charts.counting import Chart, powers_of_two
from factory.orchestration.table.charts.totals import Figures, total
from factory.orchestration.table.rows import Rows

CHARTS: dict[str, Chart] = {"records": powers_of_two("n_records", "documents by what was made of them")}


def items(rows: Rows, properties: Mapping[str, str]) -> dict[str, int | float]:  # noqa: ARG001
    """The results of a job, and the time of its workers."""
    (n_records, n_documents), (n_refusals, _) = (total(rows, name) for name in ("n_records", "n_refusals"))
    return {"documents": n_documents, "records": n_records, "refusals": n_refusals}


FIGURES: dict[str, Figures] = {"items": items}
