"""Writes the rows of `bench stream` in each peer's own format; run by the peer's interpreter."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from bench.stream_reader import SHARES, Tokens, array

SHARD_BYTES = 1 << 26  # mosaicml's default; litData takes the same
SOURCES = range(len(SHARES))


def mosaicml(home: Path) -> None:
    """MDS shards."""
    from streaming import MDSWriter

    for source in SOURCES:
        rows = array(home, source)
        columns = {"tokens": f"ndarray:int32:{rows.shape[1]}"}
        out = str(home / "mds" / str(source))
        with MDSWriter(columns=columns, out=out, size_limit=SHARD_BYTES, exist_ok=True) as writer:
            for row in rows:
                writer.write({"tokens": row})


def tokens(home: Path, source: int) -> Iterator[object]:
    """The rows of a source as tensors."""
    import torch

    for row in array(home, source):
        yield torch.from_numpy(row.copy())


def litdata(home: Path) -> None:
    """litData's chunks of tokens."""
    from litdata import TokensLoader, optimize

    for source in SOURCES:
        optimize(
            fn=partial(tokens, home),
            inputs=[source],
            output_dir=str(home / "litdata" / str(source)),
            chunk_bytes=SHARD_BYTES,
            item_loader=TokensLoader(block_size=array(home, source).shape[1]),
            num_workers=1,
            mode="overwrite",
        )


def hf_map(home: Path) -> None:
    """Arrow files as Hugging Face datasets keeps them."""
    import pyarrow as pa

    schema = pa.schema([pa.field("tokens", pa.binary())])
    (home / "arrow").mkdir(exist_ok=True)
    for source in SOURCES:
        rows: Tokens = array(home, source)
        path = str(home / "arrow" / f"{source}.arrow")
        with pa.OSFile(path, "wb") as sink, pa.ipc.new_stream(sink, schema) as writer:
            for begin in range(0, len(rows), 1000):
                part = [row.tobytes() for row in rows[begin : begin + 1000]]
                writer.write_batch(pa.record_batch([pa.array(part, pa.binary())], schema=schema))


def grain(home: Path) -> None:
    """ArrayRecord files, a group a row, not compressed."""
    from array_record.python.array_record_module import ArrayRecordWriter

    (home / "array_record").mkdir(exist_ok=True)
    for source in SOURCES:
        path = str(home / "array_record" / f"{source}.array_record")
        writer = ArrayRecordWriter(path, "group_size:1,uncompressed")
        for row in array(home, source):
            writer.write(row.tobytes())
        writer.close()


WRITERS = {"mosaicml": mosaicml, "litdata": litdata, "hf_map": hf_map, "grain": grain}
