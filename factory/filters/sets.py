"""The rules a dataset is filtered by: named sets, single rules, and other limits where it asks for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from factory.errors import ConfigurationError
from factory.filters import c4, code, fineweb, gopher_quality, gopher_repetition, language
from factory.filters.rule import Limit, TextRule
from factory.suggestions import suggestion, unknown_name

RULE_SETS: dict[str, tuple[TextRule, ...]] = {
    "gopher_quality": gopher_quality.RULES,
    "gopher_repetition": gopher_repetition.RULES,
    "c4": c4.RULES,
    "fineweb": fineweb.RULES,
    "code": code.RULES,
    "language": language.RULES,
}


def rules(names: Sequence[str], limits: Mapping[str, Limit] | None = None) -> tuple[TextRule, ...]:
    """The rules of the sets and the single rules `names`, each once, in the order they are first named.

    `limits` gives rules among them other limits than their paper's, by rule name. Raises ConfigurationError
    for a name that is neither a set nor a rule, and for a limit of a rule that was not chosen.
    """
    by_name = {rule.name: rule for chosen in RULE_SETS.values() for rule in chosen}
    chosen: dict[str, TextRule] = {}
    for name in names:
        if name not in RULE_SETS and name not in by_name:
            raise ConfigurationError(unknown_name("rule set or rule", name, [*RULE_SETS, *by_name]))
        chosen.update((rule.name, rule) for rule in RULE_SETS.get(name) or (by_name[name],))
    for name, limit in (limits or {}).items():
        if name not in chosen:
            raise ConfigurationError(f"`{name}` is not among the chosen rules. {suggestion(name, chosen)}")
        chosen[name] = chosen[name].with_limit(limit)
    return tuple(chosen.values())
