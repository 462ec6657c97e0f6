"""Several runs of a bench in one report."""

from __future__ import annotations

import json
import statistics

from hypothesis import given
from hypothesis import strategies as st

from bench.harness import Report, Row, at_least
from bench.spread import over_runs


def test_one_run_is_its_own_report() -> None:
    report = Report([], "data", rows=[Row("speed", 3, "MB/s")])
    assert over_runs([report]) is report
    assert "least" not in json.loads(report.rows[0].json())


@given(st.lists(st.floats(0, 1e6), min_size=2))
def test_a_number_of_several_runs_is_their_median_with_its_spread(speeds: list[float]) -> None:
    runs = [Report([], "data", rows=[at_least("speed", speed, "MB/s", 5.0)]) for speed in speeds]
    (row,) = over_runs(runs).rows
    assert (row.value, row.least, row.most) == (statistics.median_low(speeds), min(speeds), max(speeds))
    assert row.met == (row.value >= 5.0)
    assert {"value", "least", "most", "aim", "met"} <= json.loads(row.json()).keys()


def test_the_spread_is_shown_below_the_tables_of_the_last_run() -> None:
    first, last = (Report([], "data", rows=[Row("speed", speed, "MB/s")]) for speed in (1.0, 2.0))
    (spread,) = over_runs([first, last]).tables
    assert [list(column.cells) for column in spread.columns] == [["speed"], ["1"], ["1"], ["2"]]
