"""The words and phrases of a list in a text, as whole words, also in simple disguises.

This is the readable definition; `native/src/models/word_list.rs` searches millions of texts.

- Text and entries are *folded* first. A unit is a character with the marks on it; each unit is composed
  (NFKC), folded in case and composed again, without the characters that Unicode ignores. So canonically equal
  texts, `ß` and `ss`, and both small sigmas are the same, and a zero-width space inside a word hides nothing.
- An *entry* is a run of tokens (`factory.models.hashing`), without the `_` around a token, which is emphasis
  in Markdown: a word or a phrase, in any case. Where several entries begin at a token, the longest counts,
  and the search resumes behind it.
- A word between ASCII spaces in which no entry was found is looked up once more, without the punctuation
  around it, as the entry of one token that it may disguise: letters spelled apart by one sign (`w.o.r.d`),
  signs for letters (`w0rd`), letters three or more times in a row (`wooord`), stars for letters (`w**d`).
- Nothing is found inside a longer word. A word has a letter, and no more digits than letters, because `455`
  and `a55` are numbers.

Each disguise is a guess, so it should be a small one: a list that finds more finds more that is innocent.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from factory.models.hashing import OUTSIDE, WORD, Token, kind_of, lower_case, tokens, visible

PROFANE, FLAGGED = "profane", "flagged"
SEPARATORS = ".-_*\u00b7"  # between letters that are spelled apart
LETTER_FOR = dict(zip("013457!@$+\u20ac", "oieastiaste", strict=True))
LONGEST = 100  # bytes of a word that may be disguised
LEAST_STARRED = 4  # characters; `a*b` is more often a product
IGNORABLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
COMPOSING = re.compile(  # with the character before, and no mark
    "[\u1160-\u11ff\uff9e\uff9f\uffa0-\uffdc\U00016d67\U00016d68]"
)


@dataclass(frozen=True)
class Hit:
    """The entry of this number, at characters `begin` to `end` of the text."""

    entry: int
    begin: int
    end: int


def hits(text: str, entries: Sequence[str]) -> list[Hit]:
    """Return the entries in a text, in order."""
    units = _units(text)
    spellings = [_fold(text[begin:end]) for begin, end in units]
    places = [unit for unit, spelling in zip(units, spellings, strict=True) for _ in spelling]
    entries = ["".join(_fold(entry[begin:end]) for begin, end in _units(entry)) for entry in entries]
    return [
        Hit(hit.entry, places[hit.begin][0], places[hit.end - 1][1])
        for hit in _hits("".join(spellings), entries)
    ]


def _units(text: str) -> list[tuple[int, int]]:
    """The ranges of a text's characters with the marks on them."""
    begins = [
        position
        for position, character in enumerate(text)
        if not position or not (unicodedata.category(character)[0] == "M" or COMPOSING.match(character))
    ]
    return [*pairwise([*begins, len(text)])]


def _fold(unit: str) -> str:
    if unit.isascii():
        return unit
    nfkc = unicodedata.normalize("NFKC", IGNORABLE.sub("", unit))
    return unicodedata.normalize("NFKC", nfkc.casefold())


def _words(text: str) -> Iterator[Token]:
    """The tokens of a folded text, without the `_` around them."""
    for token in tokens(text):
        spelling = text[token.begin : token.end]
        word = spelling.lstrip("_")
        begin = token.end - len(word)
        for inner in tokens(word.rstrip("_")):
            yield Token(inner.word, begin + inner.begin, begin + inner.end)


def _hits(text: str, entries: Sequence[str]) -> list[Hit]:
    plain = list(_phrases(text, entries))
    in_disguise = [
        Hit(entry, chunk.start(), chunk.end())
        for chunk in re.finditer(r"[^ \t\n\r\f]+", text)
        if not any(hit.begin < chunk.end() and chunk.start() < hit.end for hit in plain)
        and (entry := _disguised(chunk[0], entries)) is not None
    ]
    return sorted([*plain, *in_disguise], key=lambda hit: hit.begin)


def _phrases(text: str, entries: Sequence[str]) -> Iterator[Hit]:
    phrases = [[token.word for token in _words(entry)] for entry in entries]
    longest_first = sorted(range(len(entries)), key=lambda number: (-len(phrases[number]), number))
    waiting = [*_words(text)]
    while waiting:
        words = [token.word for token in waiting]
        number = next((n for n in longest_first if words[: len(phrases[n])] == phrases[n]), None)
        length = 1 if number is None else len(phrases[number])
        if number is not None:
            yield Hit(number, waiting[0].begin, waiting[length - 1].end)
        waiting = waiting[length:]


def _disguised(chunk: str, entries: Sequence[str]) -> int | None:
    """Return the first entry that a word may stand for."""
    if len(chunk.encode()) > LONGEST:
        return None
    words: dict[str, int] = {}
    for number, entry in enumerate(entries):
        if len(entry_words := [*_words(entry)]) == 1:
            words.setdefault(entry_words[0].word, number)
    characters = _trimmed(lower_case(visible(chunk)))
    for spelling in (*_spelled_apart(characters), *_decoded(characters)):
        if [token.word for token in tokens(spelling)] == [spelling] and spelling in words:
            return words[spelling]
    return _starred(characters, entries)


def _spelled_apart(characters: str) -> Iterator[str]:
    letters, separators = characters[::2], characters[1::2]
    apart = len(characters) >= 5 and len(characters) % 2 == 1
    if apart and len(set(separators)) == 1 and separators[0] in SEPARATORS and all(map(_is_letter, letters)):
        yield letters


def _decoded(characters: str) -> Iterator[str]:
    n_signs = sum(character in LETTER_FOR for character in characters)
    n_letters = sum(map(_is_letter, characters))
    n_digits = sum(character in "0123456789" for character in characters)
    if n_signs + n_letters < len(characters) or n_digits > n_letters or not n_letters:
        return
    plain = "".join(LETTER_FOR.get(character, character) for character in characters)
    if n_signs:
        yield plain
    if _squeezed(plain, 1) != plain:
        yield _squeezed(plain, 1)
        yield _squeezed(plain, 2)


def _starred(characters: str, entries: Sequence[str]) -> int | None:
    n_stars = characters.count("*")
    n_letters = sum(map(_is_letter, characters))
    if not n_stars or n_letters < 2 or n_stars + n_letters < len(characters) or characters[0] == "*":
        return None
    if len(characters) < LEAST_STARRED:
        return None
    pattern = re.compile(
        "".join("." if letter == "*" else re.escape(letter) for letter in characters), re.DOTALL
    )
    fitting = [
        number
        for number, entry in enumerate(entries)
        if len([*_words(entry)]) == 1 and pattern.fullmatch(lower_case(entry.strip("_")))
    ]
    return min(fitting, default=None)


def _squeezed(characters: str, length: int) -> str:
    runs = ["".join(run) for _, run in groupby(characters)]
    return "".join(run[:length] if len(run) >= 3 else run for run in runs)


def _trimmed(characters: str) -> str:
    """Without the punctuation around a word; `@` and `$` may stand for its first or last letter."""
    inside = [
        number
        for number, character in enumerate(characters)
        if (kind_of(character) != OUTSIDE and character != "_") or character in "@$"
    ]
    return characters[inside[0] : inside[-1] + 1] if inside else ""


def _is_letter(character: str) -> bool:
    return kind_of(character) == WORD and character != "_" and character not in "0123456789"
