"""Groups of sorted batches, in pieces, so that no group need fit in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby, pairwise

import numpy as np
import pyarrow as pa

Key = tuple[int, ...]


def groups(batches: Iterable[pa.RecordBatch], *names: str) -> Iterator[tuple[Key, Iterator[pa.RecordBatch]]]:
    """Yield each run of rows with equal integers in the columns `names`: the integers, and its batches.

    As with `itertools.groupby`, the batches of a run are gone once the next run is asked for.
    """
    for key, pairs in groupby(_pieces(batches, names), key=lambda pair: pair[0]):
        yield key, (piece for _, piece in pairs)


def _pieces(
    batches: Iterable[pa.RecordBatch], names: tuple[str, ...]
) -> Iterator[tuple[Key, pa.RecordBatch]]:
    for batch in batches:
        if not batch.num_rows:
            continue
        keys = np.stack([batch.column(name).to_numpy() for name in names])
        changes = np.flatnonzero((keys[:, 1:] != keys[:, :-1]).any(axis=0)) + 1
        for begin, end in pairwise([0, *changes.tolist(), batch.num_rows]):
            yield tuple(keys[:, begin].tolist()), batch.slice(begin, end - begin)
