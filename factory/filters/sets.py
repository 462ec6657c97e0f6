"""The rules a dataset is filtered by: named sets, single rules, and other limits where it asks for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from factory.errors import ConfigurationError
from factory.filters import code, gopher_quality, gopher_repetition
from factory.filters.rule import Limit, Rule

RULE_SETS: dict[str, tuple[Rule, ...]] = {
    "gopher_quality": gopher_quality.RULES,
    "gopher_repetition": gopher_repetition.RULES,
    "code": code.RULES,
}


def rules(names: Sequence[str], limits: Mapping[str, Limit] | None = None) -> tuple[Rule, ...]:
    """The rules of the sets and the single rules `names`, each once, in the order they are first named.

    `limits` gives rules among them other limits than their paper's, by rule name. Raises ConfigurationError
    for a name that is neither a set nor a rule, and for a limit of a rule that was not chosen.
    """
    by_name = {rule.name: rule for chosen in RULE_SETS.values() for rule in chosen}
    chosen: dict[str, Rule] = {}
    for name in names:
        if name not in RULE_SETS and name not in by_name:
            raise ConfigurationError(
                f"`{name}` is neither a rule set nor a rule. Use a set ({_listed(RULE_SETS)}) "
                f"or a rule ({_listed(by_name)})."
            )
        chosen.update((rule.name, rule) for rule in RULE_SETS.get(name) or (by_name[name],))
    for name, limit in (limits or {}).items():
        if name not in chosen:
            raise ConfigurationError(
                f"A limit is given for `{name}`, which is not among the chosen rules. "
                f"Use one of {_listed(chosen)}, or choose the set it belongs to."
            )
        chosen[name] = chosen[name].with_limit(limit)
    return tuple(chosen.values())


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
