"""The table of all rules in `docs/filters.md`, printed by `python -m factory.filters.table`."""

from __future__ import annotations

import inspect

from factory.filters.rule import TextRule
from factory.filters.rules.pictured import ImageRule
from factory.filters.sets import IMAGE_SETS, RULE_SETS

HEADER = "| rule | set | unit | limit | source | what is measured |\n|---|---|---|---|---|---|\n"


def rule_table() -> str:
    """Return a Markdown table with one row per rule, in the order of the sets."""
    sets: dict[str, tuple[TextRule | ImageRule, ...]] = {**RULE_SETS, **IMAGE_SETS}
    return HEADER + "".join(_row(name, rule) for name, chosen in sets.items() for rule in chosen)


def _row(set_name: str, rule: TextRule | ImageRule) -> str:
    summary = (inspect.getdoc(type(rule)) or "").split("\n")[0].replace("|", "\\|")
    cells = (f"`{rule.name}`", f"`{set_name}`", rule.unit, str(rule.limit), rule.paper, summary)
    return f"| {' | '.join(cells)} |\n"


if __name__ == "__main__":
    print(rule_table(), end="")
