"""The program of a peer: the documents it keeps and their cost, and its own shingles.

Arguments: `deduplicate` or `shingles`, and a folder with `first/` (a few documents) and `documents/`, each of
Parquet files (doc_id, text). `deduplicate` runs on the first documents, which starts everything, then on all;
it writes `kept.parquet` (doc_id) and prints the CPU seconds of the second run. `shingles` writes the set of
shingles of every document to `shingles.npz` (documents, shingles, offsets).
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq


def run(
    deduplicate: Callable[[Path], list[str]], shingles: Callable[[Path], Iterable[tuple[str, np.ndarray]]]
) -> None:
    """Run the program; `deduplicate` returns the kept ids of a folder, `shingles` hashes by id."""
    home = Path(sys.argv[2])
    if sys.argv[1] == "shingles":
        found = [(name, np.unique(hashes)) for name, hashes in shingles(home / "documents")]
        np.savez(
            home / "shingles.npz",
            documents=np.array([name for name, _ in found]),
            shingles=np.concatenate([hashes for _, hashes in found]),
            offsets=np.cumsum([0, *(len(hashes) for _, hashes in found)]),
        )
        print(json.dumps({}))
    else:
        deduplicate(home / "first")
        began = _cpu_s()
        kept = deduplicate(home / "documents")
        cpu_s = _cpu_s() - began
        pq.write_table(pa.table({"doc_id": pa.array(kept, pa.string())}), home / "kept.parquet")
        print(json.dumps({"cpu_s": cpu_s}))


def _cpu_s() -> float:
    """CPU seconds of this process and of the children it has reaped."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(it.ru_utime + it.ru_stime for it in used)
