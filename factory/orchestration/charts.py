"""Pictures of a table for the Dagster UI, as Markdown images drawn by matplotlib.

Each chart takes a table's published rows, reduces them in Spark to a handful of numbers and draws those.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

_INK, _PAPER = "#3b5b92", "#ffffff"


def lengths(rows: DataFrame, column: str = "n_bytes") -> str:
    """How many documents have which length, in powers of two."""
    power = F.floor(F.log2(F.greatest(F.col(column), F.lit(1))))
    counted = rows.groupBy(power.alias("power")).count().orderBy("power").collect()
    labels = [_power_of_two(int(row.power)) for row in counted]
    return _bars(labels, [row["count"] for row in counted], f"documents by {column}")


def rejections(rows: DataFrame) -> str:
    """How many documents each rule rejects; a document can fall to several."""
    by_rule = (
        rows.select(F.explode("rejections.rule").alias("rule"))
        .groupBy("rule")
        .count()
        .orderBy("rule")
        .collect()
    )
    kept = rows.where("kept").count()
    return _bars(
        ["kept", *[row.rule for row in by_rule]], [kept, *[row["count"] for row in by_rule]], "documents"
    )


def reasons(rows: DataFrame) -> str:
    """How many documents were kept or removed for each reason."""
    counted = rows.groupBy("reason").count().orderBy("reason").collect()
    return _bars([row.reason for row in counted], [row["count"] for row in counted], "documents")


def component_sizes(rows: DataFrame) -> str:
    """How many components have which number of documents."""
    sizes = (
        rows.groupBy("component").count().groupBy("count").agg(F.count(F.lit(1)).alias("n")).orderBy("count")
    )
    counted = sizes.collect()
    return _bars([str(row["count"]) for row in counted], [row.n for row in counted], "components by size")


def similarities(rows: DataFrame) -> str:
    """How many edges have which exact similarity, in steps of .02."""
    step = F.round(F.floor(F.col("similarity") * 50) / 50, 2)
    counted = rows.groupBy(step.alias("from_")).count().orderBy("from_").collect()
    return _bars(
        [f"{row.from_:.2f}" for row in counted], [row["count"] for row in counted], "edges by similarity"
    )


def satisfied(rows: DataFrame) -> str:
    """How many dependencies the order satisfies and how many it breaks."""
    counted = {row.satisfied: row["count"] for row in rows.groupBy("satisfied").count().collect()}
    return _bars(["satisfied", "broken"], [counted.get(True, 0), counted.get(False, 0)], "dependencies")


def fill(rows: DataFrame) -> str:
    """How full the packed sequences are, as shares of the fullest."""
    fullest = rows.agg(F.max("n_tokens")).first()
    assert fullest is not None
    share = F.round(F.col("n_tokens") / (fullest[0] or 1), 1)
    counted = rows.groupBy(share.alias("share")).count().orderBy("share").collect()
    return _bars(
        [f"{row.share:.0%}" for row in counted], [row["count"] for row in counted], "sequences by fill"
    )


def _power_of_two(power: int) -> str:
    if power < 10:
        return str(1 << power)
    return f"{1 << (power - 10)}K" if power < 20 else f"{1 << (power - 20)}M"


def _bars(labels: Sequence[str], values: Sequence[int], title: str) -> str:
    """A horizontal bar chart as a Markdown image."""
    from matplotlib.figure import Figure  # half a second to import, and only a finished run draws

    figure = Figure(figsize=(7, 0.8 + 0.28 * max(len(labels), 1)), facecolor=_PAPER, layout="constrained")
    axes = figure.subplots()
    drawn = axes.barh(range(len(labels)), values, color=_INK)
    axes.set_yticks(range(len(labels)), labels)
    axes.invert_yaxis()
    axes.bar_label(drawn, [f" {value:,}" for value in values])
    axes.set_xlim(right=max([*values, 1]) * 1.15)
    axes.set_title(title, loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=90)
    return f"![{title}](data:image/png;base64,{base64.b64encode(picture.getvalue()).decode()})"
