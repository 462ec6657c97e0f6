"""Small planted clusters: text of random words, a template, noise and another language."""

from __future__ import annotations

import base64
import random
from collections.abc import Iterator

import pyarrow as pa

from factory import _native
from factory.clusters.proxy import ngram_counts
from factory.models.ngram import train_merges

_SENTENCES = {
    "english": "the river rose because rain fell on hills while farmers repaired their old stone walls again "
    "and nobody in that village knew how long this weather would last or what it might cost them all",
    "german": "der Fluss stieg weil es in den Bergen regnete und die Bauern ihre alten Mauern wieder bauten "
    "niemand im Dorf wusste wie lange dieses Wetter noch dauern oder was es sie alle kosten sollte",
}
WORDS = {language: sentence.split() for language, sentence in _SENTENCES.items()}


def prose(words: list[str], seed: str, n_words: int = 120) -> str:
    """Sentences of random words."""
    chance = random.Random(seed)
    return " ".join(chance.choices(words, k=n_words))


def noise(seed: str) -> str:
    """Random bytes in base64."""
    return base64.b64encode(random.Random(seed).randbytes(450)).decode()


def template(seed: str) -> str:
    """One text with other numbers."""
    chance = random.Random(seed)
    lines = ("On day %d the gauge at the old bridge read %d.", "Water level %d, temperature %d degrees.")
    return "\n".join(line % (chance.randrange(99), chance.randrange(999)) for line in lines * 5)


def texts(kind: str, cluster: int, n_documents: int) -> Iterator[str]:
    """The documents of a cluster of a kind: `english`, `german`, `noise` or `template`."""
    for number in range(n_documents):
        seed = f"{kind} {cluster} {number}"
        if kind == "noise":
            yield noise(seed)
        elif kind == "template":
            yield template(seed)
        else:
            yield prose(WORDS[kind], seed)


def proxy() -> _native.NgramProxy:
    """A proxy that knows English."""
    base = list(texts("english", -1, 60))
    merges = train_merges(iter(base), 400)
    return _native.NgramProxy(merges, *ngram_counts(base, merges))


def array(kind: str, n_documents: int = 40) -> pa.Array:
    """The texts of a cluster."""
    return pa.array(texts(kind, 0, n_documents), pa.string())
