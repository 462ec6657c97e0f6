"""Charts of tables for the Dagster UI; `chart_of(schema)` picks one by the columns of the table.

Each chart reads a few columns of the published rows as Arrow batches, reduces them to a handful of numbers
and draws those. For a table beyond the limits of `factory.orchestration.asset.rows` it shows a sample and
says so in its title.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from factory.lake.schemas.base import TableSchema
from factory.orchestration.asset.drawing import bars, curves, over
from factory.orchestration.asset.rows import Rows

Chart = Callable[[Rows], str]
_Values = Callable[[pa.RecordBatch], pa.Array]  # the values to count in a batch, any number per row

KEPT = "kept"  # the label that leads a chart, in a color of its own
QUANTILES = 20  # steps of a quantile curve
STEPS = 50  # bins of a similarity or share between 0 and 1
SAMPLED_BYTES = 64 << 20  # compressed size of a sample


def chart_of(schema: TableSchema) -> Chart:
    """Return the first chart of `_BY_COLUMNS` whose columns the table has, else quantiles or row counts."""
    for columns, chart in _BY_COLUMNS:
        if set(columns) <= set(schema.names):
            return chart
    numbers = [field.name for field in schema.columns if pa.types.is_float64(field.type)]
    return quantiles(*numbers) if numbers else by_partition


def counts(column: str, title: str) -> Chart:
    """Rows by value of a column of words, most frequent first; the word `kept` leads."""

    def chart(rows: Rows) -> str:
        return _most_first(*_counted(rows, [column], lambda batch: _labels(batch[column]), title))

    return chart


def by_partition(rows: Rows) -> str:
    """Rows by partition, in the order of the keys."""
    counted, title = _counted(
        rows, ["partition"], lambda batch: _labels(batch["partition"]), "rows by partition"
    )
    return bars(list(counted), list(counted.values()), title)


def powers_of_two(column: str, title: str) -> Chart:
    """Rows by value of a column of counts, in bins of powers of two."""

    def chart(rows: Rows) -> str:
        return _in_powers(*_counted(rows, [column], lambda batch: _powers(batch[column]), title))

    return chart


def sizes(column: str, title: str) -> Chart:
    """Groups of rows with one value of `column`, by size in powers of two.

    In a large table, groups are sampled by a hash of the value, each with all its rows; the title says so.
    """
    return _sizes(column, column, lambda batch: batch[column], title)


def quantiles(*columns: str) -> Chart:
    """Quantile curves, one panel per column."""

    def chart(rows: Rows) -> str:
        batches, one_of = _sample(rows, columns)
        held = list(batches)
        steps = np.linspace(0, 1, QUANTILES + 1)
        measured = {}
        for name in columns:
            values = pa.chunked_array([batch[name] for batch in held], pa.float64()).drop_null().to_numpy()
            if len(values):
                measured[name] = np.quantile(values, steps, method="lower").tolist()
        return curves(measured, _titled("each measured value, by share of the documents", one_of))

    return chart


def rejections(rows: Rows) -> str:
    """Documents kept, then those rejected by each rule, most first; several rules may reject one document."""

    def rules(batch: pa.RecordBatch) -> pa.Array:
        kept = pa.repeat(KEPT, pc.sum(batch["kept"]).as_py() or 0)
        rejected = batch["rejections"].filter(pc.invert(batch["kept"]))
        return pa.concat_arrays([kept, rejected.flatten().field("rule")])

    return _most_first(*_counted(rows, ["kept", "rejections"], rules, "documents by rule"))


def similarities(rows: Rows) -> str:
    """Edges by exact similarity, in steps of .02."""
    return _steps(rows, ["similarity"], "edges by similarity")


def decided(rows: Rows) -> str:
    """Documents by dataset and reason, most first within a dataset, with their share of it."""
    counted, title = _counted(
        rows,
        ["dataset", "reason"],
        lambda batch: pc.binary_join_element_wise(batch["dataset"], batch["reason"], ": "),
        "documents by dataset and reason",
    )
    by_dataset: dict[str, dict[str, int]] = {}
    for label, n in counted.items():
        dataset, _, reason = label.partition(": ")
        by_dataset.setdefault(dataset, {})[reason] = n
    bar, kept = dict[str, int](), list[str]()
    for dataset, reasons in by_dataset.items():
        for reason, n in _by_count(reasons):
            label = f"{dataset}: {reason} {n / sum(reasons.values()):.1%}"
            bar[label] = n
            kept += [label] if reason == KEPT else []
    return bars(list(bar), list(bar.values()), title, kept)


def repositories(rows: Rows) -> str:
    """Repositories in the largest component, before and after topics, and by reason."""
    table = _table(rows, ["component", "component_in_topic", "reason"])
    n = len(table)
    bar = {"all": n}
    for label, column in (("largest component", "component"), ("largest in a topic", "component_in_topic")):
        largest = max(_tally(table[column].chunks).values(), default=0)
        bar[f"{label} {largest / max(1, n):.1%}"] = largest
    reasons = _by_count(_tally(table["reason"].chunks))
    bar |= {f"{reason} {count / n:.1%}": count for reason, count in reasons}
    kept = [f"{reason} {count / n:.1%}" for reason, count in reasons if reason == KEPT]
    return bars(list(bar), list(bar.values()), "repositories", kept)


def shares(rows: Rows) -> str:
    """Pairs of repositories by the larger of their two shares."""
    return _steps(rows, ["left_share", "right_share"], "pairs of repositories by share")


def bucket_sizes(rows: Rows) -> str:
    """Buckets by size, in powers of two."""
    # The band is part of a bucket's hash, so buckets of two bands never share a value.
    chart = _sizes("buckets", "explode(buckets)", lambda batch: batch["buckets"].flatten(), "buckets by size")
    return chart(rows)


def largest_buckets(rows: Rows) -> str:
    """The largest buckets, by the beginning of their best document."""
    table = _table(rows, ["members", "doc_id", "dataset", "text"])
    found = table.sort_by([("members", "descending"), ("doc_id", "ascending")]).to_pylist()
    labels = [f"{row['dataset']}: {_drawable(' '.join(row['text'].split())[:40])}" for row in found]
    return bars(labels, [row["members"] for row in found], "distinct texts of the largest buckets")


def thresholds(rows: Rows) -> str:
    """Documents kept, bytes removed, pairs and largest component, by threshold of similarity."""
    columns = ["threshold", "kept", "removed_bytes", "similar_pairs", "largest_component"]
    swept = _table(rows, columns).sort_by("threshold").to_pydict()
    panels = {
        "documents kept": swept["kept"],
        "MB removed": [n_bytes / 1e6 for n_bytes in swept["removed_bytes"]],
        "similar pairs": swept["similar_pairs"],
        "largest component": swept["largest_component"],
    }
    return over(swept["threshold"], panels, "by threshold of similarity")


def recall(rows: Rows) -> str:
    """Share of similar pairs that share a bucket: measured, and predicted by the banding."""
    columns = ["similarity", "recall", "predicted", "pairs"]
    steps = _table(rows, columns).sort_by("similarity").to_pydict()
    panels = {
        "measured": steps["recall"],
        "predicted": steps["predicted"],
        "sampled pairs": steps["pairs"],
    }
    return over(steps["similarity"], panels, "pairs that share a bucket, by similarity")


def fill(rows: Rows) -> str:
    """Packed sequences by fill, relative to the fullest."""
    counted, title = _counted(rows, ["n_tokens"], lambda batch: batch["n_tokens"], "sequences by fill")
    fullest = max(counted, default=0) or 1
    by_share = Counter[float]()
    for n_tokens, n in counted.items():
        by_share[round(n_tokens / fullest, 1)] += n
    return bars([f"{share:.0%}" for share in by_share], list(by_share.values()), title)


def token_lengths(rows: Rows) -> str:
    """Tokens of the tokenizer by number of characters."""
    trained = _table(rows, ["tokenizer"])["tokenizer"].to_pylist()
    lengths = Counter(map(len, json.loads(trained[0])["model"]["vocab"])) if trained else Counter()
    ordered = sorted(lengths)
    return bars([str(n) for n in ordered], [lengths[n] for n in ordered], "tokens by characters")


def _sizes(column: str, value: str, local_values: _Values, title: str) -> Chart:
    """Values by number of occurrences, in powers of two; `value` is their SQL expression."""

    def chart(rows: Rows) -> str:
        batches = rows.read_locally([column]) if rows.n_bytes < SAMPLED_BYTES else None
        if batches is not None:
            one_of, values = 1, [local_values(batch) for batch in batches]
        else:
            one_of = _one_of(rows)
            found = rows.frame().selectExpr(f"{value} AS value")
            values = found.where(F.pmod(F.xxhash64("value"), F.lit(one_of)) == 0).toArrow()["value"].chunks
        return _in_powers(_tally([_powers(_value_counts(values).field("counts"))]), _titled(title, one_of))

    return chart


def _steps(rows: Rows, columns: Sequence[str], title: str) -> str:
    """Rows by the greatest of the share `columns`, in steps of .02."""

    def steps(batch: pa.RecordBatch) -> pa.Array:
        return pc.floor(pc.multiply(pc.max_element_wise(*batch.columns), STEPS))

    counted, shown = _counted(rows, columns, steps, title)
    return bars([f"{step / STEPS:.2f}" for step in counted], list(counted.values()), shown)


def _counted(rows: Rows, columns: Sequence[str], values: _Values, title: str) -> tuple[dict[Any, int], str]:
    """Count the values of all batches, in order; also return the title, which names a sample."""
    batches, one_of = _sample(rows, columns)
    return _tally(map(values, batches)), _titled(title, one_of)


def _sample(rows: Rows, columns: Sequence[str]) -> tuple[Iterable[pa.RecordBatch], int]:
    """Return the rows as batches; a large table yields one row in so many."""
    batches = rows.read_locally(columns)
    if batches is not None:
        return batches, 1
    one_of = _one_of(rows)
    found = rows.frame().select(*columns)
    return (found if one_of == 1 else found.sample(1 / one_of, seed=0)).toArrow().to_batches(), one_of


def _table(rows: Rows, columns: Sequence[str]) -> pa.Table:
    """All rows of a table that is always small."""
    batches = rows.read_locally(columns)
    if batches is None:
        return rows.frame().select(*columns).toArrow()
    held = list(batches)
    return pa.Table.from_batches(held) if held else pa.table({name: pa.nulls(0) for name in columns})


def _labels(column: pa.Array) -> pa.Array:
    return column.cast(pa.string()).fill_null("none")


def _by_count(counted: Mapping[str, int]) -> list[tuple[str, int]]:
    """Sort by count, largest first and `KEPT` before all; ties by name."""
    return sorted(counted.items(), key=lambda it: (it[0] != KEPT, -it[1], it[0]))


def _most_first(counted: Mapping[str, int], title: str) -> str:
    ordered = dict(_by_count(counted))
    return bars(list(ordered), list(ordered.values()), title, [KEPT])


def _one_of(rows: Rows) -> int:
    return max(1, rows.n_bytes // SAMPLED_BYTES)


def _titled(title: str, one_of: int) -> str:
    return title if one_of == 1 else f"{title}, of one in {one_of:,}"


def _tally(arrays: Iterable[pa.Array]) -> dict[Any, int]:
    counted = _value_counts(arrays)
    values, numbers = (counted.field(name).to_pylist() for name in ("values", "counts"))
    return dict(sorted(zip(values, numbers, strict=True), key=lambda it: (it[0] is not None, it[0])))


def _value_counts(arrays: Iterable[pa.Array]) -> pa.StructArray:
    held = list(arrays)
    if held and pa.types.is_integer(held[0].type) and not any(it.null_count for it in held):
        # Sorting numbers is cheaper than hashing them.
        values, numbers = np.unique(np.concatenate([it.to_numpy() for it in held]), return_counts=True)
        return pa.StructArray.from_arrays([pa.array(values), pa.array(numbers)], ["values", "counts"])
    return pc.value_counts(pa.chunked_array(held) if held else pa.nulls(0))


def _in_powers(counted: dict[int, int], title: str) -> str:
    return bars([_power_of_two(power) for power in counted], list(counted.values()), title)


def _powers(counted: pa.Array) -> pa.Array:
    """Return floor(log2(count)) of each element, 0 for null and zero."""
    return pa.array(np.frexp(np.maximum(pc.fill_null(counted, 1), 1))[1] - 1)


def _drawable(text: str) -> str:
    """Make a text a label: matplotlib reads dollars as formulas, and its font has European letters only."""
    return "".join(it if it.isprintable() and it < "\u0530" else "?" for it in text).replace("$", r"\$")


def _power_of_two(power: int) -> str:
    if power < 10:
        return str(1 << power)
    return f"{1 << (power - 10)}K" if power < 20 else f"{1 << (power - 20)}M"


_BY_COLUMNS: tuple[tuple[tuple[str, ...], Chart], ...] = (
    (("rejections",), rejections),
    (("resolution",), counts("resolution", "symbols by what they resolve to")),
    (("satisfied",), counts("satisfied", "dependencies by whether the order satisfies them")),
    (("left", "right", "similarity"), similarities),
    (("left_share", "right_share"), shares),
    (("threshold", "largest_component"), thresholds),
    (("recall", "predicted"), recall),
    (("component_in_topic", "reason"), repositories),
    (("kept", "duplicate_of"), decided),
    (("reason", "n_records"), counts("reason", "rows of rejected records by reason")),
    (("reason",), counts("reason", "documents by reason")),
    (("component",), sizes("component", "components by size")),
    (("members", "bands"), largest_buckets),
    (("buckets",), bucket_sizes),
    (("document_frequency",), powers_of_two("document_frequency", "tokens by document frequency")),
    (("signature",), powers_of_two("n_distinct", "documents by distinct tokens")),
    (("segments", "n_tokens"), fill),
    (("ordinal", "doc_offset"), sizes("doc_id", "documents by pieces")),
    (("tokenizer",), token_lengths),
    (("cycle_size",), powers_of_two("cycle_size", "files by the size of their cycle")),
    (("n_tokens",), powers_of_two("n_tokens", "documents by tokens")),
    (("n_bytes",), powers_of_two("n_bytes", "documents by bytes")),
)
