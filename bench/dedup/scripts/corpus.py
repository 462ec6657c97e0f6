"""Texts in twelve scripts: of real names, and of made words that no two texts share.

`texts_of_names` draws from the names that CLDR has for languages, territories, currencies and scripts, from
the package Babel: some 1,200 of each language. Half of the draws fall on all names, like words by rank, 1 /
(rank + 2.7); the other half on 80 names of the text's own, so that a text has a subject. Twelve names make
a sentence. `texts_of_syllables` join words of two or three syllables, a letter and a vowel each; a text has a
vocabulary of its own.

A copy has a tenth of its names or words drawn anew. Scripts that have blanks get them, the others have
none.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from babel import Locale

SENTENCE = 12  # names or words
SUBJECT = 80  # names that a text prefers
EDIT_SHARE = 0.1  # of a copy
Draw = Callable[[], str]


@dataclass(frozen=True)
class Script:
    """A language for its names; letters and vowels for made syllables; what is written between words."""

    language: str
    letters: str
    vowels: Sequence[str]
    blank: str = " "


SCRIPTS = {
    "Latin": Script("en", "bdfgklmnprstvz", "aeiou"),
    "Cyrillic": Script("ru", "бвгджзклмнпрстфхцш", "аеиоуы"),
    "Arabic": Script("ar", "بتجحدرزسشصطعغفقكلمنه", "اوي"),
    "Hebrew": Script("he", "אבגדהזחטכלמנספצקרשת", "וי"),
    "Devanagari": Script("hi", "कखगघचछजझटडतथदधनपफबभमयरलवशसह", "ािीुूेोौ"),
    "Chinese": Script("zh", "".join(map(chr, range(0x5000, 0x5800))), ("",), ""),
    "Japanese": Script(
        "ja", "".join(map(chr, (*range(0x3042, 0x3090), *range(0x5000, 0x5200)))), ("", "ん"), ""
    ),
    "Korean": Script("ko", "가나다라마바사자차카타파하거너더러머버서저처고노도로모보소조", ("", "는", "이")),
    "Thai": Script("th", "กขคงจชดตถทนบปผพมยรลวสหอ", ("า", "ี", "ู", "ิ", "ุ", "ัน", "อง"), ""),
    "Lao": Script("lo", "ກຂຄງຈສຊຍດຕຖທນບປຜພມຢຣລວຫອ", ("າ", "ີ", "ູ", "ິ", "ຸ", "ັນ", "ອງ"), ""),
    "Khmer": Script("km", "កខគងចឆជញដតថទនបផពមយរលវសហអ", ("ា", "ី", "ូ", "ិ", "ុ", "េ", "ោ", "ាន"), ""),
    "Burmese": Script("my", "ကခဂငစဆညတထဒနပဖဗမယရလဝသဟအ", ("ာ", "ီ", "ူ", "ိ", "ု", "ေ", "န်", "င်"), ""),
}


@dataclass(frozen=True)
class Texts:
    """Unrelated texts, and a copy of each."""

    originals: list[str]
    copies: list[str]


def texts_of_names(script: Script, n: int, sentences: int) -> Texts:
    """Texts of names in one language."""
    locale = Locale.parse(script.language)
    maps = (locale.languages, locale.territories, locale.currencies, locale.scripts)
    names = sorted({name for map_of_names in maps for name in map_of_names.values()})
    rng = random.Random(script.language)
    rng.shuffle(names)
    weights = [*accumulate(1 / (rank + 2.7) for rank in range(len(names)))]

    def subject() -> Draw:
        own = rng.sample(names, SUBJECT)
        return lambda: rng.choices(names, cum_weights=weights)[0] if rng.random() < 0.5 else rng.choice(own)

    return _texts(rng, script, n, SENTENCE * sentences, subject)


def texts_of_syllables(script: Script, n: int, n_words: int) -> Texts:
    """Texts of words that are each other's by chance alone, half as many as the text is long."""
    rng = random.Random(f"made {script.language}")

    def word() -> str:
        n_syllables = rng.randint(2, 3)
        return "".join(rng.choice(script.letters) + rng.choice(script.vowels) for _ in range(n_syllables))

    def vocabulary() -> Draw:
        own = [word() for _ in range(n_words // 2)]
        return lambda: rng.choice(own)

    return _texts(rng, script, n, n_words, vocabulary)


def _texts(rng: random.Random, script: Script, n: int, n_words: int, subject: Callable[[], Draw]) -> Texts:
    texts = Texts([], [])
    for _ in range(n):
        draw, other = subject(), subject()
        words = [draw() for _ in range(n_words)]
        copy = [other() if rng.random() < EDIT_SHARE else word for word in words]
        texts.originals.append(_text(words, script.blank))
        texts.copies.append(_text(copy, script.blank))
    return texts


def _text(words: Sequence[str], blank: str) -> str:
    sentences = (blank.join(words[begin : begin + SENTENCE]) for begin in range(0, len(words), SENTENCE))
    return "\n".join(sentences)
