"""Pages with blocks of known text, and pages without any main text.

Each template writes the same kinds of blocks as another kind of site does. Rules of extraction were made on
`KNOWN`; the figures are of `UNSEEN`.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path

from jinja2 import Environment, FileSystemLoader

from bench.html.sentences import in_random_order

KNOWN = ("blog", "news", "manual", "frames")
UNSEEN = ("bare", "hashed", "forum", "wiki")
CODE = """\
def total(rows):
    result = 0
    for row in rows:
        if row.size > {number}:
            result += row.size
    return result"""


@dataclass(frozen=True)
class Generated:
    """A page, and the blocks that its main text should and should not have."""

    template: str
    html: str
    main: tuple[str, ...]
    code: str
    boilerplate: tuple[str, ...]


@cache
def _environment() -> Environment:
    return Environment(loader=FileSystemLoader(Path(__file__).with_name("templates")), autoescape=True)


def generated_pages(
    languages: Mapping[str, Sequence[str]], templates: Sequence[str], n_each: int
) -> Iterator[Generated]:
    """Yield `n_each` pages of each template in each language."""
    for template in templates:
        for language in languages:
            for seed in range(n_each):
                yield _page(template, languages, language, seed)


def _page(template: str, languages: Mapping[str, Sequence[str]], language: str, seed: int) -> Generated:
    texts, chance = in_random_order(languages, language, seed), random.Random(f"{template} {seed}")

    def sentences(low: int, high: int) -> list[str]:
        return [next(texts) for _ in range(chance.randint(low, high))]

    def phrase() -> str:
        return _phrase(next(texts))

    date = f"{chance.randint(1, 28)}.{chance.randint(1, 12)}.2023"
    main = {
        "title": phrase(),
        "texts": [" ".join(sentences(2, 5)) for _ in range(chance.randint(4, 9))],
        "points": sentences(3, 6),
        "cells": [[phrase(), phrase(), str(chance.randrange(1_000_000))] for _ in range(4)],
        "code": CODE.format(number=chance.randrange(10_000)),
    }
    beside = {
        "site": f"{phrase()} {chance.randrange(90)}",
        "slogan": f"{phrase()} !",
        "author": f"Jane Q. Writer {chance.randrange(10_000)}, {date}",
        "menu": [phrase() for _ in range(8)],
        "cookies": next(texts),
        "advert": next(texts),
        "comments": sentences(1, 3),
        "related": [phrase() for _ in range(5)],
        "legal": f"© 2023 {next(texts)}",
    }
    html = _environment().get_template(f"{template}.html").render(**main, **beside)
    boilerplate = tuple(text for text in _strings(beside.values()) if escape(text, quote=False) in html)
    blocks = tuple(_strings(block for name, block in main.items() if name != "code"))
    return Generated(template, html, blocks, str(main["code"]), boilerplate)


def _phrase(sentence: str) -> str:
    """The beginning of a sentence, as a title or the text of a link has it."""
    return " ".join(sentence.rstrip(".。!?").split()[:4])[:40].strip(" ,;:")


def _strings(blocks: object) -> Iterator[str]:
    if isinstance(blocks, str):
        yield blocks
    elif isinstance(blocks, Iterable):
        for block in blocks:
            yield from _strings(block)


def without_main_text(languages: Mapping[str, Sequence[str]], n_each: int) -> Iterator[str]:
    """Yield pages that only lead elsewhere: indexes, log-ins, scripts."""
    for language in languages:
        texts = in_random_order(languages, language, 99)
        for number in range(n_each):
            words = [escape(_phrase(next(texts))) for _ in range(24)]
            links = "".join(f'<li><a href="/{n}">{word}</a></li>' for n, word in enumerate(words))
            form = f"<label>{words[1]}</label><input name=u><input type=password><button>{words[2]}</button>"
            body = (
                f"<div id='menu'><ul>{links}</ul></div><p><a href='/more'>{words[0]}</a></p>",
                f"<form><h1>{words[0]}</h1>{form}</form><footer>{words[3]}</footer>",
                f"<div id=app></div><noscript>{words[4]}</noscript><script>{'x();' * 400}</script>",
            )
            yield f"<html><body>{body[number % 3]}</body></html>"
