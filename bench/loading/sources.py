"""Readers of many Parquet files at once, as trainers write them: by pyarrow alone, and in torch's workers.

A step takes a number of rows of each file. Every file stays open, with a reader of its row groups and a batch
of it in hand, because the next step needs the next rows of all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

BATCH_ROWS = 8  # a page of packed rows; pyarrow's default holds whole row groups
WORKERS = 2


def rows_of_file(path: Path) -> Iterator[np.ndarray]:
    """The tokens of each row of a file, over and over; uint16, shape [L]."""
    file = pq.ParquetFile(path)
    while True:
        for batch in file.iter_batches(batch_size=BATCH_ROWS, columns=["tokens"]):
            column = batch.column("tokens")
            if hasattr(column, "dictionary_decode"):
                column = column.dictionary_decode()
            offsets = np.frombuffer(column.buffers()[1], np.int32, len(column) + 1, column.offset * 4)
            data = np.frombuffer(column.buffers()[2], np.uint16)
            for begin, end in zip(offsets[:-1] // 2, offsets[1:] // 2, strict=True):
                yield data[begin:end]


def steps_of_files(
    paths: Sequence[Path], weights: Sequence[int], rank: int, ranks: int, worker: int = 0, workers: int = 1
) -> Iterator[np.ndarray]:
    """A rank's rows of each step; uint16, shape [rows, L]. Of each file, a worker takes every n-th row."""
    readers = [islice(rows_of_file(path), worker, None, workers) for path in paths]
    while True:
        step = (next(reader) for reader, weight in zip(readers, weights, strict=True) for _ in range(weight))
        yield np.stack([row for number, row in enumerate(step) if number % ranks == rank])


def steps_of_workers(
    paths: Sequence[Path], weights: Sequence[int], rank: int, ranks: int, workers: int = WORKERS
) -> Iterator[Any]:
    """The same as tensors from the workers of a `DataLoader`, started as torch does by default."""
    from torch import from_numpy
    from torch.utils.data import DataLoader, IterableDataset, get_worker_info

    class Steps(IterableDataset[Any]):
        def __iter__(self) -> Iterator[Any]:
            info = get_worker_info()
            for step in steps_of_files(paths, weights, rank, ranks, info.id, info.num_workers):
                yield from_numpy(step.view(np.int16))

    return iter(DataLoader(Steps(), batch_size=None, num_workers=workers))
