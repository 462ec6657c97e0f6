"""Charts of pictures."""

from __future__ import annotations

from factory.orchestration.table.charts.counting import Chart, powers_of_two
from factory.orchestration.table.charts.totals import Figures

CHARTS: dict[str, Chart] = {"facts": powers_of_two("patches", "pictures by their patches of 14 x 14 pixels")}
FIGURES: dict[str, Figures] = {}
