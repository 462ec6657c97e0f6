"""The pieces of a chunk, a run of characters without spaces, as spaCy's English tokenizer cuts it.

1. An exception (`don't`, `e.g.`) is cut as its entry says.
2. Prefixes and suffixes are taken off, until none is left or the rest is an exception.
3. The rest is a piece if it is a URL; otherwise its infixes cut it.

For each affix, spaCy searches the whole rest of the chunk, which takes hours for a line of a million `*`.
Here a search sees at most the length of the longest affix, so the time is linear in the length of the chunk.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

Pieces = tuple[str, ...]

LONGEST_AFFIX = 32  # characters; only a run of dots is longer, and is counted without a search


class Chunks:
    """Cuts chunks by spaCy's recorded tables."""

    def __init__(self, tables: Mapping[str, Any]) -> None:
        self._prefix = re.compile(tables["prefix"]).search
        self._suffix = re.compile(tables["suffix"]).search
        self._infixes = re.compile(tables["infix"]).finditer
        # `(?::\S*)?` adds no string to `\S+`, but makes the time grow with the square of the length.
        self._url = re.compile(tables["url"].replace(r"\S+(?::\S*)?@", r"\S+@")).match
        self._recorded = {text: tuple(pieces) for text, pieces in tables["exceptions"].items()}
        self._longest = max(map(len, self._recorded))
        self._exceptions: Mapping[str, Pieces] = {}
        cuts = ((self.cut(text), pieces) for text, pieces in self._recorded.items() if self._is_cut(text))
        self.rejoined: dict[Pieces, Pieces] = {cut: pieces for cut, pieces in cuts if len(cut) > 1}
        """The exceptions that affixes and infixes may cut, by the pieces of the cut."""
        self._exceptions = self._recorded

    def cut(self, chunk: str) -> Pieces:
        """Return the pieces of `chunk`, from left to right."""
        if chunk in self._exceptions:
            return self._exceptions[chunk]
        start, end = 0, len(chunk)
        prefixes: list[str] = []
        suffixes: list[str] = []
        while start < end and not self._is_exception(chunk, start, end):
            prefix = self._prefix_length(chunk, start, end)
            suffix = 0
            if not (prefix and self._is_exception(chunk, start + prefix, end)):
                suffix = self._suffix_length(chunk, start + prefix, end)
                if suffix and self._is_exception(chunk, start, end - suffix):
                    prefix = 0
            if prefix:
                prefixes.append(chunk[start : start + prefix])
            if suffix:
                suffixes.append(chunk[end - suffix : end])
            if not prefix and not suffix:
                break
            start, end = start + prefix, end - suffix
        return (*prefixes, *self._rest(chunk[start:end]), *reversed(suffixes))

    def _rest(self, text: str) -> Iterator[str]:
        """Yield the pieces of a chunk without its affixes."""
        if text in self._exceptions:
            yield from self._exceptions[text]
        elif "." in text and self._url(text):  # every URL has a dot, and few chunks do
            yield text
        else:
            start = 0
            for infix in self._infixes(text):
                if infix.start() == 0:
                    continue
                if infix.start() != start:
                    yield text[start : infix.start()]
                yield infix[0]
                start = infix.end()
            if start < len(text):
                yield text[start:]

    def _is_exception(self, chunk: str, start: int, end: int) -> bool:
        return 0 < end - start <= self._longest and chunk[start:end] in self._exceptions

    def _prefix_length(self, chunk: str, start: int, end: int) -> int:
        found = self._prefix(chunk[start : min(end, start + LONGEST_AFFIX)])
        length = len(found[0]) if found else 0
        if length == LONGEST_AFFIX:
            while start + length < end and chunk[start + length] == ".":
                length += 1
        return length

    def _suffix_length(self, chunk: str, start: int, end: int) -> int:
        found = self._suffix(chunk[max(start, end - LONGEST_AFFIX) : end])
        length = len(found[0]) if found else 0
        if length == LONGEST_AFFIX:
            while start < end - length and chunk[end - length - 1] == ".":
                length += 1
        return length

    def _is_cut(self, text: str) -> bool:
        searches = (self._prefix(text), self._suffix(text), next(self._infixes(text), None))
        return bool(text.strip()) and any(searches)
