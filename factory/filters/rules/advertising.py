"""Rules of adverts: calls to act, prices, contact lines and links.

They are the cheap first pass against adverts, and the weak labels that a classifier learns from until people
give better ones (`docs/models.md`). One sign proves nothing: an order form has prices and an academic's page
an address, so a classifier learns best from documents that fail two of them. A rate means nothing in a text
of fewer than 50 words.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise

from factory import _native
from factory.filters.limits import AtMost
from factory.filters.rule import TextRule, text_rule
from factory.filters.text import Text, ratio

HOUSE = "Model Factory, 2026"
LEAST_WORDS = 50
SIGNS = "$\u20ac\u00a3\u00a5\u20b9"
CURRENCIES = {*SIGNS, "usd", "eur", "gbp", "chf"}
OFF = {"off", "discount", "rabatt", "remise", "descuento", "desconto", "sconto", "korting"}
LABELS = {"tel", "telephone", "telefon", "phone", "fax", "email", "e-mail", "whatsapp", "hotline", "mobile"}
LEADING, TRAILING = "([\"'\u201c", ")]\"'.,;:!?"
LEAST_DIGITS = 8  # of a telephone number
MOST_WORDS = 12  # of a contact line
_NUMBER = re.compile(r"[0-9](?:[0-9.,']*[0-9])?")
_ADVERT = (
    "Buy now and save up to 50 %! Our shoes cost only $19.99, the boots $39.00. Order today: free shipping, "
    "while supplies last. Call us today for special offers. Use code SHOES at the till and pay 20 EUR, 5% "
    "off for you.\n"
)


@cache
def _phrases() -> list[list[str]]:
    """The phrases that call to act, the longest first."""
    return sorted((line.split(" ") for line in _native.advert_phrases()), key=len, reverse=True)


@text_rule("per 1,000 words", HOUSE, AtMost(10), example=_ADVERT * 2)
def advert_calls(text: Text) -> float | None:
    """Calls to act, such as `buy now` and `free shipping`, in seven languages; ASCII letters in any case."""
    words = [_small(core) for core in text.cores]
    calls = 0
    while words:
        longest = next((phrase for phrase in _phrases() if words[: len(phrase)] == phrase), None)
        calls += longest is not None
        words = words[len(longest or [""]) :]
    return _rate(calls, text)


@text_rule("per 1,000 words", HOUSE, AtMost(20), example=_ADVERT * 2)
def advert_prices(text: Text) -> float | None:
    """Numbers with a currency or a discount: `$19.99`, `20 EUR`, `5% off`, `-50%`."""
    words = [_small(word.lstrip(LEADING).rstrip(TRAILING)) for word in text.words]
    pairs = pairwise([*words, ""])
    return _rate(sum(_is_price(word, following) for word, following in pairs), text)


@text_rule(
    "share",
    HOUSE,
    AtMost(0.25),
    example="Tel: 030 1234567\nme@shop.example\nWe sell shoes.\n" + "shoes " * 50,
)
def advert_contacts(text: Text) -> float | None:
    """Share of the lines, without blank ones, that name an address, a telephone number or a label of one."""
    if len(text.cores) < LEAST_WORDS:
        return None
    return ratio(sum(map(_is_contact, text.written_lines)), len(text.written_lines))


@text_rule("per 1,000 words", HOUSE, AtMost(200), example="word https://shop.example " * 60)
def advert_links(text: Text) -> float | None:
    """Words that hold `://` or begin with `www.`."""
    return _rate(sum("://" in word or _small(word).startswith("www.") for word in text.words), text)


def _rate(number: int, text: Text) -> float | None:
    return None if len(text.cores) < LEAST_WORDS else 1_000 * number / len(text.cores)


def _small(word: str) -> str:
    """The word with ASCII letters in lower case."""
    return word.encode().lower().decode()


def _is_price(word: str, following: str) -> bool:
    if word.endswith("%"):
        number = word[:-1]
        less = number.startswith("-") and _is_number(number[1:])
        return less or (_is_number(number) and following in OFF)
    if word in CURRENCIES:
        return _is_number(following)
    if word[:1] in {*SIGNS} or word[-1:] in {*SIGNS}:
        return _is_number(word[1:] if word[:1] in {*SIGNS} else word[:-1])
    return _is_number(word) and following in CURRENCIES


def _is_number(word: str) -> bool:
    """Whether a word is digits, perhaps with separators between them."""
    return _NUMBER.fullmatch(word) is not None


def _is_contact(line: str) -> bool:
    """Whether a line of few words names a label, an address or a telephone number."""
    words = Text(line).words
    if not 0 < len(words) <= MOST_WORDS:
        return False
    label = _small(words[0])
    if label.endswith(":") and label[:-1] in LABELS:
        return True
    return any(map(_is_address, words)) or _has_telephone_number(line)


def _is_address(word: str) -> bool:
    name, sign, host = word.lstrip(LEADING).rstrip(TRAILING).partition("@")
    ending = host.rpartition(".")[2] if "." in host else ""
    return (
        bool(sign and name) and not host.startswith(".") and re.fullmatch("[A-Za-z]{2,}", ending) is not None
    )


def _has_telephone_number(line: str) -> bool:
    """Whether a run of digits and their separators begins like a telephone number and has enough digits."""
    return any(
        run.strip(" ").startswith(("+", "(", "0")) and len(re.findall("[0-9]", run)) >= LEAST_DIGITS
        for run in re.split(r"[^0-9+()\-./ ]", line)
    )


RULES: tuple[TextRule, ...] = (advert_calls, advert_prices, advert_contacts, advert_links)
