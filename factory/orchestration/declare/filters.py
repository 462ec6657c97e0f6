"""The part of filters: rules and limits of datasets and variants, in one round or several.

A dataset without rules gets the default rules of its kind. A variant declares only its differences: with
`rules` or `rounds` it has filters of its own; otherwise it takes the dataset's filters and overrides their
`limits`, `languages` and `predicates`. A variant with a `threshold` or `keep` differs only in which similar
documents are removed.

A round of several may have further fields, which other parts register as steps: tables that are made before
the round, and read by rules of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field, create_model, model_validator
from pydantic_core import PydanticCustomError

from factory.errors import ConfigurationError
from factory.filters.rounds import Round
from factory.frozen_model import FrozenModel
from factory.orchestration.declare.dedup_fields import DECISIONS
from factory.orchestration.declare.ingest_dataset import PartFields
from factory.orchestration.declare.located_yaml import InvalidValue
from factory.orchestration.declare.part import Declared, Entry, Part

if TYPE_CHECKING:
    from factory.orchestration.chain.filters_preparation import Preparation, PreparedRound
    from factory.orchestration.chain.link import Link

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
            values.setdefault("rules", _default_rules(values))
        variants = values.get("variants")
        if isinstance(variants, Mapping):
            values["variants"] = {name: _over(values, variant) for name, variant in variants.items()}
        return values


def _default_rules(values: Mapping[str, Any]) -> list[str]:
    if values.get("format") == "images":
        return ["images"]  # captions are shorter than the texts that other rules want
    return RULES.get(str(values.get("kind")), [*chain(*RULES.values())])


class RoundStep:
    """A field of rounds, and the tables that it makes before a round."""

    fields: ClassVar[type[FrozenModel]]

    def preparation(
        self, options: Any, entry: Entry, earlier: Sequence[Round], file: Declared
    ) -> Preparation:
        """Return the preparation for a value of the field, after `earlier` rounds.

        Raises ConfigurationError for a value that does not fit.
        """
        raise NotImplementedError

    @property
    def field(self) -> str:
        """The name of the field."""
        [name] = self.fields.model_fields
        return name


class FiltersPart(Part):
    """Rounds of filters, with the fields of `steps`."""

    def __init__(self, steps: Sequence[RoundStep] = ()) -> None:
        self.steps = steps
        self.dataset = with_steps(DatasetFilters, steps)
        self.variant = with_steps(FilterFields, steps)

    def check(self, file: Declared) -> None:
        """Raise InvalidValue for a field that two rounds have, or a round with two of them."""
        for entry in file.entries:
            place_of: dict[str, int] = {}
            for number, values in enumerate(entry.fields(FilterFields).rounds):
                fields = [step.field for step in self.steps if getattr(values, step.field) is not None]
                for field in fields:
                    place = (*entry.place, "rounds", number, field)
                    if len(fields) > 1:
                        raise InvalidValue(
                            place, f"A round has `{fields[0]}` or `{fields[1]}`. Give each a round."
                        )
                    if field in place_of:
                        raise InvalidValue(
                            place,
                            f"Round {place_of[field] + 1} has `{field}` already, and a dataset has it once. "
                            "Delete one of them.",
                        )
                    place_of[field] = number

    def links(self, entry: Entry, file: Declared) -> Sequence[Link]:
        """Return a link a round; a variant reads the signals of its dataset where they cover its rules."""
        from factory.orchestration.chain.filters import Filters

        rounds = [self._prepared(number, entry, file) for number in range(len(rounds_of(entry)))]
        if entry.variant is None:
            return Filters(rounds).links()
        return Filters.for_variant(file.chains[entry.base], rounds).links()

    def _prepared(self, number: int, entry: Entry, file: Declared) -> Round | PreparedRound:
        """Return a round with the preparations of its further fields."""
        from factory.orchestration.chain.filters_preparation import PreparedRound

        *earlier, values = rounds_of(entry)[: number + 1]
        preparations = []
        for step in self.steps:
            options = getattr(values, step.field, None)
            if options is None:
                continue
            try:
                preparations.append(step.preparation(options, entry, earlier, file))
            except ConfigurationError as error:
                place = (*entry.place, "rounds", number, step.field)
                raise InvalidValue(place, str(error)) from error
        return PreparedRound(values, tuple(preparations)) if preparations else values

    def comment(self, kind: str) -> Iterator[str]:
        yield f"# limits: {{{_EXAMPLE[kind]}}} # docs/filters.md of the repository lists all rules"


def with_steps(fields: type[FilterFields], steps: Sequence[RoundStep]) -> type[FilterFields]:
    """Return the fields of filters, with the fields of `steps` in each round."""
    if not steps:
        return fields
    bases: Any = (Round, *(step.fields for step in steps))
    round_of_file: Any = create_model("Round", __base__=bases, __doc__=Round.__doc__)
    rounds: Any = (tuple[round_of_file, ...], FilterFields.model_fields["rounds"])
    return create_model(fields.__name__, __base__=fields, __doc__=fields.__doc__, rounds=rounds)


def rounds_of(entry: Entry) -> tuple[Round, ...]:
    """Return the declared rounds of filters of a dataset or variant."""
    return entry.fields(FilterFields).in_rounds()


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
