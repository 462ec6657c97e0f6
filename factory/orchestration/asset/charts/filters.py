"""Charts and figures of verdicts; measured values have the quantiles of any table of numbers."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from factory.orchestration.asset.charts.counting import KEPT, Chart, counted, counts, most_first
from factory.orchestration.asset.charts.totals import Figures, count_by
from factory.orchestration.asset.rows import Rows


def rejections(rows: Rows) -> str:
    """Documents kept, then those rejected by each rule, most first; several rules may reject one document."""

    def rules(batch: pa.RecordBatch) -> pa.Array:
        kept_ones = pa.repeat(KEPT, pc.sum(batch["kept"]).as_py() or 0)
        rejected = batch["rejections"].filter(pc.invert(batch["kept"]))
        return pa.concat_arrays([kept_ones, rejected.flatten().field("rule")])

    return most_first(*counted(rows, ["kept", "rejections"], rules, "documents by rule"))


def verdicts(rows: Rows, _properties: Mapping[str, str]) -> dict[str, int | float]:
    """Documents kept and rejected."""
    n_rows = count_by(rows, "kept")
    return {"kept": n_rows[True,], "rejected": n_rows[False,]}


CHARTS: dict[str, Chart] = {
    "rejections": rejections,
    "limits": counts("rule", "limits that are shares, by rule"),
}
FIGURES: dict[str, Figures] = {"verdicts": verdicts}
