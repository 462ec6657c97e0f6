"""Signals of documents, and verdicts on them: measure once, decide as often as limits change.

`measure` reads texts and the columns that predicates name, and returns a part of `signals.<dataset>`: every
value of the rules that read documents alone, or the values of one rule that reads a table too. `join_parts`
puts the parts together. `decide` reads only signals and returns `filtered.<dataset>`: every document with
every rule it fails. Invariant: all keep each document exactly once. Where a rule does not apply, the value is
null, and `missing` of the rule decides; a document that it keeps has the rule in `without_value`. 0 is a
limit like any other.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce

from pyspark.cloudpickle import register_pickle_by_value
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from factory.errors import ConfigurationError, NotFound
from factory.filters.joined_rule import JoinedRule
from factory.filters.limits import bounds
from factory.filters.metadata import (
    AND,
    FACTS,
    METADATA,
    OR,
    LicensePredicate,
    Predicate,
    WordPredicate,
    column,
)
from factory.filters.rule import Rule, TextRule
from factory.filters.table_rule import Measurer, TableRule
from factory.filters.text import Text
from factory.lake.names import TableName
from factory.lake.schemas.base import TableSchema
from factory.lake.schemas.filters import FILTERED, signals_table
from factory.lake.schemas.images import IMAGES, PLACEHOLDER
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


def measure(
    documents: DataFrame, rules: Sequence[Rule], tables: Mapping[TableName, DataFrame] | None = None
) -> DataFrame:
    """Return the signals of `rules`, all of one part, for every document: `signals_schema(rules)`.

    `documents` has `doc_id`, the columns that predicates name, `text` if a rule measures it, and optionally
    `partition` and, to exempt small files, `repository` and `path`. No other column is read. `tables` are the
    rules' tables. Of documents with a column `images`, text is measured without the placeholders of pictures.
    Raises ConfigurationError for a table without the column of a predicate.
    """
    schema = signals_schema(rules).columns
    carried = {"doc_id": F.col("doc_id"), "partition": _partition(documents)}
    for rule in rules:
        if isinstance(rule, Predicate):
            if rule.reads:
                documents = _with_values(documents, rule, (tables or {})[rule.reads["values"]])
            carried |= {name: _field(rule) for name in rule.signals}
    documents, joined_columns = _with_joined(documents, rules, tables or {})
    carried.update(joined_columns)
    of_text = [rule for rule in rules if isinstance(rule, TextRule)]
    measurers = [*_python_rules(of_text), *_table_rules(rules, tables or {})]
    if not of_text and not measurers:
        return documents.select(*(carried[name].alias(name) for name in schema.names))
    of_bulk = [rule.name for rule in of_text if rule.of_bulk]
    if of_bulk and {"repository", "path"} <= set(documents.columns):
        carried |= {"repository": F.col("repository"), "path": F.col("path")}
    # A placeholder stands for a picture, so no rule on texts sees one.
    text = (
        F.translate("text", PLACEHOLDER, "").alias("text") if IMAGES in documents.columns else F.col("text")
    )
    inputs = documents.select(text, *(column.alias(name) for name, column in carried.items()))
    function = partial(udf.measure, schema=schema, of_bulk=of_bulk, measurers=measurers)
    return inputs.mapInArrow(function, from_arrow_schema(schema))


def by_part(rules: Sequence[Rule]) -> dict[str, list[Rule]]:
    """Return the rules by part of the signals; no rules are the part "", which holds only documents."""
    parts: dict[str, list[Rule]] = {} if rules else {"": []}
    for rule in rules:
        parts.setdefault(rule.part, []).append(rule)
    return parts


def join_parts(parts: Mapping[str, DataFrame]) -> DataFrame:
    """Return the parts of the signals, by name, as one table of the first part's documents.

    Its rows raise NotFound, which names the part, where a part has no row of a document: otherwise the
    document would be lost, or pass rules that never saw it.
    """
    (_, first), *further = parts.items()
    return reduce(lambda rows, part: _beside(rows, *part), further, first)


def _beside(rows: DataFrame, name: str, part: DataFrame) -> DataFrame:
    values = part.drop("partition").withColumn("is_measured", F.lit(True))
    error = f"{NotFound.__module__}.{NotFound.__qualname__}"
    sentence = f"{name} lacks documents that the other signals have. Materialize {name} too."
    lacking = F.raise_error(F.lit(f"\n{error}: {sentence}\n")).cast("boolean")
    with_values = rows.join(values, "doc_id", "left")
    return with_values.where(F.coalesce("is_measured", lacking)).drop("is_measured")


def decide(signals: DataFrame, rules: Sequence[Rule]) -> DataFrame:
    """Return every document with all of `rules` it fails, in their order: FILTERED.

    A rejection names the rule, the value and the violated bound; a document rejected because it has no value
    has null as the value. Raises ConfigurationError if `signals` lacks
    a rule's values, and for a limit that is a share, which `factory.filters.shares` resolves first.
    """
    missing = [rule.name for rule in rules if not rule.signals.keys() <= set(signals.columns)]
    if missing:
        raise ConfigurationError(
            f"The signals have no values of {', '.join(f'`{name}`' for name in missing)}. "
            "Measure the documents with these rules first."
        )
    values = [value_of(rule).alias(f"value_{at}") for at, rule in enumerate(rules)]
    ceilings = [
        F.col(rule.ceiling).alias(f"ceiling_{number}") for number, rule in enumerate(rules) if rule.ceiling
    ]
    limits = [
        verdicts.RuleLimit(
            rule.name, *bounds(rule.bounds), rule.rejects_missing, has_ceilings=rule.ceiling is not None
        )
        for rule in rules
    ]
    function = partial(verdicts.decide, limits=limits, schema=FILTERED.columns)
    inputs = signals.select("doc_id", "partition", *values, *ceilings)
    return inputs.mapInArrow(function, from_arrow_schema(FILTERED.columns))


def value_of(rule: Rule) -> Column:
    """Return the number of a rule, as a double, from the columns of the signals."""
    if isinstance(rule, WordPredicate):
        return _allows(rule, F.col(column(rule.name))).cast("double")
    return F.expr(rule.expression).cast("double")


def _python_rules(rules: Sequence[TextRule]) -> Iterator[Measurer]:
    """Yield a function that measures the `rules` without a native signal, if there are any."""
    chosen = [rule for rule in rules if rule.in_python]
    for rule in chosen:
        _send_with_code(rule)
    if chosen:
        yield partial(python_rules.measure, rules=chosen, view=Text)


def _table_rules(rules: Sequence[Rule], tables: Mapping[TableName, DataFrame]) -> Iterator[Measurer]:
    """Yield the function of each rule that reads tables."""
    for rule in rules:
        if isinstance(rule, TableRule):
            _send_with_code(rule)
            yield rule.measurer({role: tables[table] for role, table in rule.reads.items()})


def _send_with_code(rule: Rule) -> None:
    """No worker can import a user's file, so the code of its rules travels with them."""
    if rule.source is not None:
        register_pickle_by_value(sys.modules[type(rule).__module__])


