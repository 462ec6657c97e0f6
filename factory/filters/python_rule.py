"""Rules of a user's own file: loading one and checking it.

    # my_rules.py
    class Emojis(TextRule):
        name, unit, limit = "emojis", "per word", AtMost(0.1)

        def measure(self, text: Text) -> float | None: ...

    Round(rules=["gopher_quality", "my_rules.py:Emojis"])      # or the rule itself: Emojis()

Python alone measures such a rule. A `TableRule` (`factory.filters.table_rule`) reads tables too. The code
travels to Spark's workers with the rule, so they need no copy of the file.
"""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet
from pathlib import Path

from factory.errors import ConfigurationError
from factory.filters.limits import Limit
from factory.filters.rule import Rule, TextRule
from factory.filters.table_rule import TableRule
from factory.lake.schemas.ingest import RAW
from factory.models.python_file import run_file
from factory.suggestions import unknown_name

_KINDS = (TextRule, TableRule)
_KEYS = {"doc_id", "partition"}  # of every table of signals
_COLUMN = re.compile(r"[a-z][a-z0-9_]*")


def load_rule(reference: str, folder: Path) -> Rule:
    """Load the rule `file.py:Name`; the path is relative to `folder`.

    `Name` is a class without arguments or a rule. Raises ConfigurationError where there is none.
    """
    file, _, name = reference.rpartition(":")
    path = (folder / file).resolve()
    if not path.is_file():
        raise ConfigurationError(f"There is no file `{file}`. Paths are relative to {folder.resolve()}.")
    rules = {key: value for key, value in vars(run_file(path)).items() if _is_rule(value)}
    if name not in rules:
        raise ConfigurationError(unknown_name(f"rule of {path.name}:", name, rules))
    rule = rules[name]
    try:
        return rule() if isinstance(rule, type) else rule
    except TypeError as error:  # it lacks `measure`, or needs arguments
        raise ConfigurationError(f"The rule `{reference}` cannot be made: {error}.") from error


def require_rule(rule: Rule, taken: AbstractSet[str]) -> None:
    """Raise ConfigurationError unless `rule` is complete and its name is free to name a column."""
    kind = type(rule).__name__
    if lacking := [name for name in ("name", "unit", "limit") if not hasattr(rule, name)]:
        raise ConfigurationError(
            f"The rule `{kind}` has no `{lacking[0]}`. Give it a name, a unit and a limit."
        )
    if not isinstance(rule.limit, Limit):
        raise ConfigurationError(
            f"The limit of `{kind}` is {rule.limit!r}. Use `AtLeast`, `AtMost`, `Between`, `Top` or `Bottom`."
        )
    if not _COLUMN.fullmatch(rule.name):
        raise ConfigurationError(
            f"The rule `{kind}` is named `{rule.name}`. Use small letters, digits and underscores, because a "
            "column has its name."
        )
    # The values of a rule that reads tables stand apart from the columns of documents that predicates copy.
    own = {rule.name, *rule.signals}
    if clash := own & (taken | _KEYS) or (own & {*RAW.names} if not rule.reads else set()):
        raise ConfigurationError(f"The rule `{kind}` has the taken name `{min(clash)}`. Choose another.")


def _is_rule(value: object) -> bool:
    return isinstance(value, _KINDS) or (
        isinstance(value, type) and issubclass(value, _KINDS) and value not in _KINDS
    )
