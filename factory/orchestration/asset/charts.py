"""A picture of a table for the Dagster UI: `chart_of(schema)` says which, by what the table's columns are.

Each chart takes a table's published rows, reduces them to a handful of numbers and draws those. Few rows are
counted here: as Spark's job, the picture of a small table cost as much as the table.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from factory.lake.schemas import TableSchema
from factory.orchestration.asset.drawing import bars, curves, over
from factory.orchestration.asset.rows import Rows

Chart = Callable[[Rows], str]
_Values = Callable[[pa.RecordBatch], pa.Array]  # what is counted of some rows: one each, none or several

QUANTILES = 20  # steps of a curve from the least value to the greatest
STEPS = 50  # of a similarity or share, from 0 to 1
SAMPLED_BYTES = 64 << 20  # of a table, from which on groups are sampled


def chart_of(schema: TableSchema) -> Chart:
    """The first chart in `_BY_COLUMNS` whose columns the table has; else that of its numbers, of its rows."""
    for columns, chart in _BY_COLUMNS:
        if set(columns) <= set(schema.names):
            return chart
    numbers = [field.name for field in schema.columns if pa.types.is_float64(field.type)]
    return quantiles(*numbers) if numbers else counts("partition", "rows by partition")


def counts(column: str, title: str) -> Chart:
    """How many rows have which value of a column."""

    def chart(rows: Rows) -> str:
        text = F.coalesce(F.col(column).cast("string"), F.lit("none"))
        counted = _counted(rows, [column], text, lambda of: of[column].cast(pa.string()).fill_null("none"))
        return bars(list(counted), list(counted.values()), title)

    return chart


def powers_of_two(column: str, title: str) -> Chart:
    """How many rows have which value of a column of counts, from one power of two up to the next."""

    def chart(rows: Rows) -> str:
        return _in_powers(_counted(rows, [column], _power(column), lambda of: _powers(of[column])), title)

    return chart


def sizes(column: str, title: str) -> Chart:
    """How many groups of rows that share a value have which size, in powers of two.

    Of a large table groups are sampled by a hash of the value, each with all its rows, and the title says so.
    """
    return _sizes(column, column, lambda of: of[column], title)


def quantiles(*columns: str) -> Chart:
    """Every number's distribution: a curve from its least value to its greatest."""

    def chart(rows: Rows) -> str:
        steps = F.lit([step / QUANTILES for step in range(QUANTILES + 1)])
        found = rows.frame().agg(*(F.percentile_approx(name, steps).alias(name) for name in columns)).first()
        assert found is not None
        measured = {name: found[name] for name in columns if found[name]}
        return curves(measured, "each measured value, by share of the documents")

    return chart


def rejections(rows: Rows) -> str:
    """How many documents each rule rejects; a document can fall to several."""
    reasons = F.when(F.col("kept"), F.array(F.lit(" kept"))).otherwise(F.col("rejections.rule"))

    def here(of: pa.RecordBatch) -> pa.Array:
        kept = pa.repeat(" kept", pc.sum(of["kept"]).as_py() or 0)
        return pa.concat_arrays(
            [kept, of["rejections"].filter(pc.invert(of["kept"])).flatten().field("rule")]
        )

    counted = _counted(rows, ["kept", "rejections"], F.explode(reasons), here)
    return bars([rule.strip() for rule in counted], list(counted.values()), "documents by rule")


def similarities(rows: Rows) -> str:
    """How many edges have which exact similarity, in steps of .02."""
    return _steps(rows, ["similarity"], "edges by similarity")


def decided(rows: Rows) -> str:
    """What happened to the documents of each dataset, with their share of it."""
    counted = _counted(
        rows,
        ["dataset", "reason"],
        F.concat_ws(": ", "dataset", "reason"),
        lambda of: pc.binary_join_element_wise(of["dataset"], of["reason"], ": "),
    )
    all_of = Counter[str]()
    for label, n in counted.items():
        all_of[label.split(":")[0]] += n
    told = {f"{label} {n / all_of[label.split(':')[0]]:.1%}": n for label, n in counted.items()}
    return bars(list(told), list(told.values()), "documents by dataset and reason")


def repositories(rows: Rows) -> str:
    """How many repositories lie in the largest component, before and after topics, and what became of all."""
    frame = rows.frame()
    n = frame.count()
    bar = {"all": n}
    for told, column in (("largest component", "component"), ("largest in a topic", "component_in_topic")):
        size = frame.groupBy(column).count().agg(F.max("count")).collect()[0][0] or 0
        bar[f"{told} {size / max(1, n):.1%}"] = size
    for row in frame.groupBy("reason").count().orderBy("reason").collect():
        bar[f"{row.reason} {row['count'] / n:.1%}"] = row["count"]
    return bars(list(bar), list(bar.values()), "repositories")


def shares(rows: Rows) -> str:
    """How many pairs of repositories share how much, by the one that shares more of itself."""
    return _steps(rows, ["left_share", "right_share"], "pairs of repositories by share")


def bucket_sizes(rows: Rows) -> str:
    """How many buckets have which size, in powers of two."""
    # What a bucket is hashed from says its band, so buckets of two bands are two.
    each = _sizes("buckets", "explode(buckets)", lambda of: of["buckets"].flatten(), "buckets by size")
    return each(rows)


def crowds(rows: Rows) -> str:
    """The largest buckets, by how their best document begins."""
    found = rows.frame().orderBy(F.desc("members"), "doc_id").collect()
    labels = [f"{row.dataset}: {_drawable(' '.join(row.text.split())[:40])}" for row in found]
    return bars(labels, [row.members for row in found], "distinct texts of the largest buckets")


