"""The names of `metadata` that the first documents of a dataset have, and the predicates on unknown names.

A predicate on a name that no document has gives all documents the same verdict, so a typing mistake would
keep or reject everything. If later documents have the name, set `missing` on the predicate.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from factory.filters.metadata import FACTS, METADATA, Predicate, WordPredicate
from factory.filters.rounds import Round
from factory.filters.rule import Rule
from factory.orchestration.declare.filters import FilterFields
from factory.orchestration.declare.ingest_dataset import Dataset
from factory.orchestration.declare.ingest_facts import FactsFields
from factory.orchestration.declare.located_yaml import YamlPath
from factory.orchestration.declare.synthesis import Synthesis
from factory.suggestions import nearest, quoted
from factory.synthesis.kinds.registry import load_kind
from factory.synthesis.records import FACTS as RECORD_FACTS
from spark_udfs.ingest.records import EMPTY_FIELDS
from spark_udfs.ingest.rows import DERIVED_FROM, Row

# What readers state of some documents only, or the driver of all files of a folder.
_OF_PAGES = (
    *("url", "host", "title", "canonical", "robots", "noai", "tdm_reservation", "charset", "charset_from"),
    *("extractor", "main_share", "link_density", "replacement_chars", "languages", "truncated"),
)
_OF_FOLDERS = ("split",)
_SHOWN = 12


@dataclass(frozen=True)
class UnknownMetadata:
    """A predicate on a name of `metadata` that no first document has: its place, and a sentence."""

    place: YamlPath
    sentence: str


@dataclass(frozen=True)
class MetadataNames:
    """The names of `metadata` that the first documents of a dataset have, and the fields of its records."""

    names: tuple[str, ...] = ()
    n_documents: int = 0
    fields: tuple[str, ...] = ()
    worker: str = ""  # of the job that makes the documents, which has no other names than these

    @classmethod
    def of_rows(cls, entry: Dataset, rows: Sequence[Row], fields: Sequence[str]) -> MetadataNames:
        """Return the names in the first rows of its reader, and the names that its declaration keeps."""
        documents = [row for row in rows if "reason" not in row]
        own = [name for row in documents for name, _ in row.get("metadata") or ()]
        names = dict.fromkeys([*getattr(entry, "metadata", ()), *own])
        return cls(tuple(names), len(documents), tuple(fields))

    @classmethod
    def of_records(cls, job: Synthesis, folder: Path) -> MetadataNames:
        """Return the names in the records of a job: the facts of all jobs, and the values of its worker."""
        kind = load_kind(job.worker, folder, job.worker_options)
        return cls((*kind.schema.names, *RECORD_FACTS), n_documents=1, worker=job.worker)


def unknown_names(entry: Dataset, first: MetadataNames, folder: Path) -> Iterator[UnknownMetadata]:
    """Yield the predicates of a dataset on names of `metadata` that none of its first documents has.

    `first` are the names of the dataset, or of the one that it is made from; the paths of its facts are
    relative to `folder`. A predicate with `missing` is always accepted.
    """
    if not first.n_documents:
        return
    possible = {*first.names, *_OF_FOLDERS, *(_OF_PAGES if entry.reader.of_pages else ())}
    possible |= {DERIVED_FROM} if entry.from_ is not None else set()
    possible |= {EMPTY_FIELDS} if getattr(entry.options, "template", None) is not None else set()
    reported_fields: set[str] = set()
    for place, field, rule in _predicates(entry):
        name = field.removeprefix(METADATA)
        if name == field or name in possible or field in reported_fields or _says_missing(rule):
            continue
        reported_fields.add(field)
        some = f"only {quoted(first.names[:_SHOWN])}" if first.names else "and no other `metadata`"
        if first.worker:
            sentence = f"The records of worker `{first.worker}` have no `{field}`, {some}."
            yield UnknownMetadata(place, f"{sentence} {_nearest_or_known(name, first.names)}")
            continue
        subject = "document has" if first.n_documents == 1 else f"{first.n_documents:,} documents have"
        if entry.from_ is not None:
            subject = f"documents of `{entry.from_}` have"
        assert isinstance(entry, FactsFields)
        facts = [fact_name for source in entry.facts for fact_name in source.names(folder)]
        fields = first.fields if entry.from_ is None else ()
        remedy = _remedy(name, sorted(possible), fields, facts)
        yield UnknownMetadata(place, f"The first {subject} no `{field}`, {some}. {remedy}")


def _remedy(name: str, names: Sequence[str], fields: Sequence[str], facts: Sequence[str]) -> str:
    if name in fields:
        return f"The records have a field of this name: add `metadata: [{name}]` to the dataset."
    if name in facts:
        return f"Did you mean `{FACTS}{name}`?"
    guess = next(iter(nearest(name, names, n=1)), None)
    question = f"Did you mean `{METADATA}{guess}`? " if guess else ""
    return (
        f"{question}If later documents have it, add `missing: keep` or `missing: reject` to the predicate, "
        "for documents without it."
    )


def _nearest_or_known(name: str, names: Sequence[str]) -> str:
    guess = next(iter(nearest(name, names, n=1)), None)
    return f"Did you mean `{METADATA}{guess}`?" if guess else "Name one of these."


def _predicates(entry: Dataset) -> Iterator[tuple[YamlPath, str, Rule]]:
    """Yield the predicates of a dataset and its variants, each with its place."""
    assert isinstance(entry, FilterFields)
    options: list[tuple[YamlPath, FilterFields]] = [((), entry)]
    options += [(("variants", name), variant) for name, variant in entry.variants.items()]
    for place, filters in options:
        rounds: list[tuple[YamlPath, Round]] = [
            (("rounds", number), round_of_rules) for number, round_of_rules in enumerate(filters.rounds)
        ]
        for inner, round_of_rules in rounds or [((), filters)]:
            for field, rule in round_of_rules.predicates.items():
                yield (*place, *inner, "predicates", field), field, rule


def _says_missing(rule: Rule) -> bool:
    is_listed = isinstance(rule, WordPredicate) and rule.names_missing
    return isinstance(rule, Predicate) and (is_listed or rule.missing_policy is not None)
