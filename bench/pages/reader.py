"""Random rows by one reader in a process of its own, for peers in their environment.

Arguments: reader, folder, readings (B rows per batch, N rows in all, as `B:N` with commas between), seed,
`warm`, `scattered` or `cold` (`bench.page_cache`), times the data is repeated. Prints one JSON line, a list
with one entry per reading: a hash of rows to check, CPU microseconds per row, rows a second, bytes per row
requested from the system and read from the disk, and MiB of anonymous memory afterwards.
"""

import gc
import hashlib
import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bench.formats import Tokens, anonymous_mib, mapped, matrix, read_counters
from bench.page_cache import drop, read_in_order, read_scattered

Read = Callable[[npt.NDArray[np.int64]], Tokens]

CHECKED = 256  # rows hashed, to compare readers
MAPPED = ("memmap", "hf", "litdata")
"""Memory-mapped readers: reopened for every reading, so that each starts cold."""


def array(home: Path) -> Tokens:
    """The rows as numpy's memory map."""
    return mapped(home / "rows.npy")


def memmap(home: Path, _times: int) -> Read:
    """numpy's memory map of an array."""
    rows = array(home)
    return lambda wanted: rows[wanted]


def pages(home: Path, times: int, layout: str) -> Read:
    """This project's pages, by an index on disk."""
    from blender.pages import open_idx_matrix

    length, found = array(home).shape[1], open_idx_matrix(home / f"{layout}.x{times}.pages")
    return lambda wanted: matrix(found.read_rows(wanted).buffers()[2], length)


def row_groups(home: Path, _times: int) -> Read:
    """pyarrow, which reads a row group of 1,000 rows for every row."""
    import pyarrow.parquet as pq

    file = pq.ParquetFile(home / "p8.parquet")
    length, each = array(home).shape[1], file.metadata.row_group(0).num_rows

    def read(wanted: npt.NDArray[np.int64]) -> Tokens:
        found = np.empty((len(wanted), length), np.int32)
        for group in np.unique(wanted // each):
            column = file.read_row_group(int(group), columns=["tokens"]).column(0).chunk(0)
            for row in np.flatnonzero(wanted // each == group):
                found[row] = np.frombuffer(column[int(wanted[row] % each)].as_buffer(), np.int32)
        return found

    return read


def hf_datasets(home: Path, _times: int) -> Read:
    """Hugging Face datasets: a mapped Arrow file; rows as Arrow."""
    from datasets import Dataset

    length, rows = array(home).shape[1], Dataset.from_file(str(home / "rows.arrow")).with_format("arrow")

    def read(wanted: npt.NDArray[np.int64]) -> Tokens:
        column = rows[wanted.tolist()]["tokens"].combine_chunks()
        return matrix(column.buffers()[2], length)

    return read


def lance(home: Path, _times: int) -> Read:
    """Lance: lists of fixed length."""
    import lance as library

    length, rows = array(home).shape[1], library.dataset(str(home / "rows.lance"))

    def read(wanted: npt.NDArray[np.int64]) -> Tokens:
        column = rows.take(wanted.tolist(), columns=["tokens"])["tokens"].combine_chunks()
        return matrix(column.flatten().buffers()[1], length)

    return read


def array_record(home: Path, _times: int) -> Read:
    """ArrayRecord: uncompressed, one row per group."""
    from array_record.python.array_record_data_source import ArrayRecordDataSource

    length, rows = array(home).shape[1], ArrayRecordDataSource([str(home / "rows.array_record")])
    return lambda wanted: matrix(b"".join(rows.__getitems__(wanted.tolist())), length)


def mosaicml(home: Path, _times: int) -> Read:
    """mosaicml-streaming: MDS shards of 64 MiB, row by row."""
    from streaming import StreamingDataset
    from streaming.base.util import clean_stale_shared_memory

    clean_stale_shared_memory()
    rows = StreamingDataset(local=str(home / "rows.mds"), batch_size=1)
    return lambda wanted: np.stack([rows[row]["tokens"] for row in wanted.tolist()])


def litdata(home: Path, _times: int) -> Read:
    """litData: chunks of 64 MB of tokens, row by row."""
    from litdata import StreamingDataset, TokensLoader

    loader = TokensLoader(block_size=array(home).shape[1])
    rows = StreamingDataset(str(home / "rows.litdata"), item_loader=loader)
    return lambda wanted: np.stack([rows[row].numpy() for row in wanted.tolist()])


READERS: dict[str, tuple[Callable[[Path, int], Read], str]] = {
    "memmap": (memmap, "rows.npy"),
    **{layout: (partial(pages, layout=layout), f"{layout}.parquet") for layout in ("packed", "plain", "p8")},
    "pyarrow": (row_groups, "p8.parquet"),
    "hf": (hf_datasets, "rows.arrow"),
    "lance": (lance, "rows.lance"),
    "array_record": (array_record, "rows.array_record"),
    "mosaicml": (mosaicml, "rows.mds"),
    "litdata": (litdata, "rows.litdata"),
}


def main() -> None:
    """Read rows according to the arguments."""
    name, home = sys.argv[1], Path(sys.argv[2])
    readings = [tuple(int(it) for it in reading.split(":")) for reading in sys.argv[3].split(",")]
    seed, state, times = int(sys.argv[4]), sys.argv[5], int(sys.argv[6])
    open_reader, path = READERS[name]
    rows = len(array(home))
    files = [it for it in (home / path, *(home / path).rglob("*")) if it.is_file()]
    (read_scattered if state == "scattered" else read_in_order)(files)
    read = open_reader(home, times)
    checked = np.random.default_rng(1).integers(0, rows, CHECKED)
    digest = hashlib.sha256(read(checked).tobytes()).hexdigest()
    found = []
    for batch, n in readings:
        wanted = np.random.default_rng([seed, batch]).choice(times * rows, n, replace=False)
        if name in MAPPED:
            del read
            gc.collect()
        if state == "cold":
            drop(files)
        if name in MAPPED:
            read = open_reader(home, times)
        found.append({"digest": digest, **costs(read, wanted, batch)})
    print(json.dumps(found))


def costs(read: Read, wanted: npt.NDArray[np.int64], batch: int) -> dict[str, float]:
    """The cost per row of reading `wanted` in batches."""
    n = len(wanted)
    before, began, wall = read_counters(), time.process_time(), time.perf_counter()
    for begin in range(0, n, batch):
        read(wanted[begin : begin + batch])
    cpu_s, wall_s, after = time.process_time() - began, time.perf_counter() - wall, read_counters()
    return {
        "cpu_us": cpu_s / n * 1e6,
        "rows_per_s": n / wall_s,
        "asked": (after["rchar"] - before["rchar"]) / n,
        "disk": (after["read_bytes"] - before["read_bytes"]) / n,
        "anonymous_mib": anonymous_mib(),
    }


if __name__ == "__main__":
    main()
