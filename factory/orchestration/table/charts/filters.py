"""Charts and figures of verdicts; measured values have the quantiles of any table of numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from factory.filters.sets import RULE_SETS
from factory.orchestration.table.charts.counting import KEPT, Chart, counted, counts, most_first
from factory.orchestration.table.charts.totals import NOTE, Figures, count_by
from factory.orchestration.table.drawing import Drawing
from factory.orchestration.table.rows import Rows


def rejections(rows: Rows) -> Drawing:
    """Documents kept, then those rejected by each rule, most first; several rules may reject one document."""

    def rules(batch: pa.RecordBatch) -> pa.Array:
        kept_ones = pa.repeat(KEPT, pc.sum(batch["kept"]).as_py() or 0)
        rejected = batch["rejections"].filter(pc.invert(batch["kept"]))
        return pa.concat_arrays([kept_ones, rejected.flatten().field("rule")])

    return most_first(*counted(rows, ["kept", "rejections"], rules, "documents by rule"))


# Rules that are not meant for small files of a repository, which therefore have no value in a healthy corpus.
_OF_BULK = frozenset(rule.name for members in RULE_SETS.values() for rule in members if rule.of_bulk)
_NAMED = 3  # rules in the note


def verdicts(rows: Rows, _properties: Mapping[str, str]) -> dict[str, int | float | str]:
    """Documents kept and rejected, and documents that pass or fail a rule without a value, by rule."""
    n_rows = count_by(rows, "kept")
    passing, failing = without_value(rows)
    figures: dict[str, int | float | str] = {"kept": n_rows[True,], "rejected": n_rows[False,]}
    for verb, by_rule in (("pass", passing), ("fail", failing)):
        figures |= {f"{verb} {rule} without a value": n for rule, n in sorted(by_rule.items())}
    return figures | ({NOTE: note} if (note := _note(passing, failing)) else {})


def without_value(rows: Rows) -> tuple[Counter[str], Counter[str]]:
    """Return how many documents pass each rule without a value, and how many it rejects for that."""
    passing, failing = Counter[str](), Counter[str]()
    batches = rows.read_locally(["rejections", "without_value"])
    if batches is None:
        frame = rows.frame()
        rules_passed = frame.select(F.explode("without_value").alias("rule"))
        failures_of = frame.select(F.explode("rejections").alias("failure")).where("failure.value IS NULL")
        for counter, rules in ((passing, rules_passed), (failing, failures_of.select("failure.rule"))):
            counter.update({row["rule"]: row["count"] for row in rules.groupBy("rule").count().collect()})
        return passing, failing
    for batch in batches:
        failures = batch["rejections"].flatten()
        failed_rules = failures.field("rule").filter(pc.is_null(failures.field("value")))
        for counter, rules in ((passing, batch["without_value"].flatten()), (failing, failed_rules)):
            counter.update({pair["values"]: pair["counts"] for pair in pc.value_counts(rules).to_pylist()})
    return passing, failing


def _note(passing: Counter[str], failing: Counter[str]) -> str:
    """Return a phrase on the rules that most documents pass or fail without a value, empty without any."""
    counts = [
        (n, verb, rule)
        for verb, by_rule in (("pass", passing), ("fail", failing))
        for rule, n in by_rule.items()
        if rule not in _OF_BULK
    ]
    counts.sort(key=lambda count: (-count[0], count[1:]))
    largest = ", ".join(f"{n:,} {verb} {rule}" for n, verb, rule in counts[:_NAMED])
    more = f" and {len(counts) - _NAMED} more" if len(counts) > _NAMED else ""
    return f"without a value {largest}{more}" if largest else ""


CHARTS: dict[str, Chart] = {
    "rejections": rejections,
    "limits": counts("rule", "limits that are shares, by rule"),
}
FIGURES: dict[str, Figures] = {"verdicts": verdicts}
