"""The sets `datatrove_*` in datatrove's terms: the rule that stands for each of its reasons."""

from __future__ import annotations

from bench.filters.causes import REASONS
from factory.filters.rules.datatrove import gopher, web
from factory.filters.text import Text

COMPATIBLE = {
    "gopher_repetition": gopher.REPETITION,
    "gopher_quality": gopher.QUALITY,
    "c4": web.C4,
    "fineweb": web.FINEWEB,
}
EMPTY = {"gopher_repetition": "datatrove_chars", "fineweb": "datatrove_written_lines"}


def first_failing(text: str) -> dict[str, str | None]:
    """Return the first rule that `text` fails, or None, for each of datatrove's filters.

    Every rule measures the text, as in Spark's workers.
    """
    seen = Text(text)
    failing = {
        name: [rule.name for rule in rules if rule.bounds.violated(rule.measure(seen)) is not None]
        for name, rules in COMPATIBLE.items()
    }
    return {name: next(iter(rules), None) for name, rules in failing.items()}


def rule_of(name: str, reason: str | None) -> str | None:
    """Return the rule that stands for datatrove's `reason` in its filter `name`; None for a kept text."""
    if reason is None:
        return None
    return EMPTY[name] if reason == "empty" else f"datatrove_{REASONS[reason]}"
