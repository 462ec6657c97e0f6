"""The documents that datatrove's four MinHash stages keep, and its shingles; run in its environment.

Arguments as for `bench.dedup.program`. The stages have their default settings and two workers.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
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

from bench.dedup.program import run

WORKERS = 2


def deduplicate(documents: Path) -> list[str]:
    """Run the four stages; return the kept documents."""
    config = MinhashConfig()
    scratch = documents.with_name(f"{documents.name}-stages")
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
    kept: list[str] = pq.read_table(left, columns=["id"])["id"].to_pylist()
    return kept


def shingles(documents: Path) -> Iterator[tuple[str, np.ndarray]]:
    """The shingles of every document, as datatrove hashes them."""
    step = MinhashDedupSignature(str(documents.with_name("unused")), MinhashConfig())
    return ((it.id, step.get_shingles(it.text)) for it in _reader(documents).run(None, 0, 1))


def _reader(documents: Path) -> ParquetReader:
    return ParquetReader(str(documents), glob_pattern="*.parquet", id_key="doc_id")


if __name__ == "__main__":
    run(deduplicate, shingles)
