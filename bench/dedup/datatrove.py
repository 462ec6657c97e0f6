"""The documents that datatrove's four MinHash stages keep, and their cost; run in its environment.

Arguments: `deduplicate` or `shingles`, and a folder with `first/` (a few documents) and `documents/`, each of
Parquet files (doc_id, text). `deduplicate` runs the stages with their default settings, in two workers, on
the first documents, which starts everything, then on all; it writes `kept.parquet` (doc_id) and prints the
CPU seconds of both. `shingles` writes the set of shingles of every document, as datatrove makes them, to
`shingles.npz` (documents, shingles, offsets).
"""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.base import PipelineStep
from datatrove.pipeline.dedup import (
    MinhashDedupBuckets,
    MinhashDedupCluster,
    MinhashDedupFilter,
    MinhashDedupSignature,
)
from datatrove.pipeline.dedup.minhash import MinhashConfig
from datatrove.pipeline.readers import ParquetReader
from datatrove.pipeline.writers import ParquetWriter

WORKERS = 2


def deduplicate(documents: Path, scratch: Path) -> Path:
    """Run the four stages; return the folder of the kept documents."""
    config = MinhashConfig()
    signatures, buckets, removed, left = (
        str(scratch / name) for name in ("signatures", "buckets", "removed", "left")
    )
    stages: list[tuple[list[PipelineStep], int]] = [
        ([_reader(documents), MinhashDedupSignature(signatures, config)], WORKERS),
        ([MinhashDedupBuckets(signatures, buckets, config=config)], config.num_buckets),
        ([MinhashDedupCluster(buckets, removed, config=config)], 1),
        ([_reader(documents), MinhashDedupFilter(removed), ParquetWriter(left)], WORKERS),
    ]
    for number, (steps, tasks) in enumerate(stages):
        # Forked workers are reaped by this process, so their time is counted.
        LocalPipelineExecutor(
            steps,
            tasks=tasks,
            workers=WORKERS,
            logging_dir=str(scratch / f"logs{number}"),
            start_method="fork",
        ).run()
    return Path(left)


def _reader(documents: Path) -> ParquetReader:
    return ParquetReader(str(documents), glob_pattern="*.parquet", id_key="doc_id")


def cpu_s() -> float:
    """CPU seconds of this process and of the children it has reaped."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(it.ru_utime + it.ru_stime for it in used)


def shingles(documents: Path, target: Path) -> None:
    """Write the distinct shingles of every document."""
    step = MinhashDedupSignature(str(target.parent / "unused"), MinhashConfig())
    found = [(it.id, np.unique(step.get_shingles(it.text))) for it in _reader(documents).run(None, 0, 1)]
    np.savez(
        target,
        documents=np.array([name for name, _ in found]),
        shingles=np.concatenate([of for _, of in found]),
        offsets=np.cumsum([0, *(len(of) for _, of in found)]),
    )


if __name__ == "__main__":
    home = Path(sys.argv[2])
    if sys.argv[1] == "shingles":
        shingles(home / "documents", home / "shingles.npz")
        print(json.dumps({}))
    else:
        borders = [cpu_s()]
        for part in ("first", "documents"):
            left = deduplicate(home / part, home / f"{part}-stages")
            borders.append(cpu_s())
        kept = pq.read_table(left, columns=["id"])["id"]
        pq.write_table(pa.table({"doc_id": kept}), home / "kept.parquet")
        print(json.dumps({"start_cpu_s": borders[1] - borders[0], "cpu_s": borders[2] - borders[1]}))
