"""Other tools' readers of the blend of `bench stream`: shuffled and mixed as their documentation shows.

Each runs in its tool's environment. A state is what the tool offers for saving, or the number of batches
read if it offers none.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from bench.formats import matrix
from bench.stream.rows import BATCH, LENGTH, SHARES, SOURCES, Reader, Stream, counted

SEED = 11
BUFFER = 10_000  # rows of a shuffle buffer: Hugging Face's default of 1,000 scores far worse
MIXTURE = [share / 100 for share in SHARES]


def mosaicml(home: Path, state: Any) -> Stream:
    """mosaicml-streaming: MDS shards of 64 MiB, py1e, each stream once."""
    from streaming import Stream as MdsStream
    from streaming import StreamingDataLoader, StreamingDataset
    from streaming.base.util import clean_stale_shared_memory

    clean_stale_shared_memory()
    streams = [MdsStream(local=str(home / f"rows-{source}.mds")) for source in SOURCES]
    rows = StreamingDataset(streams=streams, shuffle=True, shuffle_seed=SEED, batch_size=BATCH)
    loader = StreamingDataLoader(rows, batch_size=BATCH)
    if state is not None:
        loader.load_state_dict(state)
    return Stream((batch["tokens"].numpy() for batch in loader), loader.state_dict)


def litdata(home: Path, state: Any) -> Stream:
    """litData: chunks of 64 MB of tokens, combined until every source is used up."""
    from litdata import CombinedStreamingDataset, StreamingDataLoader, StreamingDataset, TokensLoader

    sources = [
        StreamingDataset(
            str(home / f"rows-{source}.litdata"),
            item_loader=TokensLoader(block_size=LENGTH),
            shuffle=True,
            drop_last=False,
            seed=SEED,
        )
        for source in SOURCES
    ]
    loader = StreamingDataLoader(
        CombinedStreamingDataset(sources, seed=SEED, iterate_over_all=True), batch_size=BATCH
    )
    if state is not None:
        loader.load_state_dict(state)
    return Stream((batch.numpy() for batch in loader), loader.state_dict)


def hf_streaming(home: Path, state: Any) -> Stream:
    """Hugging Face datasets, streaming from our Parquet files in zstd, one shuffle buffer per source."""
    from datasets import interleave_datasets, load_dataset

    sources = [
        load_dataset(
            "parquet",
            data_files=str(home / f"packed.s{source}_packed.parquet"),
            split="train",
            streaming=True,
            columns=["tokens"],
        ).shuffle(seed=SEED, buffer_size=BUFFER)
        for source in SOURCES
    ]
    mixed = interleave_datasets(
        sources, probabilities=MIXTURE, seed=SEED, stopping_strategy="all_exhausted_without_replacement"
    )
    if state is not None:
        mixed.load_state_dict(state)
    batches = (matrix(b"".join(batch["tokens"]), LENGTH) for batch in mixed.iter(batch_size=BATCH))
    return Stream(batches, mixed.state_dict)


def hf_map(home: Path, state: Any) -> Stream:
    """Hugging Face datasets, map-style: mapped Arrow files and a permutation of all rows."""
    from datasets import Dataset, concatenate_datasets

    sources = [Dataset.from_file(str(home / f"rows-{source}.arrow")) for source in SOURCES]
    rows = concatenate_datasets(sources).shuffle(seed=SEED).with_format("arrow")
    return counted(
        len(rows), state, lambda part: matrix(rows[part]["tokens"].combine_chunks().buffers()[2], LENGTH)
    )


def grain(home: Path, state: Any) -> Stream:
    """Grain: ArrayRecord files, shuffled and mixed as MapDatasets, read by its threads."""
    from array_record.python.array_record_data_source import ArrayRecordDataSource
    from grain import MapDataset

    files = [str(home / f"rows-{source}.array_record") for source in SOURCES]
    sources = [MapDataset.source(ArrayRecordDataSource([file])).seed(SEED).shuffle() for file in files]
    rows = MapDataset.mix(sources, weights=MIXTURE).map(lambda row: np.frombuffer(row, np.int32))
    batches = iter(rows.batch(BATCH).to_iter_dataset())
    if state is not None:
        batches.set_state(state)
    return Stream(batches, batches.get_state)


READERS = {
    "mosaicml": Reader(("streaming",), mosaicml),
    "litdata": Reader(("litdata",), litdata),
    "hf_streaming": Reader(("datasets",), hf_streaming),
    "hf_map": Reader(("datasets",), hf_map),
    "grain": Reader(("grain", "array_record"), grain),
}
