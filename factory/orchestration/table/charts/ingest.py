"""Charts of raw documents and of rejected records."""

from __future__ import annotations

from factory.orchestration.table.charts.counting import Chart, counts, powers_of_two
from factory.orchestration.table.charts.totals import Figures

CHARTS: dict[str, Chart] = {
    "bytes": powers_of_two("n_bytes", "documents by bytes"),
    "facts": counts("by", "rows of facts by what they are about"),
    "rejected": counts("reason", "rows of rejected records by reason"),
}
FIGURES: dict[str, Figures] = {}
