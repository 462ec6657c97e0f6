"""Signals of documents, and verdicts on them: measure once, decide as often as limits change.

`measure` reads texts and the columns that predicates name, and returns `signals.<dataset>`: every value of
every rule. `decide` reads only signals and returns `filtered.<dataset>`: every document with every rule it
fails. Invariant: both keep each document exactly once. Where a rule does not apply, the value is null and the
document passes; 0 is a limit like any other.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import pyarrow as pa
from pyspark.cloudpickle import register_pickle_by_value
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from factory.errors import ConfigurationError
from factory.filters.language import LABEL, SCORE, LanguageScore
from factory.filters.metadata import (
    AND,
    METADATA,
    OR,
    LicensePredicate,
    NumberPredicate,
    WordPredicate,
    column,
)
from factory.filters.rule import Rule, TextRule, bounds
from factory.filters.text import Text
from factory.lake.schemas.base import TableSchema
from factory.lake.schemas.filters import FILTERED, signals_table
from spark_udfs.filters import python_rules, verdicts
from spark_udfs.filters import signals as udf


def signals_schema(rules: Sequence[Rule]) -> TableSchema:
    """Return the schema of the signals that `rules` need, each once, in the order of the rules."""
    kinds = {name: kind for rule in rules for name, kind in rule.signals.items()}
    numbers, words = ([name for name in kinds if kinds[name] == kind] for kind in ("number", "word"))
    schema = signals_table(numbers, words)
    measured = {name: _about(rule) for rule in rules for name in rule.signals if kinds[name] == "number"}
    return replace(schema, descriptions={**schema.descriptions, **measured})


def _about(rule: Rule) -> str:
    """Return the first sentence of a rule's docstring, and the unit of its number."""
    sentence = " ".join((inspect.getdoc(type(rule)) or "").partition("\n\n")[0].split())
    return f"{sentence} Unit: {rule.unit}.".strip()


def measure(documents: DataFrame, rules: Sequence[Rule]) -> DataFrame:
    """Return the signals of all `rules` for every document, in the columns of `signals_schema(rules)`.

    `documents` has `doc_id`, the columns that predicates name, `text` if a rule measures it, and optionally
    `partition` and, to exempt small files, `repository` and `path`. No other column is read.
    """
    schema = signals_schema(rules).columns
    of_text = [rule for rule in rules if isinstance(rule, TextRule)]
    of_bulk = [rule.name for rule in of_text if rule.of_bulk]
    carried = {"doc_id": F.col("doc_id"), "partition": _partition(documents)}
    carried |= {name: _field(rule) for rule in rules if rule not in of_text for name in rule.signals}
    if not of_text:
        return documents.select(*(carried[name].alias(name) for name in schema.names))
    if of_bulk and {"repository", "path"} <= set(documents.columns):
        carried |= {"repository": F.col("repository"), "path": F.col("path")}
    inputs = documents.select("text", *(column.alias(name) for name, column in carried.items()))
    function = partial(udf.measure, schema=schema, of_bulk=of_bulk, in_python=_in_python(of_text))
    return inputs.mapInArrow(function, from_arrow_schema(schema))


def decide(signals: DataFrame, rules: Sequence[Rule]) -> DataFrame:
    """Return every document with all of `rules` it fails, in their order: FILTERED.

    A rejection names the rule, the value and the violated bound. Raises ConfigurationError if `signals` lacks
    a rule's values.
    """
    missing = [rule.name for rule in rules if not rule.signals.keys() <= set(signals.columns)]
    if missing:
        raise ConfigurationError(
            f"The signals have no values of {', '.join(f'`{name}`' for name in missing)}. "
            "Measure the documents with these rules first."
        )
    values = [_value(rule).cast("double").alias(f"value_{at}") for at, rule in enumerate(rules)]
    limits = [(rule.name, *bounds(rule.limit)) for rule in rules]
    function = partial(verdicts.decide, limits=limits, schema=FILTERED.columns)
    inputs = signals.select("doc_id", "partition", *values)
    return inputs.mapInArrow(function, from_arrow_schema(FILTERED.columns))


def _in_python(rules: Sequence[TextRule]) -> Callable[[pa.Array, pa.Array], dict[str, pa.Array]] | None:
    """Return a function that measures the `rules` without a native signal, None if there are none."""
    chosen = [rule for rule in rules if rule.in_python]
    for rule in chosen:
        if rule.source is not None:  # no worker can import a user's file, so the code travels with the rule
            register_pickle_by_value(sys.modules[type(rule).__module__])
    return partial(python_rules.measure, rules=chosen, view=Text) if chosen else None


def _partition(documents: DataFrame) -> Column:
    partition = F.col("partition") if "partition" in documents.columns else F.lit(None).cast("string")
    return partition.alias("partition")


def _field(rule: Rule) -> Column:
    """Return the column of `raw` that a predicate tests."""
    if rule.name.startswith(METADATA):
        return F.col("metadata")[rule.name.removeprefix(METADATA)]
    if rule.name == "created_at":
        return F.unix_micros("created_at") / F.lit(1e6)
    return F.col(rule.name).cast("double" if isinstance(rule, NumberPredicate) else "string")


def _value(rule: Rule) -> Column:
    match rule:
        case LanguageScore(wanted=wanted) if wanted:
            unwanted = ~F.col(LABEL).isin(*wanted)
            return F.when(unwanted, F.lit(0.0)).otherwise(F.col(SCORE))
        case WordPredicate():
            return _allows(rule, F.col(column(rule.name))).cast("double")
        case _:
            return F.col(rule.name)


def _allows(rule: WordPredicate, word: Column) -> Column:
    """Return whether `rule` allows `word`: its `allows` as a Spark expression."""

    def listed(name: Column) -> Column:
        wanted = name.rlike(rule.wanted) if rule.one_of else F.lit(True)
        return wanted & ~name.rlike(rule.unwanted)

    allowed = listed(word)
    if isinstance(rule, LicensePredicate):
        names = F.split(F.regexp_replace(word, "[()]", ""), f"{OR}|{AND}")
        alternatives = F.exists(F.split(word, OR), lambda choice: F.forall(F.split(choice, AND), listed))
        allowed = F.when(word.contains("("), F.forall(names, listed)).otherwise(alternatives)
    return F.when(word.isNull(), F.lit(rule.allows(None))).otherwise(allowed)
