"""Signals of documents, and verdicts on them: measure once, decide as often as limits change.

`measure` reads texts and gives `signals.<dataset>`: every value of every rule. `decide` reads signals only
and gives `filtered.<dataset>`: every document with every rule it fails. Invariant: both keep each document
exactly once. What a rule does not apply to has a null value and passes; a limit of 0 is a limit like any
other.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema, from_arrow_type

from factory.errors import ConfigurationError
from factory.filters.rule import AtLeast, AtMost, Between, Limit, Rule
from factory.lake.schemas import FILTERED, signals_schema
from spark_udfs import signals as udf


def measure(documents: DataFrame, rules: Sequence[Rule]) -> DataFrame:
    """The values of all `rules` for every document: `signals_schema` of their names.

    `documents` has `doc_id` and `text`, and perhaps `partition`; no other column is read.
    """
    names = [rule.name for rule in rules]
    function = partial(udf.measure, names=names)
    return _inputs(documents).mapInArrow(function, from_arrow_schema(signals_schema(names).columns))


def decide(signals: DataFrame, rules: Sequence[Rule]) -> DataFrame:
    """Every document with every one of `rules` it fails, in their order: FILTERED.

    A rejection names the rule, the value and the bound the value lies beyond. Raises ConfigurationError if
    `signals` lacks a rule's values.
    """
    missing = [rule.name for rule in rules if rule.name not in signals.columns]
    if missing:
        raise ConfigurationError(
            f"The signals have no values of {', '.join(f'`{name}`' for name in missing)}. "
            "Measure the documents with these rules first."
        )
    rejections = F.array_compact(F.array(*(_rejection(rule) for rule in rules)))
    return signals.select(
        "doc_id",
        rejections.cast(from_arrow_type(FILTERED.columns.field("rejections").type)).alias("rejections"),
        "partition",
    ).select("doc_id", (F.size("rejections") == 0).alias("kept"), "rejections", "partition")


def _inputs(documents: DataFrame) -> DataFrame:
    partition = F.col("partition") if "partition" in documents.columns else F.lit(None).cast("string")
    return documents.select("doc_id", "text", partition.alias("partition"))


def _rejection(rule: Rule) -> Column:
    """What `rule` has against a document; null if nothing."""
    value = F.col(rule.name)
    bound = _violated(value, rule.limit)
    return F.when(
        bound.isNotNull(),
        F.struct(F.lit(rule.name).alias("rule"), value.alias("value"), bound.alias("threshold")),
    )


def _violated(value: Column, limit: Limit) -> Column:
    """The bound of `limit` that `value` violates; null if there is none, or no value."""
    match limit:
        case AtLeast(low):
            return F.when(value < low, F.lit(float(low)))
        case AtMost(high):
            return F.when(value > high, F.lit(float(high)))
        case Between(low, high):
            return F.when(value < low, F.lit(float(low))).when(value > high, F.lit(float(high)))
