"""Some 4,000 real files of this Python installation as texts and as bags of weighted tokens.

Files are source code and documentation of 50 to 5,000 distinct tokens, each content once. A hash of the
content chooses among them, so the same packages give the same files.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import pyarrow as pa

from bench.bags import Bag, Bags, joined
from bench.installation import installed_files
from factory import _native
from factory.dedup.bags import MAX_DISTINCT

FILES = 4_096
LEAST_TOKENS, MOST_TOKENS = 50, 5_000  # distinct tokens
MOST_BYTES = 1_000_000
SUFFIXES = {".py", ".pyi", ".md", ".rst", ".txt", ".h", ".hpp", ".c", ".js", ".css", ".html", ".pxd", ".pyx"}


@dataclass(frozen=True)
class Files(Bags):
    """The texts of files, and as bags with the inverse document frequencies that weigh them."""

    texts: pa.Array
    idf: pa.UInt8Array


def corpus() -> Files:
    """The chosen files, weighed (1 + ln tf) * idf with the idf of these files."""
    texts = pa.array(_texts(), pa.large_string())
    lengths = np.array([len(tokens) for tokens, _ in counted(texts)])
    fits = (lengths >= LEAST_TOKENS) & (lengths <= MOST_TOKENS)
    return weighed(texts.filter(pa.array(fits & (np.cumsum(fits) <= FILES))))


def weighed(texts: pa.Array) -> Files:
    """`texts` as bags weighed (1 + ln tf) * idf with the idf of these texts."""
    bags = counted(texts)
    tokens, counts = (np.concatenate(column) for column in zip(*bags, strict=True))
    distinct, number, frequencies = np.unique(tokens, return_inverse=True, return_counts=True)
    weights = (1 + np.log(counts)) * np.log1p(len(texts) / frequencies)[number]
    builder = _native.IdfBuilder()
    builder.add(pa.array(distinct), pa.array(frequencies))
    offsets = np.cumsum([0, *(len(bag[0]) for bag in bags)])
    return Files(tokens, weights, offsets, texts, builder.finish(len(texts)))


def counted(
    texts: pa.Array, max_distinct: int = MAX_DISTINCT, kind: str = "code"
) -> list[tuple[np.ndarray, np.ndarray]]:
    """(tokens, counts) of each text, from its packed bag (`native/src/dedup/bags/packed_bag.rs`)."""
    bags = _native.BagMaker(kind, max_distinct, max_text_bytes=0).make(texts)["bag"]
    return [_unpacked(bag) for bag in bags.to_pylist()]


def _unpacked(bag: bytes) -> tuple[np.ndarray, np.ndarray]:
    n = int.from_bytes(bag[:4], "little")
    counts = np.frombuffer(bag, np.uint8, n, 4 + 8 * n).astype(np.int64)
    counts[counts == 0] = np.frombuffer(bag, "<u4", offset=4 + 9 * n)
    return np.frombuffer(bag, "<i8", n, 4), counts


def _texts() -> list[str]:
    """The installation's texts, by a hash of their content, each once."""
    found: dict[bytes, str] = {}
    for path in installed_files():
        if path.suffix not in SUFFIXES or path.stat().st_size > MOST_BYTES:
            continue
        content = path.read_bytes()
        try:
            text = content.decode()
        except UnicodeDecodeError:
            continue  # the tools accept only UTF-8
        found[blake2b(content, digest_size=16).digest()] = text
    first = sorted(found)[: 4 * FILES]  # enough for FILES of them to have the wanted number of tokens
    return [found[key] for key in first]


@dataclass(frozen=True)
class Pairs:
    """Pair i is bags 2 i and 2 i + 1; tokens of a bag ascend."""

    bags: Bags
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
    made: list[Bag] = []
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
    return Pairs(joined(made), similarities, unweighted)
