"""Packed tables with pictures of known sizes; the bytes of a picture are noise, because plans read none."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from factory.lake.schemas.images import IMAGES, PACKED_IMAGES
from factory.lake.schemas.packing import PACKED, SEQUENCE_LENGTH
from factory.settings import Settings
from tests.blender.lakes import write_table

STAMPS = "packed.stamps"
IMAGE_TOKEN_NUMBER = 7

Size = tuple[int, int]


def sizes_of(n: int, seed: int = 3) -> list[list[Size]]:
    """The width and height of the pictures of `n` rows, none to four a row."""
    draws = np.random.default_rng(seed)
    return [
        [(int(draws.integers(1, 900)), int(draws.integers(1, 900))) for _ in range(draws.integers(0, 5))]
        for _ in range(n)
    ]


def image_rows(pictures: Sequence[Sequence[Size]], words: int = 3, n_bytes: int = 64) -> pa.Table:
    """A row with `words` tokens and a placeholder a picture, whose bytes are noise."""
    noise = np.random.default_rng(5)
    rows = []
    for ordinal, sizes in enumerate(pictures):
        tokens = np.array([IMAGE_TOKEN_NUMBER] * len(sizes) + list(range(words)))
        rows.append(
            {
                "ordinal": ordinal,
                "tokens": tokens.astype("<u2").tobytes(),
                "n_tokens": len(tokens),
                "segments": [{"doc_id": f"stamp-{ordinal}", "doc_offset": 0, "length": len(tokens)}],
                "append": 0,
                "shard": 0,
                "chunk": 0,
                "partition": None,
                IMAGES: [
                    {
                        "position": position,
                        "name": f"{ordinal}-{position}.png",
                        "media_type": "image/png",
                        "width": width,
                        "height": height,
                        "patches": -(-width // 14) * -(-height // 14),
                        "content_hash": "0",
                        "content": noise.bytes(n_bytes),
                    }
                    for position, (width, height) in enumerate(sizes)
                ],
            }
        )
    return pa.Table.from_pylist(rows, schema=PACKED.columns.append(PACKED_IMAGES))


def write_stamps(lake: Settings, pictures: Sequence[Sequence[Size]], n_bytes: int = 64) -> None:
    """A table `packed.stamps` with a row for each list of pictures."""
    write_table(lake, STAMPS, image_rows(pictures, n_bytes=n_bytes), properties={SEQUENCE_LENGTH: "8"})
