"""A picture of a table for the Dagster UI: `chart_of(schema)` says which, by what the table's columns are.

Each chart takes a table's published rows, reduces them in Spark to a handful of numbers and draws those.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from factory.lake.schemas import TableSchema
from factory.orchestration.drawing import bars, curves, over

Chart = Callable[[DataFrame], str]

QUANTILES = 20  # steps of a curve from the least value to the greatest


def chart_of(schema: TableSchema) -> Chart:
    """The first chart in `_BY_COLUMNS` whose columns the table has; else that of its numbers, of its rows."""
    for columns, chart in _BY_COLUMNS:
        if set(columns) <= set(schema.names):
            return chart
    numbers = [field.name for field in schema.columns if pa.types.is_float64(field.type)]
    return quantiles(*numbers) if numbers else counts("partition", "rows by partition")


def counts(column: str, title: str) -> Chart:
    """How many rows have which value of a column."""

    def chart(rows: DataFrame) -> str:
        return _counted(rows, F.coalesce(F.col(column).cast("string"), F.lit("none")), title)

    return chart


def powers_of_two(column: str, title: str) -> Chart:
    """How many rows have which value of a column of counts, from one power of two up to the next."""

    def chart(rows: DataFrame) -> str:
        power = F.floor(F.log2(F.greatest(F.col(column), F.lit(1)))).cast("int")
        counted = rows.groupBy(power.alias("power")).count().orderBy("power").collect()
        return bars([_power_of_two(row.power) for row in counted], [row["count"] for row in counted], title)

    return chart


def sizes(*columns: str, title: str) -> Chart:
    """How many groups of rows that share the columns have which size, in powers of two."""

    def chart(rows: DataFrame) -> str:
        return powers_of_two("size", title)(rows.groupBy(*columns).agg(F.count(F.lit(1)).alias("size")))

    return chart


def quantiles(*columns: str) -> Chart:
    """Every number's distribution: a curve from its least value to its greatest."""

    def chart(rows: DataFrame) -> str:
        steps = F.lit([step / QUANTILES for step in range(QUANTILES + 1)])
        found = rows.agg(*(F.percentile_approx(name, steps).alias(name) for name in columns)).first()
        assert found is not None
        measured = {name: found[name] for name in columns if found[name]}
        return curves(measured, "each measured value, by share of the documents")

    return chart


def rejections(rows: DataFrame) -> str:
    """How many documents each rule rejects; a document can fall to several."""
    reasons = F.when(F.col("kept"), F.array(F.lit(" kept"))).otherwise(F.col("rejections.rule"))
    return _counted(rows.select(F.explode(reasons).alias("rule")), F.col("rule"), "documents by rule")


def similarities(rows: DataFrame) -> str:
    """How many edges have which exact similarity, in steps of .02."""
    step = F.format_number(F.floor(F.col("similarity") * 50) / 50, 2)
    return _counted(rows, step, "edges by similarity")


def decided(rows: DataFrame) -> str:
    """What happened to the documents of each dataset, with their share of it."""
    counted = rows.groupBy("dataset", "reason").count().orderBy("dataset", "reason").collect()
    all_of = Counter[str]()
    for row in counted:
        all_of[row.dataset] += row["count"]
    labels = [f"{row.dataset}: {row.reason} {row['count'] / all_of[row.dataset]:.1%}" for row in counted]
    return bars(labels, [row["count"] for row in counted], "documents by dataset and reason")


def repositories(rows: DataFrame) -> str:
    """How many repositories lie in the largest component, before and after topics, and what became of all."""
    n = rows.count()
    bar = {"all": n}
    for told, column in (("largest component", "component"), ("largest in a topic", "component_in_topic")):
        size = rows.groupBy(column).count().agg(F.max("count")).collect()[0][0] or 0
        bar[f"{told} {size / max(1, n):.1%}"] = size
    for row in rows.groupBy("reason").count().orderBy("reason").collect():
        bar[f"{row.reason} {row['count'] / n:.1%}"] = row["count"]
    return bars(list(bar), list(bar.values()), "repositories")


