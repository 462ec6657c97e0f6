"""The orders in which other tools give rows; run in their environment.

Arguments: family of peers, folder, rows, rows per shard, seed. Saves each order as `<name>.npy` and prints
one JSON line: by name, how many rows must be at hand.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Found = dict[str, tuple[int, Ints]]

BUFFERS = (1_000, 10_000)  # the first is Hugging Face's default
BLOCKS = {"": 4_000_000, "_block_262144": 1 << 18, "_block_65536": 1 << 16}
"""mosaicml's blocks: its default on one node, on 16 and more nodes, and a smaller one."""


def rows_of_open_shards(order: Ints, shard: int) -> int:
    """The most rows at any moment in unfinished shards."""
    of = order // shard
    first = np.unique(of, return_index=True)[1]
    behind = len(of) - np.unique(of[::-1], return_index=True)[1]
    begun, finished = (np.bincount(it, minlength=len(of) + 1) for it in (first, behind))
    return int(np.cumsum(begun - finished).max()) * shard


def mosaicml(rows: int, shard: int, seed: int) -> Found:
    """mosaicml-streaming's algorithms, on one node."""
    from streaming.base.shuffle import get_shuffle

    sizes = np.full(rows // shard, shard)
    found: Found = {}
    for name in ("py1e", "py1br", "py1s", "py2s", "naive"):
        for suffix, block in BLOCKS.items() if name in ("py1e", "py1br") else [("", BLOCKS[""])]:
            order = get_shuffle(name, sizes, 1, seed, 0, block)
            found[f"mosaicml_{name}{suffix}"] = rows_of_open_shards(order, shard), order
    return found


def numbers(rows: int, _: Any) -> Any:
    """Every row: a tensor that holds its number twice."""
    import torch

    for row in range(rows):
        yield torch.tensor([row, row], dtype=torch.int32)


def litdata(folder: Path, rows: int, shard: int, seed: int) -> Found:
    """litData, with its default window of 256 rows in a chunk and with whole chunks."""
    from litdata import StreamingDataset, TokensLoader, optimize

    loader = partial(TokensLoader, block_size=2)
    out = str(folder / "litdata")
    work = partial(numbers, rows)
    optimize(fn=work, inputs=[0], output_dir=out, chunk_bytes=8 * shard, item_loader=loader(), num_workers=1)
    found: Found = {}
    for name, window in (("litdata", None), ("litdata_whole_chunks", 0)):
        data = StreamingDataset(
            out, item_loader=loader(), shuffle=True, drop_last=False, seed=seed, item_shuffle_window=window
        )
        found[name] = shard, np.array([int(row[0]) for row in data])
    return found


def torch_family(folder: Path, rows: int, shard: int, seed: int) -> Found:
    """The tools that share torch's environment."""
    return {**mosaicml(rows, shard, seed), **litdata(folder, rows, shard, seed)}


def hugging_face(folder: Path, rows: int, shard: int, seed: int) -> Found:
    """Streaming from one Parquet file, and from one per shard, whose order is shuffled too."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from datasets import load_dataset

    found: Found = {}
    for name, size in (("one_file", rows), ("files", shard)):
        files = []
        for begin in range(0, rows, size):
            files.append(str(folder / f"{name}-{begin:08d}.parquet"))
            pq.write_table(pa.table({"row": np.arange(begin, begin + size)}), files[-1])
        for buffer in BUFFERS:
            data = load_dataset("parquet", data_files=files, split="train", streaming=True)
            shuffled = data.shuffle(seed=seed, buffer_size=buffer)
            order = np.array([row for batch in shuffled.iter(1024) for row in batch["row"]])
            found[f"hf_{name}_buffer_{buffer}"] = buffer, order
    return found


def grain(_folder: Path, rows: int, _shard: int, seed: int) -> Found:
    """Grain's shuffle of all rows."""
    from grain import MapDataset

    data = MapDataset.range(rows).seed(seed).shuffle()
    return {"grain": (1, np.array([data[place] for place in range(rows)]))}


FAMILIES: dict[str, Callable[[Path, int, int, int], Found]] = {
    "torch": torch_family,
    "hugging_face": hugging_face,
    "grain": grain,
}


def main() -> None:
    """Save the orders of a family."""
    family, folder = sys.argv[1], Path(sys.argv[2])
    found = FAMILIES[family](folder, *(int(argument) for argument in sys.argv[3:6]))
    for name, (_, order) in found.items():
        np.save(folder / f"{name}.npy", order)
    print(json.dumps({name: rows for name, (rows, _) in found.items()}))


if __name__ == "__main__":
    main()
