"""Texts as weighted means of word vectors (CBOW) trained on them; run in floret's environment.

Arguments: a JSON file with a list of texts, a file for the vectors, and their dimensions. The weights are
those of Arora et al., "A simple but tough-to-beat baseline for sentence embeddings", 2017, and the common
direction is taken out as there. Prints one JSON line: the CPU seconds.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import floret
import numpy as np

WEIGHT = 1e-3
LEAST_COUNT = 2


def main(texts_file: str, vectors_file: str, dimensions: str) -> None:
    texts = [re.findall(r"\w+", text.lower()) for text in json.loads(Path(texts_file).read_text())]
    began = time.process_time()
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.writelines(" ".join(words) + "\n" for words in texts)
        file.flush()
        model = floret.train_unsupervised(
            file.name, model="cbow", dim=int(dimensions), minCount=LEAST_COUNT, maxn=0, thread=1, epoch=2
        )
    counts = Counter(word for words in texts for word in words)
    total = counts.total()
    word_vectors = {
        word: model.get_word_vector(word) * (WEIGHT / (WEIGHT + count / total))
        for word, count in counts.items()
    }
    means = np.stack([np.mean([word_vectors[word] for word in words], axis=0) for words in texts])
    common = np.linalg.svd(means, full_matrices=False)[2][0]
    means -= np.outer(means @ common, common)
    means /= np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-9)
    np.save(vectors_file, means.astype(np.float32))
    print(json.dumps(time.process_time() - began))


if __name__ == "__main__":
    main(*sys.argv[1:])
