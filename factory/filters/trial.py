"""Rules tried on a few documents without Spark: how many documents their limits would remove.

Rules that read a table, load a model or run a user's code are not tried, and neither is a limit that is a
share of all documents.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import chain
from typing import Any

import pyarrow as pa

from factory.filters.limits import Bottom, Top, bounds
from factory.filters.metadata import (
    FACTS,
    METADATA,
    NumberPredicate,
    Predicate,
    WordPredicate,
    WrittenNumberPredicate,
)
from factory.filters.rule import Rule, TextRule
from factory.filters.rules.language import LanguageScore
from factory.filters.text import Text
from spark_udfs.filters import python_rules, signals, verdicts

Document = Mapping[str, Any]  # the columns of a raw document by name; `metadata` as pairs


@dataclass(frozen=True)
class Trial:
    """The numbers of documents, of removed ones in all and by rule, and the rules that were not tried."""

    n_documents: int
    n_removed: int
    n_by_rule: Mapping[str, int]  # with the limit, `word_count (50 to 100000)`; most first
    not_tried: tuple[str, ...]


def try_rounds(rounds: Sequence[Sequence[Rule]], documents: Sequence[Document]) -> Trial:
    """Return which of `documents` fail the limits of `rounds`, as a run decides it.

    A round sees the documents that the earlier ones kept. A document may fail several rules of a round.
    """
    counts: Counter[str] = Counter()
    survivors = list(documents)
    for rules in rounds:
        failures = _failures([rule for rule in rules if _is_cheap(rule)], survivors)
        counts.update(chain.from_iterable(failures))
        survivors = [document for document, row in zip(survivors, failures, strict=True) if not row]
    others = dict.fromkeys(rule.name for rules in rounds for rule in rules if not _is_cheap(rule))
    return Trial(len(documents), len(documents) - len(survivors), dict(counts.most_common()), tuple(others))


def _failures(rules: Sequence[Rule], documents: Sequence[Document]) -> list[list[str]]:
    """Return for each document the rules that it fails, each with its limit."""
    if not rules or not documents:
        return [[] for _ in documents]
    columns = _text_columns([rule for rule in rules if isinstance(rule, TextRule)], documents)
    for rule in rules:
        if isinstance(rule, Predicate):
            columns[rule.name] = pa.array([_number(rule, document) for document in documents], pa.float64())
    names = [rule.name for rule in rules]
    values = pa.RecordBatch.from_arrays([columns[name] for name in names], names)
    limits = [verdicts.RuleLimit(rule.name, *bounds(rule.bounds), rule.rejects_missing) for rule in rules]
    rejections, _ = verdicts.judge(values, limits)
    label = {rule.name: _label(rule) for rule in rules}
    return [[label[failure["rule"]] for failure in row] for row in rejections.to_pylist()]


def _label(rule: Rule) -> str:
    return f"`{rule.name}`" if isinstance(rule, WordPredicate) else f"`{rule.name}` ({rule.limit})"


def _is_cheap(rule: Rule) -> bool:
    """Whether a rule needs the document alone, and no model."""
    if (
        rule.reads
        or rule.name.startswith(FACTS)
        or isinstance(rule.limit, Top | Bottom)
        or rule.source is not None
    ):
        return False
    if isinstance(rule, WrittenNumberPredicate):
        return not rule.dates  # Spark reads more forms of dates than Python
    return isinstance(rule, Predicate) or (isinstance(rule, TextRule) and not isinstance(rule, LanguageScore))


def _text_columns(rules: Sequence[TextRule], documents: Sequence[Document]) -> dict[str, pa.Array]:
    """Return the value of each rule for each text, null where it does not apply."""
    names = ("doc_id", "text", "repository", "path")
    batch = pa.record_batch(
        {name: pa.array([document.get(name) for document in documents], pa.string()) for name in names}
    )
    schema = pa.schema([(rule.name, pa.float64()) for rule in rules])
    of_bulk = [rule.name for rule in rules if rule.of_bulk]
    in_python = [rule for rule in rules if rule.in_python]
    measurers = [partial(python_rules.measure, rules=in_python, view=Text)] if in_python else []
    [measures] = signals.measure(iter([batch]), schema, of_bulk, measurers)
    return dict(zip(schema.names, measures.columns, strict=True))


def _number(rule: Predicate, document: Document) -> float:
    """Return the number that a predicate judges, NaN without one."""
    cell = _cell(rule, document)
    if isinstance(rule, WordPredicate):
        return math.nan if cell is None else float(rule.allows(str(cell)))
    assert isinstance(rule, NumberPredicate)
    if isinstance(cell, datetime):
        return cell.timestamp()
    try:
        number = math.nan if cell is None else float(cell)
    except ValueError:
        return math.nan
    return number if math.isfinite(number) else math.nan


def _cell(rule: Predicate, document: Document) -> Any:
    if rule.name.startswith(METADATA):
        return dict(document.get("metadata") or ()).get(rule.name.removeprefix(METADATA))
    return document.get(rule.name)
