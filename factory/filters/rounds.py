"""One round of filters, declared with plain values: which rules decide, with which limits.

    Round(
        rules=["gopher_quality", "c4"],
        limits={"word_count": [20, 50_000], "stop_words": 1},
        languages=["en", "de"],
        predicates={"stars": {"at_least": 10}, "license": ["MIT", "Apache-*"]},
    ).build()  # the rules that `measure` and `decide` take

These are the values a YAML file holds. An error names the field's location in the declaration (pydantic's),
the wrong name and the nearest right one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, ParamSpec, TypeVar

from pydantic import ConfigDict, Field, GetPydanticSchema, ValidationInfo, field_validator
from pydantic_core import core_schema

from factory.errors import ConfigurationError
from factory.filters.language import SCORE, LanguageScore
from factory.filters.metadata import predicate
from factory.filters.python_rule import load_rule
from factory.filters.rule import AtLeast, AtMost, Between, Limit, Rule, TextRule, limit_between
from factory.filters.sets import rules
from factory.frozen_model import FrozenModel
from factory.suggestions import suggestion

P = ParamSpec("P")
T = TypeVar("T")


# Pydantic would report a value that is neither with two errors.
NameOrRule = Annotated[
    str | TextRule,
    GetPydanticSchema(
        lambda _, __: core_schema.no_info_wrap_validator_function(
            lambda value, validate: value if isinstance(value, TextRule) else validate(value),
            core_schema.str_schema(),
        )
    ),
]


class Round(FrozenModel):
    """The rules of one round, with their limits, languages and predicates."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    rules: tuple[NameOrRule, ...] = Field(
        default=(), description="names of rule sets and single rules, and rules of your own, `file.py:Name`"
    )
    languages: tuple[str, ...] = Field(
        default=(), description="wanted languages (ISO 639 codes); naming one adds the rule `language_score`"
    )
    limits: Mapping[str, Limit] = Field(
        default={},
        description="other limits, by rule: a number for its one bound, [low, high], or {at_least, at_most}",
    )
    predicates: Mapping[str, Rule] = Field(
        default={}, description="conditions on columns of the documents, by column"
    )

    def build(self) -> tuple[Rule, ...]:
        """Return the rules with their limits: sets and single rules, then language, then predicates."""
        chosen = _chosen(self.rules, self.languages)
        chosen |= {name: chosen[name].with_limit(limit) for name, limit in self.limits.items()}
        return (*chosen.values(), *self.predicates.values())

    @field_validator("rules")
    @classmethod
    def _rules_exist(
        cls, given: tuple[str | TextRule, ...], info: ValidationInfo
    ) -> tuple[str | TextRule, ...]:
        folder = (info.context or {}).get("folder", Path())
        loaded = tuple(
            _sentence(load_rule, it, folder) if isinstance(it, str) and ":" in it else it for it in given
        )
        _sentence(rules, loaded)
        return loaded

    @field_validator("languages")
    @classmethod
    def _languages_are_detected(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        _sentence(LanguageScore, names)
        return names

    @field_validator("limits", mode="before")
    @classmethod
    def _limits_belong_to_chosen_rules(cls, limits: Any, info: ValidationInfo) -> Any:
        if not isinstance(limits, Mapping) or not {"rules", "languages"} <= info.data.keys():
            return limits  # pydantic reports a wrong type, or the invalid field that these limits depend on
        chosen = _chosen(info.data["rules"], info.data["languages"])
        return {name: _sentence(_limit, name, value, chosen) for name, value in limits.items()}

    @field_validator("predicates", mode="before")
    @classmethod
    def _predicates_are_rules(cls, predicates: Any) -> Any:
        if not isinstance(predicates, Mapping):
            return predicates
        return {
            field: condition if isinstance(condition, Rule) else _sentence(predicate, field, condition)
            for field, condition in predicates.items()
        }


def _chosen(names: Iterable[str | TextRule], languages: Iterable[str]) -> dict[str, Rule]:
    chosen: dict[str, Rule] = {rule.name: rule for rule in rules(tuple(names))}
    if languages:
        chosen[SCORE] = LanguageScore(languages)
    return chosen


def _limit(name: str, value: object, chosen: Mapping[str, Rule]) -> Limit:
    """Return the limit of plain `value` for rule `name`; raises ConfigurationError that names the rule."""
    if name not in chosen:
        raise ConfigurationError(f"`{name}` is not among the chosen rules. {suggestion(name, chosen)}")
    match value:
        case _ if _holds_nan(value):
            pass  # no value is above or below NaN, so every document would pass
        case AtLeast() | AtMost() | Between():
            return value
        case bool():
            pass
        case int() | float():
            return _one_bound(name, float(value), chosen[name].limit)
        case [int() | float() as low, int() | float() as high]:
            return Between(float(low), float(high))
        case Mapping() if value and value.keys() <= {"at_least", "at_most"}:
            bounds = [value.get("at_least"), value.get("at_most")]
            if all(bound is None or type(bound) in (int, float) for bound in bounds):
                return limit_between(*bounds)
    raise ConfigurationError(
        f"The limit of `{name}` is {value!r}. Give a number, a list of the lowest and the highest value, "
        "or `at_least` and `at_most`."
    )


def _holds_nan(value: object) -> bool:
    match value:
        case float():
            return math.isnan(value)
        case list() | tuple():
            return any(map(_holds_nan, value))
        case Mapping():
            return any(map(_holds_nan, value.values()))
    return False


def _one_bound(name: str, value: float, limit: Limit) -> Limit:
    if isinstance(limit, Between):
        raise ConfigurationError(
            f"The limit of `{name}` is {value:g}, but the rule has two bounds ({limit}). "
            "Give a list of the lowest and the highest value, or `at_least` or `at_most` alone."
        )
    return type(limit)(value)


def _sentence(make: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
    """Call `make`; turn a ConfigurationError into pydantic's ValueError, which knows the value's location."""
    try:
        return make(*given, **named)
    except ConfigurationError as error:
        raise ValueError(str(error)) from error
