"""nltk's interpolated Witten-Bell on the same tokens; run in its environment.

Argument: a JSON file with `training` and `judging`, texts as lists of tokens, the size of the `vocabulary`
and the `order`. Prints one JSON line: the bits of every judged text, and the CPU seconds. nltk gives an
unseen token no probability, so its single tokens are interpolated with the uniform distribution, in one
method.
"""

from __future__ import annotations

import json
import math
import sys
import time
from pathlib import Path

from nltk.lm import NgramCounter, Vocabulary, WittenBellInterpolated
from nltk.util import everygrams


def main(file: str) -> None:
    task = json.loads(Path(file).read_text())
    order, vocabulary = task["order"], task["vocabulary"]
    began = time.process_time()
    counter = NgramCounter(everygrams(text, max_len=order) for text in task["training"])
    model = WittenBellInterpolated(order, vocabulary=Vocabulary(range(vocabulary)), counter=counter)
    unigrams = counter.unigrams
    n_tokens, n_distinct = unigrams.N(), len(unigrams)

    def unigram_score(token: int) -> float:
        return float((unigrams[token] + n_distinct / vocabulary) / (n_tokens + n_distinct))

    model.estimator.unigram_score = unigram_score
    count_end = time.process_time()
    bits = [
        -sum(
            math.log2(model.unmasked_score(token, tuple(text[max(0, place - order + 1) : place])))
            for place, token in enumerate(text)
        )
        for text in task["judging"]
    ]
    seconds = {"count_s": count_end - began, "score_s": time.process_time() - count_end}
    print(json.dumps(seconds | {"bits": bits}))


if __name__ == "__main__":
    main(*sys.argv[1:])