def shares(rows: DataFrame) -> str:
    """How many pairs of repositories share how much, by the one that shares more of itself."""
    step = F.format_number(F.floor(F.greatest("left_share", "right_share") * 50) / 50, 2)
    return _counted(rows, step, "pairs of repositories by share")


def bucket_sizes(rows: DataFrame) -> str:
    """How many buckets have which size, in powers of two."""
    one_each = rows.select(F.posexplode("buckets").alias("band", "bucket"))
    return sizes("band", "bucket", title="buckets by size")(one_each)


def crowds(rows: DataFrame) -> str:
    """The largest buckets, by how their best document begins."""
    found = rows.orderBy(F.desc("members"), "doc_id").collect()
    labels = [f"{row.dataset}: {_drawable(' '.join(row.text.split())[:40])}" for row in found]
    return bars(labels, [row.members for row in found], "distinct texts of the largest buckets")


def thresholds(rows: DataFrame) -> str:
    """What each threshold of similarity keeps, removes and joins."""
    told = rows.orderBy("threshold").collect()
    panels = {
        "documents kept": [row.kept for row in told],
        "MB removed": [row.removed_bytes / 1e6 for row in told],
        "similar pairs": [row.similar_pairs for row in told],
        "largest component": [row.largest_component for row in told],
    }
    return over([row.threshold for row in told], panels, "by threshold of similarity")


def recall(rows: DataFrame) -> str:
    """Which share of the similar pairs shares a bucket: measured, and as the banding promises."""
    steps = rows.orderBy("similarity").collect()
    panels = {
        "measured": [row.recall for row in steps],
        "predicted": [row.predicted for row in steps],
        "sampled pairs": [row.pairs for row in steps],
    }
    return over([row.similarity for row in steps], panels, "pairs that share a bucket, by similarity")


def fill(rows: DataFrame) -> str:
    """How full the packed sequences are, as shares of the fullest."""
    fullest = rows.agg(F.max("n_tokens")).first()
    assert fullest is not None
    share = F.round(F.col("n_tokens") / (fullest[0] or 1), 1)
    counted = rows.groupBy(share.alias("share")).count().orderBy("share").collect()
    return bars(
        [f"{row.share:.0%}" for row in counted], [row["count"] for row in counted], "sequences by fill"
    )


def token_lengths(rows: DataFrame) -> str:
    """How many tokens of the tokenizer have which number of characters."""
    trained = rows.first()
    lengths = Counter(map(len, json.loads(trained.tokenizer)["model"]["vocab"])) if trained else Counter()
    ordered = sorted(lengths)
    return bars([str(n) for n in ordered], [lengths[n] for n in ordered], "tokens by characters")


def _counted(rows: DataFrame, value: Column, title: str) -> str:
    """Rows by value, in the order of the values as text."""
    counted = rows.groupBy(value.alias("value")).count().orderBy("value").collect()
    return bars([row.value.strip() for row in counted], [row["count"] for row in counted], title)


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
    (("component",), sizes("component", title="components by size")),
    (("members", "bands"), crowds),
    (("buckets",), bucket_sizes),
    (("document_frequency",), powers_of_two("document_frequency", "tokens by document frequency")),
    (("signature",), powers_of_two("n_distinct", "documents by distinct tokens")),
    (("segments", "n_tokens"), fill),
    (("ordinal", "doc_offset"), sizes("doc_id", title="documents by pieces")),
    (("tokenizer",), token_lengths),
    (("cycle_size",), powers_of_two("cycle_size", "files by the size of their cycle")),
    (("n_tokens",), powers_of_two("n_tokens", "documents by tokens")),
    (("n_bytes",), powers_of_two("n_bytes", "documents by bytes")),
)
