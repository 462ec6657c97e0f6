"""The CPU seconds and estimates of datasketch and rensa for the same files; run in their environment.

Arguments: a folder with `texts.parquet` (text), `bags.npz` (dimensions, weights, offsets, dimension; share:
the numbers of the bags that datasketch signs) and `pairs.npz` (dimensions, weights, offsets; pair i is bags
2 i and 2 i + 1), and the number of values. Prints one JSON line: by tool the documents and CPU seconds from
counts and from text, and the estimates of the pairs.
"""

from __future__ import annotations

import itertools
import json
import math
import re
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from datasketch import WeightedMinHashGenerator
from rensa import RMinHash
from scipy.sparse import csr_matrix

from bench.timing import cpu_seconds

WORD = re.compile(r"\w+")
NONZEROS_AT_ONCE = 12_000_000  # times values: less copies its parameters more often, more exceeds the caches
DENSE = 24  # documents for `minhash`, a tenth of a second each

folder, values = Path(sys.argv[1]), int(sys.argv[2])
texts = pq.read_table(folder / "texts.parquet")["text"].to_pylist()
bags, pairs = np.load(folder / "bags.npz"), np.load(folder / "pairs.npz")
dimension, share = int(bags["dimension"]), bags["share"].tolist()


def timed(work: Callable[[], Any], documents: int) -> dict[str, float]:
    return {"documents": documents, "cpu_s": cpu_seconds(work, rounds=1)[0]}


def matrix(dimensions: np.ndarray, weights: np.ndarray, offsets: np.ndarray) -> csr_matrix:
    shape = (len(offsets) - 1, dimension)
    return csr_matrix((weights.astype(np.float32), dimensions, offsets), shape=shape)


def many(rows: csr_matrix) -> list[np.ndarray]:
    """(values, 2) of each row, signed in batches of NONZEROS_AT_ONCE."""
    found, start = [], 0
    while start < rows.shape[0]:
        limit = rows.indptr[start] + NONZEROS_AT_ONCE // values
        end = max(start + 1, int(np.searchsorted(rows.indptr, limit)) - 1)
        found += [signed.hashvalues for signed in generator.minhash_many(rows[start:end])]
        start = end
    return found


def from_texts() -> csr_matrix:
    """The files as weighted rows; Python counts their words, as a user of datasketch would."""
    dimensions, weights, offsets = [], [], [0]
    for text in (texts[number] for number in share):
        for word, count in Counter(WORD.findall(text)).items():
            number = numbers.get(word)
            if number is not None:
                dimensions.append(number)
                weights.append((1 + math.log(count)) * idf[number])
        offsets.append(len(dimensions))
    return matrix(np.array(dimensions, np.int32), np.array(weights), np.array(offsets))


def agreement(signed: list[np.ndarray]) -> list[float]:
    found = np.array(signed)
    return [float(it) for it in (found[::2] == found[1::2]).all(2).mean(1)]


# A vocabulary is made once per corpus, so the time leaves it out.
in_texts: Counter[str] = Counter()
for text in texts:
    in_texts.update(set(WORD.findall(text)))
numbers = {word: number for number, (word, _) in enumerate(in_texts.most_common(dimension))}
idf = {number: math.log(1 + len(texts) / in_texts[word]) for word, number in numbers.items()}

found: dict[str, Any] = {}
generator = WeightedMinHashGenerator(dimension, values, seed=1)
rows = matrix(bags["dimensions"], bags["weights"], bags["offsets"])[share]
dense = [rows[number].toarray()[0] for number in range(0, len(share), len(share) // DENSE)]
found["datasketch minhash"] = {
    "costs": {"from_counts": timed(lambda: [generator.minhash(row) for row in dense], len(dense))},
    "estimates": [],
}
found["datasketch minhash_many"] = {
    "costs": {
        "from_counts": timed(lambda: many(rows), len(share)),
        "from_text": timed(lambda: many(from_texts()), len(share)),
    },
    "estimates": agreement(many(matrix(pairs["dimensions"], pairs["weights"], pairs["offsets"]))),
}
words = [list(set(WORD.findall(text))) for text in texts]
sets = [
    [str(pair) for pair in pairs["dimensions"][start:end]]
    for start, end in itertools.pairwise(pairs["offsets"])
]
estimates = []
for number in range(0, len(sets), 2):  # one seed per pair, as in ours
    left, right = (RMinHash.from_token_sets([it], values, number)[0] for it in sets[number : number + 2])
    estimates.append(left.jaccard(right))
found["rensa, no weights"] = {
    "costs": {
        "from_counts": timed(lambda: RMinHash.from_token_sets(words, values, 1), len(texts)),
        "from_text": timed(
            lambda: RMinHash.from_token_sets([WORD.findall(text) for text in texts], values, 1), len(texts)
        ),
    },
    "estimates": estimates,
}
print(json.dumps(found))
