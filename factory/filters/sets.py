"""The rules that filter a dataset: named sets and single rules."""

from __future__ import annotations

from collections.abc import Sequence

from factory.errors import ConfigurationError
from factory.filters.python_rule import require_rule
from factory.filters.rule import Rule, TextRule
from factory.filters.rules import (
    advertising,
    c4,
    code,
    fineweb,
    gopher_quality,
    gopher_repetition,
    language,
    pictured,
)
from factory.filters.rules.datatrove import gopher, web
from factory.filters.rules.pictured import ImageRule
from factory.suggestions import unknown_name

RULE_SETS: dict[str, tuple[TextRule, ...]] = {
    "gopher_quality": gopher_quality.RULES,
    "gopher_repetition": gopher_repetition.RULES,
    "c4": c4.RULES,
    "fineweb": fineweb.RULES,
    "code": code.RULES,
    "advertising": advertising.RULES,
    "language": language.RULES,
    "datatrove_gopher_quality": gopher.QUALITY,
    "datatrove_gopher_repetition": gopher.REPETITION,
    "datatrove_c4": web.C4,
    "datatrove_fineweb": web.FINEWEB,
}

# Sets of rules that judge the pictures of documents, not their texts.
IMAGE_SETS: dict[str, tuple[ImageRule, ...]] = {"images": pictured.RULES}


def rules(names: Sequence[str | Rule]) -> tuple[Rule, ...]:
    """Return the rules of the sets and the single rules `names`, each once, in the order of first mention.

    `names` may also contain rules as objects: your own, and rules that read tables. Raises ConfigurationError
    for a name that is neither a set nor a rule, and for a rule of your own that does not fit.
    """
    sets: dict[str, tuple[Rule, ...]] = {**RULE_SETS, **IMAGE_SETS}
    by_name = {rule.name: rule for chosen in sets.values() for rule in chosen}
    chosen: dict[str, Rule] = {}
    for name in names:
        if isinstance(name, Rule):
            columns = {column for rule in chosen.values() for column in rule.signals}
            require_rule(name, taken=by_name.keys() | sets.keys() | chosen.keys() | columns)
            chosen[name.name] = name
        elif name in sets or name in by_name:
            chosen.update((rule.name, rule) for rule in sets.get(name) or (by_name[name],))
        else:
            raise ConfigurationError(unknown_name("rule set or rule", name, [*sets, *by_name]))
    return tuple(chosen.values())