def thresholds(rows: Rows) -> str:
    """What each threshold of similarity keeps, removes and joins."""
    told = rows.frame().orderBy("threshold").collect()
    panels = {
        "documents kept": [row.kept for row in told],
        "MB removed": [row.removed_bytes / 1e6 for row in told],
        "similar pairs": [row.similar_pairs for row in told],
        "largest component": [row.largest_component for row in told],
    }
    return over([row.threshold for row in told], panels, "by threshold of similarity")


def recall(rows: Rows) -> str:
    """Which share of the similar pairs shares a bucket: measured, and as the banding promises."""
    steps = rows.frame().orderBy("similarity").collect()
    panels = {
        "measured": [row.recall for row in steps],
        "predicted": [row.predicted for row in steps],
        "sampled pairs": [row.pairs for row in steps],
    }
    return over([row.similarity for row in steps], panels, "pairs that share a bucket, by similarity")


def fill(rows: Rows) -> str:
    """How full the packed sequences are, as shares of the fullest."""
    frame = rows.frame()
    fullest = frame.agg(F.max("n_tokens")).first()
    assert fullest is not None
    share = F.round(F.col("n_tokens") / (fullest[0] or 1), 1)
    counted = frame.groupBy(share.alias("share")).count().orderBy("share").collect()
    return bars(
        [f"{row.share:.0%}" for row in counted], [row["count"] for row in counted], "sequences by fill"
    )


def token_lengths(rows: Rows) -> str:
    """How many tokens of the tokenizer have which number of characters."""
    trained = rows.frame().first()
    lengths = Counter(map(len, json.loads(trained.tokenizer)["model"]["vocab"])) if trained else Counter()
    ordered = sorted(lengths)
    return bars([str(n) for n in ordered], [lengths[n] for n in ordered], "tokens by characters")


def _sizes(column: str, each: str, here: _Values, title: str) -> Chart:
    """How many of the values of a column, `each` of a row, are there how often, in powers of two."""

    def chart(rows: Rows) -> str:
        few = rows.here([column]) if rows.n_bytes < SAMPLED_BYTES else None
        if few is not None:
            return _in_powers(_tally([_powers(_value_counts(map(here, few)).field("counts"))]), title)
        one_of = max(1, rows.n_bytes // SAMPLED_BYTES)
        values = rows.frame().selectExpr(f"{each} AS value")
        if one_of > 1:
            values = values.where(F.pmod(F.xxhash64("value"), F.lit(one_of)) == 0)
        groups = values.groupBy("value").agg(F.count("*").alias("size"))
        counted = _grouped(groups.select(_power("size").alias("value")))
        return _in_powers(counted, title if one_of == 1 else f"{title}, of one in {one_of:,}")

    return chart


def _steps(rows: Rows, columns: Sequence[str], title: str) -> str:
    """How many rows have which share, the greatest of `columns`, in steps of .02."""

    def here(of: pa.RecordBatch) -> pa.Array:
        return pc.floor(pc.multiply(pc.max_element_wise(*of.columns), STEPS))

    counted = _counted(rows, columns, F.floor(F.greatest(F.lit(0.0), *columns) * STEPS), here)
    return bars([f"{step / STEPS:.2f}" for step in counted], list(counted.values()), title)


def _counted(rows: Rows, columns: Sequence[str], value: Column, here: _Values) -> dict[Any, int]:
    """How many rows have which value, in order: of a Spark expression, or what `here` makes of `columns`."""
    few = rows.here(columns)
    if few is not None:
        return _tally(map(here, few))
    return _grouped(rows.frame().select(value.alias("value")))


def _grouped(values: DataFrame) -> dict[Any, int]:
    counted = values.groupBy("value").agg(F.count("*").alias("n")).collect()
    return _ordered({row.value: row.n for row in counted})


def _tally(arrays: Iterable[pa.Array]) -> dict[Any, int]:
    counted = _value_counts(arrays)
    values, counts = (counted.field(name).to_pylist() for name in ("values", "counts"))
    return _ordered(dict(zip(values, counts, strict=True)))


def _value_counts(arrays: Iterable[pa.Array]) -> pa.StructArray:
    held = list(arrays)
    if held and pa.types.is_integer(held[0].type) and not any(it.null_count for it in held):
        # Sorting numbers is cheaper than hashing them.
        values, counts = np.unique(np.concatenate([it.to_numpy() for it in held]), return_counts=True)
        return pa.StructArray.from_arrays([pa.array(values), pa.array(counts)], ["values", "counts"])
    return pc.value_counts(pa.chunked_array(held) if held else pa.nulls(0))


def _ordered(counted: dict[Any, int]) -> dict[Any, int]:
    """In the order of the values, that of none first."""
    return dict(sorted(counted.items(), key=lambda it: (it[0] is not None, it[0])))


def _in_powers(counted: dict[int, int], title: str) -> str:
    return bars([_power_of_two(power) for power in counted], list(counted.values()), title)


def _power(column: str) -> Column:
    """The power of two that a count reaches; of none, and of zero, that of one."""
    return F.floor(F.log2(F.greatest(F.col(column), F.lit(1)))).cast("int")


def _powers(counted: pa.Array) -> pa.Array:
    """`_power` of each of an array."""
    return pa.array(np.frexp(np.maximum(pc.fill_null(counted, 1), 1))[1] - 1)


def _drawable(text: str) -> str:
    """A text as a label: a dollar would begin a formula, and the font has the letters of Europe."""
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
    (("reason",), counts("reason", "documents by reason")),
    (("component",), sizes("component", "components by size")),
    (("members", "bands"), crowds),
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
