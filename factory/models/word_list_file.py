"""Files of words: an entry a line, blank lines and lines that begin with `#` aside."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa

from factory.errors import ConfigurationError
from factory.lake.schemas.models import WORD_LIST
from factory.models.hashing import tokens

_SIGN = re.compile(r"[^\s'\u2019-]")


def word_list_table(files: Mapping[tuple[str, str], Path]) -> pa.Table:
    """Return WORD_LIST of files by (language, tier).

    Raises ConfigurationError for a file that cannot be read or has no entry. An entry has a letter or number,
    and no other signs than spaces, hyphens and apostrophes, because only words are compared.
    """
    rows = [
        {"language": language, "tier": tier, "entry": entry, "partition": None}
        for (language, tier), path in sorted(files.items())
        for entry in sorted(set(_entries(path)))
    ]
    return pa.Table.from_pylist(rows, schema=WORD_LIST.columns)


def _entries(path: Path) -> Iterator[str]:
    try:
        lines = path.read_text("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"The list {path} cannot be read ({error}). It is a text in UTF-8, an entry a line."
        ) from error
    if not any(line.strip() and not line.startswith("#") for line in lines):
        raise ConfigurationError(f"The list {path} has no entry. Write one a line, or leave the list out.")
    for number, line in enumerate(lines, start=1):
        entry = line.strip()
        if not entry or entry.startswith("#"):
            continue
        words = [token.word for token in tokens(entry)]
        if not words:
            raise ConfigurationError(
                f"{path}, line {number}: `{entry}` has no letter or number, and none is found. Leave it out."
            )
        if _SIGN.search(_without_tokens(entry)):
            raise ConfigurationError(
                f"{path}, line {number}: `{entry}` has a sign, and signs are not compared: every "
                f"`{' '.join(words)}` would be found. Write the word itself, whose disguises are found too, "
                "or leave the entry out."
            )
        yield entry


def _without_tokens(entry: str) -> str:
    """Return the characters of an entry outside its tokens."""
    inside = {place for token in tokens(entry) for place in range(token.begin, token.end)}
    return "".join(character for place, character in enumerate(entry) if place not in inside)
