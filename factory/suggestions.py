"""Sentences about unknown names, with the nearest known one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher, get_close_matches

_SHOWN = 12
_MISSPELLED = 0.8  # ratio of equal letters from which a name counts as misspelled
_WORD = re.compile(r"[a-z]+|[0-9]+")


def unknown_name(noun: str, name: str, names: Iterable[str]) -> str:
    """Say that no `noun` is called `name`, and suggest one of `names`."""
    return f"Unknown {noun} `{name}`. {suggestion(name, names)}"


def suggestion(name: str, names: Iterable[str]) -> str:
    """Name the one of `names` that `name` probably means, else all of them, of many the nearest dozen."""
    names = list(names)
    if near := nearest(name, names, n=1):
        return f"Did you mean `{near[0]}`?"
    if len(names) <= _SHOWN:
        return f"Use one of {quoted(names)}."
    some = get_close_matches(name, names, n=_SHOWN, cutoff=0.0)
    return f"There are {len(names)}, such as {quoted(sorted(some, key=names.index))}."


def nearest(name: str, names: Sequence[str], n: int) -> list[str]:
    """Return up to `n` of `names` that `name` may mean, the likeliest first.

    These are misspelled names, else names that contain the words of `name`, else names of similar letters:
    `words` means `word_count` rather than `stop_words`, although the letters of `stop_words` are nearer.
    """
    return (
        get_close_matches(name, names, n, _MISSPELLED)
        or _of_the_same_words(name, names)[:n]
        or get_close_matches(name, names, n)
    )


def quoted(names: Iterable[str], separator: str = ", ") -> str:
    """Put the names in backticks and join them."""
    return separator.join(f"`{name}`" for name in names)


def _of_the_same_words(name: str, names: Sequence[str]) -> list[str]:
    """Return the names that contain every word of `name`; names that begin with its first word come first."""
    words = _words(name)
    having = [name for name in names if words and set(words) <= set(_words(name))]
    return sorted(
        having, key=lambda it: (_words(it)[0] != words[0], -SequenceMatcher(None, name, it).ratio())
    )


def _words(name: str) -> list[str]:
    """Return the words of a name without the endings of plurals."""
    return [word.rstrip("s") or word for word in _WORD.findall(name.lower())]
