"""Charts of symbols, dependencies and files in their order."""

from __future__ import annotations

from factory.orchestration.table.charts.counting import Chart, counts, powers_of_two
from factory.orchestration.table.charts.totals import Figures

CHARTS: dict[str, Chart] = {
    "symbols": counts("resolution", "symbols by what they resolve to"),
    "dependencies": counts("satisfied", "dependencies by whether the order satisfies them"),
    "sorted": powers_of_two("cycle_size", "files by the size of their cycle"),
}
FIGURES: dict[str, Figures] = {}
