"""The documents that rensa's deduplicator keeps, and its cost; run in its environment.

Arguments as for `bench/dedup/datatrove.py`. rensa takes tokens, so Python makes shingles of five words, as in
its examples; its deduplicator compares signatures of 128 values at .8 with those it has kept.
"""

from __future__ import annotations

import json
import re
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rensa import RMinHashDeduplicator

WORD = re.compile(r"\w+")
WORDS = 5
THRESHOLD, VALUES = 0.8, 128


def shingles_of(text: str) -> set[str]:
    """The shingles of five words; a shorter text is one shingle."""
    words = WORD.findall(text.lower())
    return (
        {" ".join(words[at : at + WORDS]) for at in range(max(1, len(words) - WORDS + 1))} if words else set()
    )


def deduplicate(documents: Path) -> list[str]:
    """The kept documents, in the order of the files."""
    deduplicator = RMinHashDeduplicator(THRESHOLD, VALUES, True)
    kept = []
    for file in sorted(documents.glob("*.parquet")):
        for batch in pq.ParquetFile(file).iter_batches(1_000, columns=["doc_id", "text"]):
            names, texts = (batch[name].to_pylist() for name in ("doc_id", "text"))
            stays = deduplicator.add_pairs(
                [(name, list(shingles_of(text))) for name, text in zip(names, texts, strict=True)]
            )
            kept += [name for name, stay in zip(names, stays, strict=True) if stay]
    return kept


def shingles(documents: Path, target: Path) -> None:
    """Write the distinct shingles of every document, hashed."""
    names, found = [], []
    for file in sorted(documents.glob("*.parquet")):
        rows = pq.read_table(file, columns=["doc_id", "text"])
        names += rows["doc_id"].to_pylist()
        for text in rows["text"].to_pylist():
            hashes = [hash(it) for it in shingles_of(text)]  # one process, so one seed
            found.append(np.unique(np.array(hashes, np.int64).astype(np.uint64)))
    np.savez(
        target,
        documents=np.array(names),
        shingles=np.concatenate(found),
        offsets=np.cumsum([0, *(len(of) for of in found)]),
    )


if __name__ == "__main__":
    home = Path(sys.argv[2])
    if sys.argv[1] == "shingles":
        shingles(home / "documents", home / "shingles.npz")
        print(json.dumps({}))
    else:
        borders = [time.process_time()]
        for part in ("first", "documents"):
            kept = deduplicate(home / part)
            borders.append(time.process_time())
        pq.write_table(pa.table({"doc_id": kept}), home / "kept.parquet")
        print(json.dumps({"start_cpu_s": borders[1] - borders[0], "cpu_s": borders[2] - borders[1]}))
