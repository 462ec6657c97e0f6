"""The words and sentences of an English text as datatrove cuts them: by spaCy's blank English pipeline.

`english.json` holds the patterns and exceptions of one version of spaCy, recorded by
`python -m bench.filters.record`. So words do not depend on the installed version, and no worker needs spaCy.

Spaces cut a text into chunks, and `chunks.py` cuts chunks into pieces. Finally, pieces that spell an
exception (`:)`, `he's`) become its words, the longest exception first. The words of a chunk depend on the
chunk alone and are remembered, except in one case: pieces that spell an exception from one chunk into the
next stay as they are, because a space is among them, and they hide the shorter exceptions that they overlap.
A text with such pieces is cut as a whole.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from factory.filters.rules.datatrove.chunks import Chunks, Pieces

MOST_REMEMBERED = 4_000_000  # characters of all remembered chunks; with their words some 200 MB
RUN = re.compile(r"\S+|\s+")
BROKEN = "IS_ALPHA"  # spaCy fails on this word; datatrove then cuts the text without it


@cache
def tables() -> Mapping[str, Any]:
    """Return the recorded tables of spaCy and datatrove."""
    recorded: Mapping[str, Any] = json.loads(Path(__file__).with_name("english.json").read_text("utf-8"))
    return recorded


@cache
def english() -> Tokenizer:
    """Return this process's tokenizer."""
    return Tokenizer(tables())


class Tokenizer:
    """Cuts English texts into words and sentences by recorded tables."""

    def __init__(self, tables: Mapping[str, Any]) -> None:
        self._chunks = Chunks(tables)
        self._rejoined = self._chunks.rejoined
        self._most_pieces = max(map(len, self._rejoined))
        self._beginnings = frozenset(pieces[:2] for pieces in self._rejoined)
        self._splits: dict[tuple[str, str], list[tuple[Pieces, Pieces]]] = defaultdict(list)
        for pieces in self._rejoined:
            for at, pair in enumerate(pairwise(pieces), start=1):
                self._splits[pair].append((pieces[:at], pieces[at:]))
        self._lefts, self._rights = ({pair[side] for pair in self._splits} for side in (0, 1))
        self._sentence_ends = frozenset(tables["sentence_ends"])
        self._forget()

    def words(self, text: str) -> list[str]:
        """Return the words of `text`."""
        chunks = text.split()
        self._remember(chunks)
        if self._overlap(chunks):
            found = [token for token in self._tokens(text) if not token.isspace()]
        else:
            found = [word for chunk in chunks for word in self._words[chunk]]
        return self.words(text.replace(BROKEN, "")) if BROKEN in found else found

    def n_sentences(self, text: str) -> int:
        """Return the number of sentences of `text`, 1 for an empty one.

        A sentence begins at the first token that is not punctuation after an end mark. A run of spaces is a
        token, unless it is a single blank.
        """
        words = self.words(text)
        found, ended = 1, False
        for token in words if " ".join(text.split()) == text else self._tokens(text):
            if token in self._sentence_ends:
                ended = True
            elif ended and not _is_punctuation(token):
                found, ended = found + 1, False
        return found

    def _forget(self) -> None:
        self._pieces: dict[str, Pieces] = {}  # by chunk
        self._words: dict[str, Pieces] = {}  # by chunk
        self._openers: dict[str, Pieces] = {}  # pieces of chunks whose last piece may begin an exception
        self._closers: dict[str, Pieces] = {}  # pieces of chunks whose first piece may continue one
        self._with_exception: set[str] = set()  # chunks with an exception that is cut and rejoined
        self._remembered = 0

    def _remember(self, chunks: Iterable[str]) -> None:
        if self._remembered > MOST_REMEMBERED:
            self._forget()
        for chunk in set(chunks).difference(self._words):
            pieces = self._chunks.cut(chunk)
            self._pieces[chunk] = self._words[chunk] = pieces
            if self._spans(pieces):
                self._words[chunk] = tuple(self._rejoin(pieces, [False] * len(pieces)))
                self._with_exception.add(chunk)
            if pieces[-1] in self._lefts:
                self._openers[chunk] = pieces
            if pieces[0] in self._rights:
                self._closers[chunk] = pieces
            self._remembered += len(chunk)

    def _overlap(self, chunks: Sequence[str]) -> bool:
        """Return whether pieces that run from one chunk into the next may hide an exception."""
        openers, closers, holders = self._openers, self._closers, self._with_exception
        return not holders.isdisjoint(chunks) and any(
            right in closers
            and left in openers
            and (left in holders or right in holders)
            and self._meet(openers[left], closers[right])
            for left, right in pairwise(chunks)
        )

    def _meet(self, left: Pieces, right: Pieces) -> bool:
        """Return whether the pieces of an exception may run from the end of `left` into `right`.

        An exception longer than `left` or `right` counts, because the next chunk may have the rest.
        """
        return any(
            left[-len(head) :] == head[-len(left) :] and right[: len(tail)] == tail[: len(right)]
            for head, tail in self._splits.get((left[-1], right[0]), ())
        )

    def _tokens(self, text: str) -> list[str]:
        """Return the words of `text`, its chunks remembered, and its spaces other than single blanks."""
        pieces: list[str] = []
        blank: list[bool] = []  # whether a blank follows the piece
        for run in RUN.findall(text):
            if not run.isspace():
                cut = self._pieces[run]
                pieces += cut
                blank += [False] * len(cut)
                continue
            if pieces and run[0] == " ":
                blank[-1] = True
                run = run[1:]
            if run:
                pieces.append(run)
                blank.append(False)
        return self._rejoin(pieces, blank)

    def _spans(self, pieces: Sequence[str]) -> list[tuple[int, int, int]]:
        """Return the sequences that are the pieces of an exception: negative length, start, end."""
        return [
            (start - end, start, end)
            for start, pair in enumerate(pairwise(pieces))
            if pair in self._beginnings
            for end in range(start + 2, min(start + self._most_pieces, len(pieces)) + 1)
            if tuple(pieces[start:end]) in self._rejoined
        ]

    def _rejoin(self, pieces: Sequence[str], blank: Sequence[bool]) -> list[str]:
        """Replace the pieces of exceptions by their words, the longest exception first, then the leftmost."""
        taken: set[int] = set()
        words = [[piece] for piece in pieces]
        for _, start, end in sorted(self._spans(pieces)):
            if start not in taken and end - 1 not in taken and not any(blank[start : end - 1]):
                replacement = self._rejoined[tuple(pieces[start:end])]
                words[start:end] = [list(replacement), *([] for _ in range(start + 1, end))]
            taken.update(range(start, end))
        return [word for group in words for word in group]


def _is_punctuation(token: str) -> bool:
    return all(unicodedata.category(character).startswith("P") for character in token)
