"""Kinds of templates: documents that differ in a few places, cut from real prose."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence

from bench.clusters.noise import N_BYTES

Draw = Callable[[random.Random], str]
"""Draws a document of a cluster."""

Template = Callable[[Sequence[str], random.Random], Draw]
"""Makes a template of some prose; each cluster has its own."""

_ENDINGS = ("a", "e", "i", "o", "u", "an", "el", "or")
_SYLLABLES = [start + end for start in "bdfgklmnprstvz" for end in _ENDINGS]


def _name(chance: random.Random) -> str:
    return "".join(chance.choices(_SYLLABLES, k=chance.randint(2, 3))).capitalize()


def _number(chance: random.Random) -> str:
    return str(chance.randrange(10 ** chance.randint(1, 5)))


def _name_or_number(chance: random.Random) -> str:
    return chance.choice((_name, _number))(chance)


def _slots(draw_slot: Draw, words_a_slot: int) -> Template:
    """One text in which every so many words change."""

    def template(prose: Sequence[str], of_cluster: random.Random) -> Draw:
        words = of_cluster.choice(prose).split(" ")
        slots = set(of_cluster.sample(range(len(words)), max(1, len(words) // words_a_slot)))
        return lambda chance: " ".join(
            draw_slot(chance) if place in slots else word for place, word in enumerate(words)
        )

    return template


def _mail_merge(prose: Sequence[str], of_cluster: random.Random) -> Draw:
    letter = of_cluster.choice(prose)
    return lambda chance: f"Dear {_name(chance)} {_name(chance)},\n\n{letter}\n\n{_number(chance)}"


def _log_lines(prose: Sequence[str], of_cluster: random.Random) -> Draw:
    messages = _excerpts(prose, of_cluster, 6, 8)

    def line(chance: random.Random) -> str:
        time = ":".join(str(chance.randint(10, most)) for most in (23, 59, 59))
        return f"2024-0{chance.randint(1, 9)}-{chance.randint(10, 28)}T{time} INFO {chance.choice(messages)}"

    return lambda chance: "\n".join(line(chance) for _ in range(N_BYTES // 80))


def _menus(prose: Sequence[str], of_cluster: random.Random) -> Draw:
    """Links of a site in changing order."""
    links = _excerpts(prose, of_cluster, 40, 4)
    return lambda chance: "\n".join(chance.choices(links, k=N_BYTES // 30))


def _product_pages(prose: Sequence[str], of_cluster: random.Random) -> Draw:
    paragraphs = _excerpts(prose, of_cluster, 12, 25)
    return lambda chance: "\n\n".join(
        f"{_name(chance)} {_number(chance)}: {paragraph}" for paragraph in chance.sample(paragraphs, 9)
    )


def _records(prose: Sequence[str], of_cluster: random.Random) -> Draw:
    """JSON with the same keys."""
    words = " ".join(_excerpts(prose, of_cluster, 5, 60)).lower().split()
    keys = sorted({word for word in words if word.isalpha()})[:80]
    return lambda chance: json.dumps({key: chance.choice((_number(chance), True, None)) for key in keys})


def _bulletins(prose: Sequence[str], of_cluster: random.Random) -> Draw:
    [sentence] = _excerpts(prose, of_cluster, 1, 25)
    return lambda chance: "\n".join(
        f"{_name(chance)}: {sentence} {_number(chance)}." for _ in range(N_BYTES // 200)
    )


def _reference(prose: Sequence[str], of_cluster: random.Random) -> Draw:
    """Stubs of a generated reference."""
    notes = "\n    ".join(_excerpts(prose, of_cluster, 3, 15))
    return lambda chance: "\n\n".join(
        f"get_{_name(chance).lower()}(self)\n    {notes}" for _ in range(N_BYTES // 350)
    )


def _notices(prose: Sequence[str], of_cluster: random.Random) -> Draw:
    """A long notice before a short text."""
    notice = of_cluster.choice(prose)
    return lambda chance: f"{notice}\n\n{chance.choice(prose)[: N_BYTES // 5]}"


def _excerpts(prose: Sequence[str], chance: random.Random, n_texts: int, n_words: int) -> list[str]:
    return [" ".join(text.split()[:n_words]) for text in chance.sample(prose, n_texts)]


FIRST_TEMPLATES: dict[str, Template] = {
    "numbers change": _slots(_number, 12),
    "names change": _slots(_name, 12),
    "names and numbers change": _slots(_name_or_number, 10),
    "mail merges": _mail_merge,
    "log lines": _log_lines,
    "menus": _menus,
    "product pages": _product_pages,
}
"""The kinds on which the default limits were set."""

LATER_TEMPLATES: dict[str, Template] = {
    "records with the same keys": _records,
    "bulletins": _bulletins,
    "stubs of a reference": _reference,
    "a notice before each text": _notices,
}
"""Kinds that were planted after that."""
