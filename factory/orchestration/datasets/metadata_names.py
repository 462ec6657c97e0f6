"""Which names of `metadata` the first documents of a dataset have, and which predicates read another one.

A predicate on a name that no document has decides alike on all of them, so a slip of the pen would keep or
reject everything. Whoever knows that a name comes later says so by what becomes of documents without it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from factory.filters.metadata import FACTS, METADATA, Predicate, WordPredicate
from factory.filters.rounds import Round
from factory.filters.rule import Rule
from factory.orchestration.datasets.dataset import Dataset, FilterOptions
from factory.orchestration.datasets.located_yaml import YamlPath
from factory.suggestions import nearest, quoted
from spark_udfs.ingest.rows import Row

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


def unknown_names(
    entry: Dataset, rows: Sequence[Row], fields: Sequence[str], folder: Path
) -> Iterator[UnknownMetadata]:
    """Yield the predicates of a dataset on names of `metadata` that none of its first documents has.

    `rows` are the first rows of its reader, `fields` those of its records; the paths of its facts are
    relative to `folder`. A predicate that says what becomes of documents without the name is right whatever
    they have.
    """
    documents = [row for row in rows if "reason" not in row]
    if not documents:
        return
    own = [name for row in documents for name, _ in row.get("metadata") or ()]
    names_declared = getattr(entry, "metadata", ())
    names = dict.fromkeys([*names_declared, *own])
    possible = {*names, *_OF_FOLDERS, *(_OF_PAGES if entry.reader.of_pages else ())}
    reported_fields: set[str] = set()
    for place, field, rule in _predicates(entry):
        name = field.removeprefix(METADATA)
        if name == field or name in possible or field in reported_fields or _says_missing(rule):
            continue
        reported_fields.add(field)
        some = f"only {quoted(list(names)[:_SHOWN])}" if names else "and no other `metadata`"
        n_documents = len(documents)
        first = "document has" if n_documents == 1 else f"{n_documents:,} documents have"
        fact = f"The first {first} no `{field}`, {some}."
        facts = [fact_name for source in entry.facts for fact_name in source.names(folder)]
        yield UnknownMetadata(place, f"{fact} {_remedy(name, sorted(possible), fields, facts)}")


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


def _predicates(entry: Dataset) -> Iterator[tuple[YamlPath, str, Rule]]:
    """Yield the predicates of a dataset and its variants, each with its place."""
    options: list[tuple[YamlPath, FilterOptions]] = [((), entry)]
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
    return isinstance(rule, Predicate) and (is_listed or rule.missing is not None)
