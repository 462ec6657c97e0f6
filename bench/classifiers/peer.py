"""floret (fastText's trainer) on the same examples; run in its environment.

Arguments: a JSON file of rows (text, class, trains) and the class whose probability is asked. Prints one JSON
line: the seconds of fitting and predicting, and the probability of every text. It has the settings
of the classifiers in the literature: words and pairs of words, 16 dimensions, 2^18 buckets.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

import floret


def main(file: str, asked_class: str) -> None:
    rows = json.loads(Path(file).read_text())
    lines = [" ".join(row["text"].lower().split()) for row in rows]
    with tempfile.TemporaryDirectory() as folder:
        examples = Path(folder) / "examples.txt"
        examples.write_text(
            "".join(
                f"__label__{row['class']} {line}\n"
                for row, line in zip(rows, lines, strict=True)
                if row["trains"]
            )
        )
        began = time.process_time()
        model = floret.train_supervised(
            str(examples), dim=16, wordNgrams=2, bucket=1 << 18, epoch=10, lr=0.5, thread=1, verbose=0
        )
        fit_end = time.process_time()
    label = f"__label__{asked_class}"
    probabilities = [dict(zip(*model.predict(line, k=-1), strict=True)).get(label, 0.0) for line in lines]
    seconds = {"fit_s": fit_end - began, "predict_s": time.process_time() - fit_end}
    print(json.dumps(seconds | {"probabilities": list(map(float, probabilities))}))


if __name__ == "__main__":
    main(*sys.argv[1:])
