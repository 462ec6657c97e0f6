"""A corpus of generated topics, with mails of one template and with noise, as records of a JSON Lines file.

    python examples/topics.py data/topics.jsonl

Six topics have words of their own, so their clusters are known: docs/clusters.md follows them.
"""

from __future__ import annotations

import base64
import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path

N_TOPICS, OF_A_TOPIC, N_TEMPLATES, N_NOISE = 6, 150, 90, 60
_CONSONANTS, _VOWELS = "bdfgklmnprstvz", "aeiou"
_COMMON = (
    "the",
    "of",
    "and",
    "to",
    "in",
    "a",
    "is",
    "that",
    "it",
    "for",
    "was",
    "on",
    "are",
    "with",
    "as",
    "at",
)


def write_topics(file: Path, seed: int = 0) -> None:
    """Write the records of `topics`, a line each."""
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = (json.dumps(record) + "\n" for record in topics(seed))
    file.write_text("".join(lines))


def topics(seed: int = 0) -> Iterator[dict[str, str]]:
    """Yield records of id, kind (`topic0` ..., `template`, `noise`) and text, in a fixed order."""
    draw = random.Random(seed)
    for topic in range(N_TOPICS):
        words = [_word(draw) for _ in range(220)]
        for number in range(OF_A_TOPIC):
            yield _record(f"topic{topic}", number, _prose(draw, words))
    for number in range(N_TEMPLATES):
        yield _record("template", number, _template(draw))
    for number in range(N_NOISE):
        yield _record("noise", number, _noise(draw))


def _record(kind: str, number: int, text: str) -> dict[str, str]:
    return {"id": f"{kind}/{number}", "kind": kind, "text": text}


def _word(draw: random.Random) -> str:
    return "".join(draw.choice(_CONSONANTS) + draw.choice(_VOWELS) for _ in range(draw.randint(2, 4)))


def _prose(draw: random.Random, words: list[str]) -> str:
    """Sentences of common words and the topic's; a few of them are much more frequent than the others."""
    weights = [1 / (rank + 3) for rank in range(len(words))]
    sentences = []
    for _ in range(draw.randint(8, 24)):
        of_topic = draw.choices(words, weights, k=draw.randint(5, 11))
        common = draw.choices(_COMMON, k=len(of_topic))
        alternating = [word for pair in zip(common, of_topic, strict=True) for word in pair]
        sentences.append(f"{' '.join(alternating).capitalize()}.")
    return " ".join(sentences)


def _template(draw: random.Random) -> str:
    lines = [
        f"Your order number {draw.randint(10_000, 99_999)} has left our warehouse and is on its way to you.",
        f"You can follow the parcel {draw.randint(10_000, 99_999)} on our page at any time of the day.",
        "Please do not answer this mail, because nobody reads what arrives at this address.",
        "If you have a question, write to our service and give the number of your order.",
        f"We wish you much joy with your purchase of {draw.randint(1, 9)} articles from our shop.",
    ]
    return "\n".join(lines * 3)


def _noise(draw: random.Random) -> str:
    lines = [base64.b64encode(draw.randbytes(45)).decode() for _ in range(24)]
    return "\n".join(lines)


if __name__ == "__main__":
    write_topics(Path(sys.argv[1]))
