"""Random rows by one reader in a process of its own; run by `bench.pages`, by a peer's interpreter for peers.

Arguments: reader, folder, readings (batches of B rows, N rows in all, as `B:N` with commas between), seed,
`warm` or `cold`, times the data is repeated. Prints one JSON line, a list with an entry for each reading: a
hash of rows to check, CPU microseconds a row, rows a second, bytes a row that were asked of the system and
that the disk gave, and MiB of anonymous memory afterwards. With two arguments it writes the peer's files.
"""

import gc
import hashlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

Tokens = npt.NDArray[np.int32]
Read = Callable[[npt.NDArray[np.int64]], Tokens]

CHECKED = 256  # rows hashed, to compare readers
MAPPED = ("memmap", "hf", "litdata")
"""Opened anew for each reading: pages that a process has mapped cost nothing again, and are not dropped."""


def array(home: Path) -> Tokens:
    """The rows as numpy has them, mapped."""
    rows: Tokens = np.load(home / "rows.npy", mmap_mode="r")
    return rows


def matrix(buffer: object, rows: int) -> Tokens:
    """Rows that lie one after another, as an array of shape (rows, tokens)."""
    return np.frombuffer(buffer, np.int32).reshape(rows, -1)  # type: ignore[call-overload]


def memmap(home: Path, _times: int) -> Read:
    """numpy's memory map of an array."""
    rows = array(home)
    return lambda wanted: rows[wanted]


def pages(home: Path, times: int, layout: str) -> Read:
    """This project's pages, by an index that lies on disk."""
    from blender.parquet.matrix import open_idx_matrix

    found = open_idx_matrix(home / f"{layout}.x{times}.pages")
    return lambda wanted: matrix(found.read_rows(wanted).buffers()[2], len(wanted))


