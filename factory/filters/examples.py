"""Examples of a class: documents that rules and predicates point at, for a classifier to learn from.

    Examples(table="reference")                                              # every document
    Examples(table="web", predicates={"metadata.label": ["advert"]})         # by a column
    Examples(table="web", rules=["advertising"], fails=2)                    # weak labels: at least two rules
    Examples(table="web", rules=["advertising"])                             # documents that pass
    Examples(table="web", predicates={"filtered.web__strict.kept": {"at_least": 1}})  # by a table

An example has the fields of a round of filters, so anything that can filter a dataset can label one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field, model_validator
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from factory.errors import ConfigurationError, NotFound
from factory.filters.documents_table import documents_table
from factory.filters.metadata import METADATA
from factory.filters.rounds import Round
from factory.filters.rule import Rule
from factory.filters.shares import by_share
from factory.filters.stage import by_part, decide, join_parts, measure
from factory.lake import names
from factory.lake.names import TableName
from factory.models.sampling import unit_interval

SAMPLE_BYTES = 16_000_000  # of a class
SAMPLED_OF_A_DOCUMENT = 20_000  # characters
_CANDIDATES = 32  # times SAMPLE_BYTES that rules may read to find examples


class Examples(Round):
    """Documents of a table that show a class, because they pass the rules or fail some."""

    table: str = Field(description="a dataset, or a table of documents such as `deduplicated.web`")
    fails: int = Field(
        default=0, ge=0, description="rules that a document fails at least; 0: it passes all of them"
    )

    @model_validator(mode="before")
    @classmethod
    def _name_alone(cls, values: object) -> object:
        return {"table": values} if isinstance(values, str) else values

    @model_validator(mode="after")
    def _fails_a_rule(self) -> Examples:
        for rule, share in by_share(self.build()):
            raise ValueError(
                f"The limit of `{rule.name}` is {share}, and examples are judged before a "
                "dataset has bounds. Give a value."
            )
        n_rules = len(self.build()) - len(self.predicates)
        if self.fails > n_rules:
            raise ValueError(
                f"`fails: {self.fails}` asks for more rules than the {n_rules} named. Name more `rules`."
            )
        return self

    @property
    def documents(self) -> TableName:
        """The table of documents; raises ConfigurationError for a name that is none."""
        return documents_table(self.table)

    @property
    def tables(self) -> set[TableName]:
        """Every table that its documents and rules need."""
        return {self.documents, *(table for rule in self._judges() for table in rule.reads.values())}

    @property
    def _predicates(self) -> set[str]:
        return {rule.name for rule in self.predicates.values()}

    def _judges(self) -> list[Rule]:
        """The rules, as they judge the dataset of the documents."""
        return [rule.of_dataset(names.base(self.documents.name)) for rule in self.build()]

    def sample(self, tables: Mapping[TableName, DataFrame], source: str | None, n_bytes: int) -> pa.Table:
        """Return (doc_id, source, key, text) of at most `n_bytes` of examples, by the order of a hash.

        `source` is the field that documents are split by, by default the repository, host or folder. Runs
        three jobs: the total size decides which share of the documents is measured, and their lengths which
        texts are collected. Predicates select among all documents, because they read no text. Raises NotFound
        if no document with a text is left.
        """
        documents = tables[self.documents].where("text IS NOT NULL").withColumn("unit", unit_interval())
        predicates = [rule for rule in self._judges() if rule.name in self._predicates]
        members = _judged(documents, predicates, tables, "kept")
        total = members.agg(F.sum("n_bytes").alias("total")).collect()[0].total
        if not total:
            which = "that its predicates select" if self.predicates else "with a text"
            raise NotFound(f"{self.documents} has no document {which}, so it shows no class. Name others.")
        candidates = members.where(F.col("unit") < _CANDIDATES * n_bytes / total)
        cut = F.substring("text", 1, SAMPLED_OF_A_DOCUMENT)
        lengths = self._members(candidates, tables).select("unit", F.octet_length(cut).alias("length"))
        sampled_documents = candidates.where(F.col("unit") <= _last_within(lengths.toArrow(), n_bytes))
        return (
            self._members(sampled_documents, tables)
            .select("doc_id", _source(source).alias("source"), "key", cut.alias("text"))
            .toArrow()
            .sort_by("doc_id")
        )

    def _members(self, documents: DataFrame, tables: Mapping[TableName, DataFrame]) -> DataFrame:
        """The documents that fit the rules; the predicates have selected `documents`."""
        rules = [rule for rule in self._judges() if rule.name not in self._predicates]
        condition = f"size(rejections) >= {self.fails}" if self.fails else "kept"
        return _judged(documents, rules, tables, condition)


def collect_examples(
    classes: Mapping[str, Examples],
    tables: Mapping[TableName, DataFrame],
    source: str | None = None,
    n_bytes: int = SAMPLE_BYTES,
) -> pa.Table:
    """Return (doc_id, class, source, key, text): examples of every class, at most `n_bytes` of each.

    A document that shows several classes shows none, and is left out. Raises ConfigurationError if that
    leaves a class without examples.
    """
    samples = [
        sample.append_column("class", pa.repeat(name, len(sample)))
        for name, examples in classes.items()
        for sample in [examples.sample(tables, source, n_bytes)]
    ]
    every = pa.concat_tables(samples)
    counts = every.group_by("doc_id").aggregate([("doc_id", "count")])
    ambiguous = counts.filter(pc.greater(counts["doc_id_count"], 1))["doc_id"].combine_chunks()
    of_one_class = every.filter(pc.invert(pc.is_in(every["doc_id"], ambiguous)))
    classes_without = set(every["class"].unique().to_pylist()) - set(
        of_one_class["class"].unique().to_pylist()
    )
    if classes_without:
        raise ConfigurationError(
            f"Every example of `{min(classes_without)}` is one of another class too ({len(ambiguous):,} "
            "documents), so it shows neither. Name documents that show one class."
        )
    return of_one_class


def _last_within(lengths: pa.Table, n_bytes: int) -> float:
    """Return the `unit` of the last document that fits into `n_bytes`, in ascending order of `unit`."""
    ascending = lengths.sort_by("unit")
    n_fitting = int(np.searchsorted(np.cumsum(ascending["length"].to_numpy()), n_bytes, side="right"))
    return float(ascending["unit"][n_fitting - 1].as_py()) if n_fitting else -1.0


def _judged(
    documents: DataFrame, rules: Sequence[Rule], tables: Mapping[TableName, DataFrame], condition: str
) -> DataFrame:
    """Return the documents with a verdict by `rules` that meets `condition`, on FILTERED."""
    if not rules:
        return documents
    parts = {
        part: measure(documents, rules_of_part, tables) for part, rules_of_part in by_part(rules).items()
    }
    return documents.join(
        decide(join_parts(parts), rules).where(condition).select("doc_id"), "doc_id", "left_semi"
    )


def _source(field: str | None) -> Column:
    """The field that documents are split by; by default the first of repository, host and folder."""
    if field is not None:
        in_metadata = field.startswith(METADATA)
        column = F.col("metadata")[field.removeprefix(METADATA)] if in_metadata else F.col(field)
        return F.coalesce(column.cast("string"), F.col("source"))
    host = F.nullif(F.regexp_extract("key", r"^[a-zA-Z][a-zA-Z0-9+.-]*://([^/?#]+)", 1), F.lit(""))
    folder = F.nullif(F.regexp_extract("key", r"^(.+)/[^/]*$", 1), F.lit(""))
    return F.coalesce("repository", host, folder, F.col("source"))
