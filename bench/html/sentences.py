"""Sentences of real text in many languages: the translated manual pages of Debian."""

from __future__ import annotations

import gzip
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

_REQUEST = re.compile(r"^[.'].*$", re.MULTILINE)
_ESCAPES = re.compile(r"\\f.|\\[|^&/,c]|\\\*\[[^]]*\]|\\\([a-zA-Z]{2}|\\\[[^]]*\]")
_SENTENCE = re.compile(r"[^.!?。]{30,240}[.!?。](?=\s|$)", re.DOTALL)


def sentences(folder: Path, least: int = 200) -> dict[str, list[str]]:
    """Return distinct sentences by language, at least `least` of each."""
    languages: dict[str, list[str]] = {}
    for language in sorted(path.name for path in folder.iterdir() if path.is_dir()):
        distinct = dict.fromkeys(_of_language(folder / language))
        if len(distinct) >= least:
            languages[language] = list(distinct)
    return languages


def _of_language(folder: Path) -> Iterator[str]:
    for path in sorted(folder.glob("man[1578]/*.gz"))[:150]:
        roff = gzip.decompress(path.read_bytes()).decode("utf-8", "replace")
        text = _ESCAPES.sub("", _REQUEST.sub("\n\n", roff)).replace("\\-", "-").replace("\\", "")
        for match in _SENTENCE.finditer(text):
            sentence = " ".join(match[0].split())
            if not set(sentence) & set('<>&@/{}|\\_=~`"') and "\ufffd" not in sentence:
                yield sentence


def in_random_order(languages: Mapping[str, Sequence[str]], language: str, seed: int) -> Iterator[str]:
    """Yield sentences of a language in an order of its own, without end."""
    chance = random.Random(f"{language} {seed}")
    while True:
        yield from chance.sample(list(languages[language]), len(languages[language]))
