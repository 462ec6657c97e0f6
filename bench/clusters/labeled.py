"""Texts with labels: generated topics, and the Python files of packages."""

from __future__ import annotations

import sysconfig
from collections import defaultdict
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import numpy as np
import numpy.typing as npt

N_TOPICS, N_DOCUMENTS = 100, 8_000
VOCABULARY, TOPIC_WORDS = 20_000, 200
OF_TOPIC, OF_OTHER = 0.2, 0.1  # shares of a document's words; the rest are words of all topics
PACKAGES, FILES, LEAST_FILES = 140, 40, 12  # FILES of a package at most
FILE_BYTES = range(500, 40_000)


@dataclass(frozen=True)
class Labeled:
    """Texts and the number of each one's label."""

    texts: list[str]
    labels: npt.NDArray[np.int64]

    @property
    def n_labels(self) -> int:
        """The number of different labels."""
        return len(np.unique(self.labels))


def topics(seed: int = 4) -> Labeled:
    """Documents of 30 to 400 words with Zipf's frequencies, some of a topic and some of another one."""
    chance = np.random.default_rng(seed)
    words = np.array([f"word{number}" for number in range(VOCABULARY)])
    common = 1 / np.arange(1, VOCABULARY + 1)
    common /= common.sum()
    of_topic = np.stack([chance.choice(VOCABULARY, TOPIC_WORDS, replace=False) for _ in range(N_TOPICS)])
    labels = chance.integers(0, N_TOPICS, N_DOCUMENTS)
    texts = []
    for topic in labels:
        n = int(np.exp(chance.uniform(np.log(30), np.log(400))))
        tokens = chance.choice(VOCABULARY, n, p=common)
        kinds = chance.random(n)
        other = chance.integers(0, N_TOPICS)
        for source, members in (
            (topic, kinds < OF_TOPIC),
            (other, (kinds >= OF_TOPIC) & (kinds < OF_TOPIC + OF_OTHER)),
        ):
            tokens[members] = chance.choice(of_topic[source], int(members.sum()))
        texts.append(" ".join(words[tokens]))
    return Labeled(texts, labels)


def packages() -> Labeled:
    """The Python files of installed packages, labeled by package and subpackage."""
    root = Path(sysconfig.get_path("purelib"))
    by_label: dict[str, list[Path]] = defaultdict(list)
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).parts
        if len(parts) > 1 and path.stat().st_size in FILE_BYTES:
            by_label["/".join(parts[: min(2, len(parts) - 1)])].append(path)
    names = sorted((name for name in by_label if len(by_label[name]) >= LEAST_FILES), key=_hash)[:PACKAGES]
    texts, labels = [], []
    for number, name in enumerate(names):
        for path in sorted(by_label[name], key=lambda path: _hash(str(path.relative_to(root))))[:FILES]:
            texts.append(path.read_text(errors="replace"))
            labels.append(number)
    return Labeled(texts, np.array(labels))


def _hash(name: str) -> bytes:
    return blake2b(name.encode(), digest_size=8).digest()
