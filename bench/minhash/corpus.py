"""Some 4,000 real files of this Python installation as texts and as bags of weighted tokens.

Files are source code and documentation of 50 to 5,000 distinct tokens, each content once. A hash of the
content chooses among them, so the same packages give the same files.
"""

from __future__ import annotations

import sysconfig
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import numpy as np
import pyarrow as pa

from factory import _native
from factory.dedup.bags import MAX_DISTINCT

FILES = 4_096
LEAST_TOKENS, MOST_TOKENS = 50, 5_000  # distinct ones
MOST_BYTES = 1_000_000
SUFFIXES = {".py", ".pyi", ".md", ".rst", ".txt", ".h", ".hpp", ".c", ".js", ".css", ".html", ".pxd", ".pyx"}


@dataclass(frozen=True)
class Bags:
    """Documents as weighted bags: document i is `tokens[offsets[i]:offsets[i + 1]]`."""

    texts: pa.Array
    tokens: np.ndarray
    weights: np.ndarray
    offsets: np.ndarray
    idf: pa.UInt8Array

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def of(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """(tokens, weights) of one document."""
        part = slice(self.offsets[number], self.offsets[number + 1])
        return self.tokens[part], self.weights[part]


def corpus() -> Bags:
    """The chosen files, weighed (1 + ln tf) * idf with the idf of these files."""
    texts = pa.array(_texts(), pa.large_string())
    bags = _native.bags(texts, "code", MAX_DISTINCT)
    lengths = np.diff(bags["tokens"].offsets.to_numpy())
    fits = (lengths >= LEAST_TOKENS) & (lengths <= MOST_TOKENS)
    return weighed(texts.filter(pa.array(fits & (np.cumsum(fits) <= FILES))))


def weighed(texts: pa.Array) -> Bags:
    """`texts` as bags weighed (1 + ln tf) * idf with the idf of these texts."""
    bags = _native.bags(texts, "code", MAX_DISTINCT)
    tokens, counts = (bags[name].flatten().to_numpy() for name in ("tokens", "counts"))
    distinct, number, frequencies = np.unique(tokens, return_inverse=True, return_counts=True)
    weights = (1 + np.log(counts)) * np.log1p(len(texts) / frequencies)[number]
    builder = _native.IdfBuilder()
    builder.add(pa.array(distinct), pa.array(frequencies))
    table = builder.finish(len(texts))
    return Bags(texts, tokens, weights, bags["tokens"].offsets.to_numpy().astype(np.int64), table)


def _texts() -> list[str]:
    """The installation's texts, by a hash of their content, each once."""
    found: dict[bytes, str] = {}
    for name in ("purelib", "stdlib"):
        root = Path(sysconfig.get_path(name))
        for path in sorted(root.rglob("*")):
            inside = path.relative_to(root).parts
            if path.suffix not in SUFFIXES or (name == "stdlib" and "site-packages" in inside):
                continue
            if not path.is_file() or path.stat().st_size > MOST_BYTES:
                continue
            content = path.read_bytes()
            try:
                text = content.decode()
            except UnicodeDecodeError:
                continue  # no tool takes anything but UTF-8
            found[blake2b(content, digest_size=16).digest()] = text
    first = sorted(found)[: 4 * FILES]  # enough for FILES of them to have the wanted number of tokens
    return [found[key] for key in first]


@dataclass(frozen=True)
class Pairs:
    """Pair i is bags 2 i and 2 i + 1; tokens of a bag ascend."""

    tokens: np.ndarray
    weights: np.ndarray
    offsets: np.ndarray
    similarities: np.ndarray
    """Exact J_W, one per pair."""
    unweighted: np.ndarray
    """Exact Jaccard of the sets of tokens."""

    def __len__(self) -> int:
        return len(self.similarities)


def pairs(bags: Bags, seed: int) -> Pairs:
    """Pair each file with a copy that has a share of its tokens replaced by those of another file.

    Similarities spread from about .1 to .98: below, errors are mostly the chance agreement of 8-bit values.
    """
    generator = np.random.default_rng(seed)
    made: list[tuple[np.ndarray, np.ndarray]] = []
    exact: list[tuple[float, float]] = []
    for number, other in enumerate(generator.permutation(len(bags))):
        tokens, weights = bags.of(number)
        others, other_weights = bags.of(int(other))
        share = generator.uniform(0.02, 0.8)
        stays, comes = generator.random(len(tokens)) >= share, generator.random(len(others)) < share
        comes &= ~np.isin(others, tokens)
        mixed = np.concatenate([tokens[stays], others[comes]])
        mixed_weights = np.concatenate([weights[stays], other_weights[comes]])
        if stays.all() and not comes.any():
            continue  # equal bags have no error to measure
        order = np.argsort(mixed)
        made += [(tokens, weights), (mixed[order], mixed_weights[order])]
        least, both = weights[stays].sum(), weights.sum() + other_weights[comes].sum()
        exact.append((least / both, stays.sum() / (len(tokens) + comes.sum())))
    similarities, unweighted = np.array(exact).T
    return Pairs(
        np.concatenate([tokens for tokens, _ in made]),
        np.concatenate([weights for _, weights in made]),
        np.cumsum([0, *(len(tokens) for tokens, _ in made)]),
        similarities,
        unweighted,
    )
