"""The documents that datatrove and rensa keep, the cost, and the tools' own measure of similarity."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console

from bench.bags import Bags
from bench.dedup.exact import Alike, alike
from bench.peers import DATATROVE, MINHASH
from bench.processes import Meter, memory_bytes

PEERS = {
    "datatrove": (DATATROVE, "bench.dedup.datatrove"),
    "rensa": (MINHASH, "bench.dedup.rensa"),
}
FILES = 2  # one per worker of datatrove
FIRST = 20  # documents of the warm-up


@dataclass(frozen=True)
class Kept:
    """The documents a peer kept, its CPU seconds without startup, and its peak memory in bytes."""

    documents: set[str]
    cpu_s: float
    peak: float


def lay_out(documents: pa.Table, folder: Path) -> None:
    """Write documents (doc_id, text) as the peers' programs expect."""
    whole = folder / "documents"
    first = folder / "first"
    for each in (whole, first):
        each.mkdir(parents=True)
    size = -(-documents.num_rows // FILES)
    for number in range(FILES):
        pq.write_table(documents.slice(number * size, size), whole / f"{number}.parquet", compression="zstd")
        pq.write_table(
            documents.slice(number * FIRST, FIRST), first / f"{number}.parquet", compression="zstd"
        )


def deduplicated(name: str, folder: Path, progress: Console) -> Kept:
    """Run the peer called `name` on the documents in `folder`."""
    peer, program = PEERS[name]
    peer.python(progress)  # installed before the clock runs
    before = memory_bytes(psutil.Process()).driver
    with Meter() as meter:
        said = peer.answer(program, "deduplicate", folder, console=progress)
    documents = set(pq.read_table(folder / "kept.parquet")["doc_id"].to_pylist())
    return Kept(documents, said["cpu_s"], meter.spans[0].peak.driver - before)


def own_measure(name: str, folder: Path, text_of: dict[str, int], least: float, progress: Console) -> Alike:
    """All pairs of texts whose sets of the peer's shingles have a Jaccard of at least `least`.

    `text_of` is the text of each document; the first document of a text stands for it.
    """
    peer, program = PEERS[name]
    peer.answer(program, "shingles", folder, console=progress)
    with np.load(folder / "shingles.npz") as found:
        documents, shingles, offsets = (found[name] for name in ("documents", "shingles", "offsets"))
    texts, rows = np.unique([text_of[str(document)] for document in documents], return_index=True)
    lengths = np.diff(offsets)[rows]
    places = np.arange(lengths.sum()) + np.repeat(offsets[rows] - np.cumsum(lengths) + lengths, lengths)
    of_texts = np.zeros(max(text_of.values()) + 2, np.int64)
    of_texts[texts + 1] = lengths
    return alike(Bags(shingles[places], np.ones(len(places)), np.cumsum(of_texts)), least)
