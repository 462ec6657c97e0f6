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

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, ParamSpec, TypeVar

from pydantic import ConfigDict, Field, GetPydanticSchema, ValidationInfo, WithJsonSchema, field_validator
from pydantic_core import core_schema

from factory.errors import ConfigurationError
from factory.filters.limits import Limit, Requirement, parse_requirement
from factory.filters.metadata import predicate
from factory.filters.python_rule import load_rule
from factory.filters.rule import Rule
from factory.filters.rules.classified import Category
from factory.filters.rules.language import SCORE, LanguageScore
from factory.filters.sets import rules
from factory.frozen_model import FrozenModel
from factory.suggestions import suggestion

P = ParamSpec("P")
T = TypeVar("T")


# Pydantic would report a value that is neither with two errors.
NameOrRule = Annotated[
    str | Rule,
    GetPydanticSchema(
        lambda _, __: core_schema.no_info_wrap_validator_function(
            lambda value, validate: value if isinstance(value, Rule) else validate(value),
            core_schema.str_schema(),
        )
    ),
]

PlainLimit = Annotated[Limit | Requirement, WithJsonSchema({"type": ["number", "array", "object"]})]


class Round(FrozenModel):
    """The rules of one round, with their limits, languages and predicates."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    rules: tuple[NameOrRule, ...] = Field(
        default=(), description="names of rule sets and single rules, and rules of your own, `file.py:Name`"
    )
    languages: tuple[str, ...] = Field(
        default=(), description="wanted languages (ISO 639 codes); naming one adds the rule `language_score`"
    )
    limits: Mapping[str, PlainLimit] = Field(
        default={},
        description="other limits, by rule: a number for its one bound, [low, high], {at_least, at_most}, or "
        "a share of the documents, {top} or {bottom}; with {missing}, `keep` or `reject`, for documents "
        "without a value",
    )
    predicates: Mapping[str, Annotated[Rule, WithJsonSchema({"type": ["object", "array"]})]] = Field(
        default={}, description="conditions on columns of the documents, by column"
    )

    def build(self) -> tuple[Rule, ...]:
        """Return the rules with their limits: sets and single rules, then language, then predicates."""
        by_name = _chosen(self.rules, self.languages)
        by_name |= {rule.name: rule for rule in self.predicates.values()}
        by_name |= {name: by_name[name].with_limit(limit) for name, limit in self.limits.items()}
        return tuple(by_name.values())

    @field_validator("rules")
    @classmethod
    def _rules_exist(cls, names: tuple[str | Rule, ...], info: ValidationInfo) -> tuple[str | Rule, ...]:
        broken_models = _failed_models(info)
        every = tuple(
            name if isinstance(name, Rule) else _sentence(_load, name, info)
            for name in names
            if name not in broken_models
        )
        _sentence(rules, every)
        return every

    @field_validator("languages")
    @classmethod
    def _languages_are_detected(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        _sentence(LanguageScore, names)
        return names

    @field_validator("limits", mode="before")
    @classmethod
    def _limits_belong_to_chosen_rules(cls, limits: Any, info: ValidationInfo) -> Any:
        if not isinstance(limits, Mapping):
            return limits
        if not {"rules", "languages"} <= info.data.keys():
            return {}  # the invalid field that these limits depend on is reported
        chosen = _chosen(info.data["rules"], info.data["languages"])
        broken_models = _failed_models(info)
        return {
            name: _sentence(_limit, name, value, chosen)
            for name, value in limits.items()
            if name not in broken_models
        }

    @field_validator("predicates", mode="before")
    @classmethod
    def _predicates_are_rules(cls, predicates: Any, info: ValidationInfo) -> Any:
        if not isinstance(predicates, Mapping):
            return predicates
        models: Mapping[str, Rule] = (info.context or {}).get("rules", {})

        names = {name.name if isinstance(name, Rule) else name for name in info.data.get("rules", ())}

        def rule(field: str, condition: Any) -> Rule:
            model = models.get(field)
            if field in names and not isinstance(model, Category):
                raise ConfigurationError(
                    f"`{field}` is a rule of this round, which has `limits`. Give the rule or the column "
                    "another name."
                )
            return model.among(condition) if isinstance(model, Category) else predicate(field, condition)

        return {
            field: condition if isinstance(condition, Rule) else _sentence(rule, field, condition)
            for field, condition in predicates.items()
        }


def _load(name: str, info: ValidationInfo) -> str | Rule:
    """Return the rule of a file `file.py:Name` or that a datasets file declares, or the name as it is."""
    context = info.context or {}
    if ":" in name:
        return load_rule(name, context.get("folder", Path()))
    models: Mapping[str, Rule] = context.get("rules", {})
    return models.get(name, name)


def _failed_models(info: ValidationInfo) -> set[str]:
    """Return the models with errors of their own, which are reported; no rule has their name."""
    context = info.context or {}
    return set(context.get("declared", ())) - set(context.get("rules", {}))


def _chosen(names: Iterable[str | Rule], languages: Iterable[str]) -> dict[str, Rule]:
    chosen: dict[str, Rule] = {rule.name: rule for rule in rules(tuple(names))}
    if languages:
        chosen[SCORE] = LanguageScore(languages)
    return chosen


def _limit(name: str, value: object, chosen: Mapping[str, Rule]) -> Limit | Requirement:
    """Return the limit of plain `value` for rule `name`; raises ConfigurationError that names the rule."""
    if name not in chosen:
        raise ConfigurationError(f"`{name}` is not among the chosen rules. {suggestion(name, chosen)}")
    return parse_requirement(name, value, chosen[name].limit)


def _sentence(make: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
    """Call `make`; turn a ConfigurationError into pydantic's ValueError, which knows the value's location."""
    try:
        return make(*given, **named)
    except ConfigurationError as error:
        raise ValueError(str(error)) from error
