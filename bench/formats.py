"""Packed rows of int32 tokens in the file formats of several tools, and the memory and reads of a process.

The programs that read and write rows run in the tools' own environments, so a library is imported only
where it is used. As a program it writes a format; arguments: the format, the target, the `.npy` file of rows.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pyarrow as pa

Tokens = npt.NDArray[np.int32]

SHARD_BYTES = 1 << 26  # mosaicml's default, also for litData


def mapped(array: Path) -> Tokens:
    """Map the rows of a `.npy` file."""
    rows: Tokens = np.load(array, mmap_mode="r")
    return rows


def matrix(buffer: object, length: int) -> Tokens:
    """View consecutive rows as an array of shape (rows, length)."""
    return np.frombuffer(buffer, np.int32).reshape(-1, length)  # type: ignore[call-overload]


def write_parquet(path: Path, rows: Tokens, schema: pa.Schema, row_group: int, **options: Any) -> None:
    """Write `tokens` as binary, with `ordinal` if the schema has it, in row groups of `row_group` rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetWriter(path, schema, use_dictionary=False, write_page_index=True, **options) as writer:
        for begin in range(0, len(rows), row_group):
            part = np.ascontiguousarray(rows[begin : begin + row_group])
            offsets = np.arange(0, part.nbytes + 1, part[0].nbytes, dtype=np.int32)
            buffers = [None, pa.py_buffer(offsets), pa.py_buffer(part)]
            columns = {
                "ordinal": pa.array(range(begin, begin + len(part)), pa.int64()),
                "tokens": pa.Array.from_buffers(pa.binary(), len(part), buffers),
            }
            chosen = pa.table([columns[name] for name in schema.names], schema=schema)
            writer.write_table(chosen, row_group_size=row_group)


def write_arrow(path: Path, array: Path) -> None:
    """Write the Arrow file of Hugging Face datasets."""
    import pyarrow as pa

    rows = mapped(array)
    schema = pa.schema([pa.field("tokens", pa.binary())])
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, schema) as writer:
        for begin in range(0, len(rows), 1000):
            part = [row.tobytes() for row in rows[begin : begin + 1000]]
            writer.write_batch(pa.record_batch([pa.array(part, pa.binary())], schema=schema))


def write_lance(path: Path, array: Path) -> None:
    """Write a Lance dataset of lists of fixed length."""
    import lance
    import pyarrow as pa

    rows = mapped(array)
    length = rows.shape[1]
    schema = pa.schema([pa.field("tokens", pa.list_(pa.int32(), length))])

    def batches() -> Iterator[pa.RecordBatch]:
        for begin in range(0, len(rows), 1024):
            flat = pa.array(np.ascontiguousarray(rows[begin : begin + 1024]).reshape(-1))
            yield pa.record_batch([pa.FixedSizeListArray.from_arrays(flat, length)], schema=schema)

    lance.write_dataset(pa.RecordBatchReader.from_batches(schema, batches()), str(path))


def write_array_record(path: Path, array: Path) -> None:
    """Write an ArrayRecord file, uncompressed, one row per group."""
    from array_record.python.array_record_module import ArrayRecordWriter

    rows = mapped(array)
    writer = ArrayRecordWriter(str(path), "group_size:1,uncompressed")
    for row in rows:
        writer.write(row.tobytes())
    writer.close()


def write_mds(folder: Path, array: Path) -> None:
    """Write mosaicml's MDS shards."""
    from streaming import MDSWriter

    rows = mapped(array)
    columns = {"tokens": f"ndarray:int32:{rows.shape[1]}"}
    with MDSWriter(columns=columns, out=str(folder), size_limit=SHARD_BYTES, exist_ok=True) as writer:
        for row in rows:
            writer.write({"tokens": row})


def write_litdata(folder: Path, array: Path) -> None:
    """Write litData's chunks of tokens."""
    from litdata import TokensLoader, optimize

    optimize(
        fn=partial(_tensors, array),
        inputs=[0],
        output_dir=str(folder),
        chunk_bytes=SHARD_BYTES,
        item_loader=TokensLoader(block_size=mapped(array).shape[1]),
        num_workers=1,
        mode="overwrite",
    )


def _tensors(array: Path, _part: int) -> Iterator[object]:
    """Every row as a tensor, in litData's own process."""
    import torch

    for row in mapped(array):
        yield torch.from_numpy(row.copy())


def read_counters() -> dict[str, int]:
    """Bytes this process has read: `rchar` asked of the system, `read_bytes` from a disk; no mapped bytes."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return {name: int(value) for name, value in (line.split(": ") for line in lines)}


def anonymous_mib() -> float:
    """MiB of this process's memory that no file backs."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("This system does not report anonymous memory: /proc/self/status has no `RssAnon`.")


WRITERS: dict[str, Callable[[Path, Path], None]] = {
    "arrow": write_arrow,
    "array_record": write_array_record,
    "lance": write_lance,
    "litdata": write_litdata,
    "mds": write_mds,
}

if __name__ == "__main__":
    from bench import formats  # litData's own process finds its function by this name

    formats.WRITERS[sys.argv[1]](*map(Path, sys.argv[2:]))
    print("{}")