def _with_values(documents: DataFrame, rule: Predicate, table: DataFrame) -> DataFrame:
    """Return the documents with the column of another table that a predicate tests."""
    if rule.name.startswith(FACTS):
        values = table.select("doc_id", F.col("facts")[rule.field].alias(column(rule.name)))
        return documents.join(values, "doc_id", "left")
    if not {"doc_id", rule.field} <= set(table.columns):
        raise ConfigurationError(
            f"{rule.reads['values']} lacks `doc_id` or `{rule.field}`, which `{rule.name}` compares. "
            f"Its columns are {', '.join(table.columns)}."
        )
    values = table.select("doc_id", F.col(rule.field).alias(column(rule.name)))
    return documents.join(values, "doc_id", "left")


def _with_joined(
    documents: DataFrame, rules: Sequence[Rule], tables: Mapping[TableName, DataFrame]
) -> tuple[DataFrame, dict[str, Column]]:
    """Return the documents with the signals of rules that join tables, and these columns by name."""
    columns: dict[str, Column] = {}
    for rule in rules:
        if isinstance(rule, JoinedRule) and not rule.signals.keys() <= columns.keys():
            values = rule.values(documents, {role: tables[table] for role, table in rule.reads.items()})
            documents = documents.join(values.select("doc_id", *rule.signals), "doc_id", "left")
            columns |= {name: F.col(name) for name in rule.signals}
    return documents, columns


def _partition(documents: DataFrame) -> Column:
    partition = F.col("partition") if "partition" in documents.columns else F.lit(None).cast("string")
    return partition.alias("partition")


def _field(rule: Predicate) -> Column:
    """Return the signal of a predicate, from the documents."""
    if rule.reads:
        field = F.col(column(rule.name))
    elif rule.name.startswith(METADATA):
        field = F.col("metadata")[rule.name.removeprefix(METADATA)]
    else:
        field = F.col(rule.name)
    [kind] = rule.signals.values()
    if rule.name == "created_at":
        return F.unix_micros(field) / F.lit(1e6)
    return field.cast("double" if kind == "number" else "string")


def _allows(rule: WordPredicate, word: Column) -> Column:
    """Return whether `rule` allows `word`, null without one: its `allows` as a Spark expression."""

    def listed(name: Column) -> Column:
        wanted = name.rlike(rule.wanted) if rule.one_of else F.lit(True)
        return wanted & ~name.rlike(rule.unwanted)

    allowed = listed(word)
    if isinstance(rule, LicensePredicate):
        names = F.split(F.regexp_replace(word, "[()]", ""), f"{OR}|{AND}")
        alternatives = F.exists(F.split(word, OR), lambda choice: F.forall(F.split(choice, AND), listed))
        allowed = F.when(word.contains("("), F.forall(names, listed)).otherwise(alternatives)
    return F.when(word.isNotNull(), allowed)
