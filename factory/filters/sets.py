"""The rules that filter a dataset: named sets, single rules, and limits other than the papers'."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from factory.errors import ConfigurationError
from factory.filters import c4, code, fineweb, gopher_quality, gopher_repetition, language
from factory.filters.python_rule import require_rule
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


def rules(names: Sequence[str | TextRule], limits: Mapping[str, Limit] | None = None) -> tuple[TextRule, ...]:
    """Return the rules of the sets and the single rules `names`, each once, in the order of first mention.

    A rule of your own stands among the names itself. `limits` gives chosen rules other limits than their
    paper's, by rule name. Raises ConfigurationError for a name that is neither a set nor a rule, for a rule
    of your own that does not fit, and for a limit of a rule that is not chosen.
    """
    by_name = {rule.name: rule for chosen in RULE_SETS.values() for rule in chosen}
    chosen: dict[str, TextRule] = {}
    for name in names:
        if isinstance(name, TextRule):
            require_rule(name, taken=by_name.keys() | chosen.keys())
            chosen[name.name] = name
        elif name in RULE_SETS or name in by_name:
            chosen.update((rule.name, rule) for rule in RULE_SETS.get(name) or (by_name[name],))
        else:
            raise ConfigurationError(unknown_name("rule set or rule", name, [*RULE_SETS, *by_name]))
    for name, limit in (limits or {}).items():
        if name not in chosen:
            raise ConfigurationError(f"`{name}` is not among the chosen rules. {suggestion(name, chosen)}")
        chosen[name] = chosen[name].with_limit(limit)
    return tuple(chosen.values())