def row_groups(home: Path, _times: int) -> Read:
    """pyarrow, a row group of 1,000 rows for every row."""
    import pyarrow.parquet as pq

    file = pq.ParquetFile(home / "p8.parquet")
    length, each = array(home).shape[1], file.metadata.row_group(0).num_rows

    def read(wanted: npt.NDArray[np.int64]) -> Tokens:
        found = np.empty((len(wanted), length), np.int32)
        for group in np.unique(wanted // each):
            column = file.read_row_group(int(group), columns=["tokens"]).column(0).chunk(0)
            for place in np.flatnonzero(wanted // each == group):
                found[place] = np.frombuffer(column[int(wanted[place] % each)].as_buffer(), np.int32)
        return found

    return read


def hf_datasets(home: Path, _times: int) -> Read:
    """Hugging Face datasets: an Arrow file, mapped; rows as Arrow."""
    from datasets import Dataset

    rows = Dataset.from_file(str(home / "rows.arrow")).with_format("arrow")

    def read(wanted: npt.NDArray[np.int64]) -> Tokens:
        column = rows[wanted.tolist()]["tokens"].combine_chunks()
        return matrix(column.buffers()[2], len(wanted))

    return read


def lance(home: Path, _times: int) -> Read:
    """Lance: lists of fixed length."""
    import lance as library

    rows = library.dataset(str(home / "rows.lance"))

    def read(wanted: npt.NDArray[np.int64]) -> Tokens:
        column = rows.take(wanted.tolist(), columns=["tokens"])["tokens"].combine_chunks()
        return matrix(column.flatten().buffers()[1], len(wanted))

    return read


def array_record(home: Path, _times: int) -> Read:
    """ArrayRecord: a group a row, not compressed."""
    from array_record.python.array_record_data_source import ArrayRecordDataSource

    rows = ArrayRecordDataSource([str(home / "rows.array_record")])

    def read(wanted: npt.NDArray[np.int64]) -> Tokens:
        found = rows.__getitems__(wanted.tolist())
        return matrix(b"".join(found), len(wanted))

    return read


def mosaicml(home: Path, _times: int) -> Read:
    """mosaicml-streaming: MDS shards of 64 MiB, a row at a time."""
    from streaming import StreamingDataset
    from streaming.base.util import clean_stale_shared_memory

    clean_stale_shared_memory()
    rows = StreamingDataset(local=str(home / "rows.mds"), batch_size=1)
    return lambda wanted: np.stack([rows[row]["tokens"] for row in wanted.tolist()])


def litdata(home: Path, _times: int) -> Read:
    """litData: chunks of 64 MB of tokens, a row at a time."""
    from litdata import StreamingDataset, TokensLoader

    loader = TokensLoader(block_size=array(home).shape[1])
    rows = StreamingDataset(str(home / "rows.litdata"), item_loader=loader)
    return lambda wanted: np.stack([rows[row].numpy() for row in wanted.tolist()])


READERS: dict[str, tuple[Callable[[Path, int], Read], str]] = {
    "memmap": (memmap, "rows.npy"),
    "p1": (lambda home, times: pages(home, times, "p1"), "p1.parquet"),
    "p8": (lambda home, times: pages(home, times, "p8"), "p8.parquet"),
    "p16z": (lambda home, times: pages(home, times, "p16z"), "p16z.parquet"),
    "pyarrow": (row_groups, "p8.parquet"),
    "hf": (hf_datasets, "rows.arrow"),
    "lance": (lance, "rows.lance"),
    "array_record": (array_record, "rows.array_record"),
    "mosaicml": (mosaicml, "rows.mds"),
    "litdata": (litdata, "rows.litdata"),
}


def write_hf(home: Path, rows: Tokens) -> None:
    """The Arrow file of Hugging Face datasets."""
    import pyarrow as pa

    schema = pa.schema([pa.field("tokens", pa.binary())])
    with pa.OSFile(str(home / "rows.arrow"), "wb") as sink, pa.ipc.new_stream(sink, schema) as writer:
        for begin in range(0, len(rows), 1000):
            part = [row.tobytes() for row in rows[begin : begin + 1000]]
            writer.write_batch(pa.record_batch([pa.array(part, pa.binary())], schema=schema))


def write_lance(home: Path, rows: Tokens) -> None:
    """The Lance dataset."""
    import lance as library
    import pyarrow as pa

    length = rows.shape[1]
    kind = pa.list_(pa.int32(), length)
    schema = pa.schema([pa.field("tokens", kind)])

    def batches() -> Iterator[pa.RecordBatch]:
        for begin in range(0, len(rows), 1024):
            flat = pa.array(np.ascontiguousarray(rows[begin : begin + 1024]).reshape(-1))
            yield pa.record_batch([pa.FixedSizeListArray.from_arrays(flat, length)], schema=schema)

    library.write_dataset(pa.RecordBatchReader.from_batches(schema, batches()), str(home / "rows.lance"))


def write_array_record(home: Path, rows: Tokens) -> None:
    """The ArrayRecord file."""
    from array_record.python.array_record_module import ArrayRecordWriter

    writer = ArrayRecordWriter(str(home / "rows.array_record"), "group_size:1,uncompressed")
    for row in rows:
        writer.write(row.tobytes())
    writer.close()


def write_mosaicml(home: Path, rows: Tokens) -> None:
    """The MDS shards."""
    from streaming import MDSWriter

    columns = {"tokens": f"ndarray:int32:{rows.shape[1]}"}
    with MDSWriter(columns=columns, out=str(home / "rows.mds"), exist_ok=True) as writer:
        for row in rows:
            writer.write({"tokens": row})


def tensors(home: Path, _part: int) -> Iterator[object]:
    """The rows as litData takes them."""
    import torch

    for row in array(home):
        yield torch.from_numpy(row.copy())


def write_litdata(home: Path, rows: Tokens) -> None:
    """litData's chunks."""
    from litdata import TokensLoader, optimize

    optimize(
        fn=partial(tensors, home),
        inputs=[0],
        output_dir=str(home / "rows.litdata"),
        chunk_bytes=1 << 26,
        item_loader=TokensLoader(block_size=rows.shape[1]),
        num_workers=1,
        mode="overwrite",
    )


WRITERS: dict[str, Callable[[Path, Tokens], None]] = {
    "hf": write_hf,
    "lance": write_lance,
    "array_record": write_array_record,
    "mosaicml": write_mosaicml,
    "litdata": write_litdata,
}


def files(path: Path) -> list[Path]:
    """The files of a reader."""
    return [it for it in path.rglob("*") if it.is_file()] if path.is_dir() else [path]


def set_cache(path: Path, cold: bool) -> None:
    """Bring a reader's files into the page cache, or out of it."""
    for name in files(path):
        descriptor = os.open(name, os.O_RDONLY)
        if cold:
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        else:
            while os.read(descriptor, 1 << 22):
                pass
        os.close(descriptor)


def counted() -> dict[str, int]:
    """What this process has read so far."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return {name: int(value) for name, value in (line.split(": ") for line in lines)}


def anonymous_kib() -> int:
    """KiB of memory that no file backs."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1])
    raise RuntimeError("This system does not say how much memory is anonymous.")


def main() -> None:
    """Write a peer's files, or read rows."""
    name, home = sys.argv[1], Path(sys.argv[2])
    if len(sys.argv) == 3:
        WRITERS[name](home, array(home))
        print("{}")
        return
    readings = [tuple(int(it) for it in reading.split(":")) for reading in sys.argv[3].split(",")]
    seed, cold, times = int(sys.argv[4]), sys.argv[5] == "cold", int(sys.argv[6])
    open_reader, path = READERS[name]
    rows = len(array(home))
    set_cache(home / path, cold=False)
    read = open_reader(home, times)
    checked = np.random.default_rng(1).integers(0, rows, CHECKED)
    digest = hashlib.sha256(read(checked).tobytes()).hexdigest()
    found = []
    for batch, n in readings:
        wanted = np.random.default_rng([seed, batch]).choice(times * rows, n, replace=False)
        if name in MAPPED:
            del read
            gc.collect()
        if cold:
            set_cache(home / path, cold=True)
        if name in MAPPED:
            read = open_reader(home, times)
        found.append({"digest": digest, **costs(read, wanted, batch)})
    print(json.dumps(found))


def costs(read: Read, wanted: npt.NDArray[np.int64], batch: int) -> dict[str, float]:
    """What it costs to read rows in batches."""
    n = len(wanted)
    before, began, wall = counted(), time.process_time(), time.perf_counter()
    for begin in range(0, n, batch):
        read(wanted[begin : begin + batch])
    cpu_s, wall_s, after = time.process_time() - began, time.perf_counter() - wall, counted()
    return {
        "cpu_us": cpu_s / n * 1e6,
        "rows_per_s": n / wall_s,
        "asked": (after["rchar"] - before["rchar"]) / n,
        "disk": (after["read_bytes"] - before["read_bytes"]) / n,
        "anonymous_mib": anonymous_kib() / 1024,
    }


if __name__ == "__main__":
    main()
