"""Kinds of noise: documents that no amount of training makes predictable."""

from __future__ import annotations

import base64
import random
import string
import uuid
import zlib
from collections.abc import Callable

N_BYTES = 2_000  # of a document, about
Noise = Callable[[str, random.Random], str]
"""Draws a document; the first argument is a text of real prose, which some kinds spoil."""


def _without_prose(draw: Callable[[random.Random], str]) -> Noise:
    return lambda _prose, chance: draw(chance)


def _hex_dump(chance: random.Random) -> str:
    rows = (chance.randbytes(16).hex(" ", 2) for _ in range(N_BYTES // 48))
    return "\n".join(f"{16 * number:08x}: {row}" for number, row in enumerate(rows))


def _identifiers(chance: random.Random) -> str:
    def name() -> str:
        return "".join(chance.choices(string.ascii_letters + string.digits, k=chance.randint(3, 12)))

    return "".join(f"{name()}={name()}({name()});" for _ in range(N_BYTES // 28))


def _letters(chance: random.Random) -> str:
    words = (chance.choices(string.ascii_lowercase, k=chance.randint(1, 10)) for _ in range(N_BYTES // 7))
    return " ".join("".join(word) for word in words)


def _characters(first: int, last: int) -> Noise:
    return lambda _prose, chance: "".join(chr(chance.randint(first, last)) for _ in range(N_BYTES // 2))


def _uuids(chance: random.Random) -> str:
    return "\n".join(str(uuid.UUID(bytes=chance.randbytes(16))) for _ in range(N_BYTES // 37))


def _shuffled(prose: str, chance: random.Random) -> str:
    return "".join(chance.sample(prose, len(prose)))


def _shuffled_in_words(prose: str, chance: random.Random) -> str:
    return " ".join("".join(chance.sample(word, len(word))) for word in prose.split())


def _shuffled_pairs(prose: str, chance: random.Random) -> str:
    pairs = [prose[start : start + 2] for start in range(0, len(prose), 2)]
    return "".join(chance.sample(pairs, len(pairs)))


def _bad_scan(share: float, symbols: str) -> Noise:
    return lambda prose, chance: "".join(
        chance.choice(symbols) if chance.random() < share else letter for letter in prose
    )


def _cipher(prose: str, chance: random.Random) -> str:
    """Each document has a key of its own."""
    key = "".join(chance.sample(string.ascii_lowercase, 26))
    return prose.lower().translate(str.maketrans(string.ascii_lowercase, key))


def _compressed(prose: str, _chance: random.Random) -> str:
    return zlib.compress(prose.encode()).decode("cp850")


_THREE_QUARTERS = N_BYTES * 3 // 4
FIRST_NOISE: dict[str, Noise] = {
    "base64": _without_prose(lambda chance: base64.b64encode(chance.randbytes(_THREE_QUARTERS)).decode()),
    "base64 in lines": _without_prose(
        lambda chance: base64.encodebytes(chance.randbytes(_THREE_QUARTERS)).decode()
    ),
    "base85": _without_prose(lambda chance: base64.b85encode(chance.randbytes(_THREE_QUARTERS)).decode()),
    "hexadecimal": _without_prose(lambda chance: chance.randbytes(N_BYTES // 2).hex()),
    "hex dumps": _without_prose(_hex_dump),
    "percent-encoded bytes": _without_prose(
        lambda chance: "".join(f"%{byte:02X}" for byte in chance.randbytes(N_BYTES // 3))
    ),
    "bytes as Latin-1": _without_prose(lambda chance: chance.randbytes(N_BYTES * 2 // 3).decode("latin-1")),
    "random letters": _without_prose(_letters),
    "random identifiers": _without_prose(_identifiers),
    "random Chinese characters": _characters(0x4E00, 0x9FA5),
    "shuffled letters": _shuffled,
    "letters shuffled in words": _shuffled_in_words,
    "bad scans": _bad_scan(0.4, string.ascii_letters + string.digits + " .,'~|"),
    "bad scans with symbols": _bad_scan(0.3, "#$%&*+=<>[]{}^_\u00a7\u00b0\u00ac\u00a4\u00a6"),
}
"""The kinds on which the default limits were set."""

LATER_NOISE: dict[str, Noise] = {
    "ciphers": _cipher,
    "UUIDs": _without_prose(_uuids),
    "compressed text as code page 850": _compressed,
    "shuffled pairs of letters": _shuffled_pairs,
    "escaped bytes": _without_prose(lambda chance: repr(chance.randbytes(N_BYTES // 3))),
    "random symbols": _without_prose(
        lambda chance: "".join(chance.choices(string.punctuation + string.digits + " ", k=N_BYTES))
    ),
    "random Cyrillic letters": _characters(0x410, 0x44F),
    "scans with every fifth letter wrong": _bad_scan(0.2, string.ascii_letters),
}
"""Kinds that were planted after that."""
