"""The part of filters: rules and limits of datasets and variants, in one round or several.

A dataset without rules gets the default rules of its kind. A variant declares only its differences: with
`rules` or `rounds` it has filters of its own; otherwise it takes the dataset's filters and overrides their
`limits`, `languages` and `predicates`. A variant with a `threshold` or `keep` differs only in which similar
documents are removed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from factory.filters.rounds import Round
from factory.orchestration.chain.filters import FilterRound, Filters
from factory.orchestration.chain.link import Link
from factory.orchestration.declare.dedup import DECISIONS
from factory.orchestration.declare.part import Declared, Entry, Part, PartFields

RULES = {"prose": ["gopher_quality", "gopher_repetition"], "code": ["code"]}  # default rules by kind
FILTERS = tuple(Round.model_fields)
_EXAMPLE = {"prose": "word_count: [50, 100000]", "code": "code_letters: 0.5"}


class FilterFields(PartFields, Round):
    """Filters in one round, or in `rounds`."""

    rounds: tuple[Round, ...] = Field(default=(), description="filters in rounds, instead of one")

    @model_validator(mode="before")
    @classmethod
    def _one_round_or_several(cls, values: Any) -> Any:
        plain_filters = [name for name in FILTERS if isinstance(values, Mapping) and name in values]
        if plain_filters and "rounds" in values:
            raise PydanticCustomError(
                "beside_rounds",
                "`{field}` cannot be combined with `rounds`. Move it into one of the rounds.",
                {"field": plain_filters[0]},
            )
        return values

    def in_rounds(self) -> tuple[Round, ...]:
        """The declared rounds; plain filters are a single round."""
        return self.rounds or (Round(**{name: getattr(self, name) for name in FILTERS}),)


class DatasetFilters(FilterFields):
    """The filters of a dataset, which its variants inherit."""

    @model_validator(mode="before")
    @classmethod
    def _defaults_reach_variants(cls, values: Any) -> Any:
        if not isinstance(values, Mapping):
            return values
        values = dict(values)
        if "rounds" not in values:
            # Report a wrong kind itself, not the limits that then lack a rule.
            values.setdefault("rules", RULES.get(str(values.get("kind")), [*chain(*RULES.values())]))
        variants = values.get("variants")
        if isinstance(variants, Mapping):
            values["variants"] = {name: _over(values, variant) for name, variant in variants.items()}
        return values


class FiltersPart(Part):
    """Rounds of filters."""

    dataset = DatasetFilters
    variant = FilterFields

    def links(self, entry: Entry, file: Declared) -> Sequence[Link]:
        """Return a link a round; a variant reads the signals of its dataset where they cover its rules."""
        return filters_of(entry, file).links()

    def comment(self, kind: str) -> Iterator[str]:
        yield f"# limits: {{{_EXAMPLE[kind]}}} # docs/filters.md of the repository lists all rules"


def filters_of(entry: Entry, file: Declared) -> Filters:
    """Return the filters of a dataset or of a variant with filters of its own."""
    if entry.variant is None:
        return Filters(rounds_of(entry))
    measured = file.chains[entry.base].link(FilterRound).filters.measuring(entry.base)
    return Filters(rounds_of(entry), measured)


def rounds_of(entry: Entry) -> tuple[Round, ...]:
    """Return the declared rounds of filters of a dataset or variant."""
    filters = entry.values
    assert isinstance(filters, FilterFields)
    return filters.in_rounds()


def _over(dataset: Mapping[str, Any], variant: Any) -> Any:
    """The values of a dataset, replaced by its variant's."""
    variant = {} if variant is None else variant
    options = [name for name in DECISIONS if isinstance(variant, Mapping) and name in variant]
    if options:
        filters = [name for name in (*FILTERS, "rounds") if name in variant]
        if filters:
            raise PydanticCustomError(
                "beside_decisions",
                "A variant has filters of its own or a `{option}`, and this one has `{filter}` too. "
                "Split it into two variants, or give its group the `{option}`.",
                {"field": "variants", "option": options[0], "filter": filters[0]},
            )
        return variant
    if not isinstance(variant, Mapping) or "rules" in variant or "rounds" in variant:
        return variant
    if "rounds" in dataset:
        if any(name in variant for name in FILTERS):
            raise PydanticCustomError(
                "rounds_of_variant",
                "Its dataset has `rounds`, so it is unclear which round this changes. "
                "Give the variant `rounds` of its own.",
                {"field": "variants"},
            )
        return {**variant, "rounds": dataset["rounds"]}
    filters_of_dataset = {name: dataset[name] for name in FILTERS if name in dataset}
    for name in ("limits", "predicates"):
        own, inherited = variant.get(name), filters_of_dataset.get(name)
        if isinstance(own, Mapping) and isinstance(inherited, Mapping):
            filters_of_dataset[name] = {**inherited, **own}
            variant = {field: entries for field, entries in variant.items() if field != name}
    return {**filters_of_dataset, **variant}
