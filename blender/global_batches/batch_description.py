"""A stored batch of a namespace: its object, lane, columns and slices.

batch = describe_batch("s3://bucket/run7", 812)
batch.lane, batch.sequence, batch.origin        # "0", 203, {"blend": "4f1c...", "offset": 812}
batch.slices[5].checksum                        # CRC32 of dp 5, chunk 0
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from typing import Any

from blender.errors import InvalidRequest
from blender.global_batches.follower import Follower
from blender.global_batches.format.columns import Column
from blender.global_batches.json_values import Json
from blender.global_batches.log import names
from blender.global_batches.namespace import open_namespace
from blender.global_batches.rank_slice import read_footer
from blender.global_batches.store.namespace_store import PATIENCE_S, open_store
from blender.spec.whole_number import whole_number
from factory.settings import Settings


@dataclass(frozen=True)
class SliceDescription:
    """The bytes of a slice in its object."""

    dp: int
    chunk: int
    offset: int
    n_bytes: int
    checksum: int
    """CRC32."""


@dataclass(frozen=True)
class BatchDescription:
    """A step of a namespace."""

    uri: str
    namespace: str
    """Its id."""
    step: int
    name: str
    """The name of its object below the address."""
    n_bytes: int
    lane: str
    epoch: int
    """The epoch of the process that stored it."""
    sequence: int
    """Its number in its lane."""
    columns: tuple[Column, ...]
    slices: tuple[SliceDescription, ...]
    origin: Json

    def described(self) -> dict[str, Any]:
        """All of it, for JSON."""
        return asdict(self) | {"columns": [column._asdict() for column in self.columns]}


def describe_batch(
    uri: str | os.PathLike[str],
    step: int,
    *,
    settings: Settings | None = None,
    patience_s: float = PATIENCE_S,
) -> BatchDescription:
    """The stored batch of a step. Raises NamespaceNotFound, DamagedLog and DamagedBatch.

    Raises InvalidRequest for a step that is not committed.
    """
    step = whole_number(step, "step")
    store = open_store(uri, settings, patience_s=patience_s)
    namespace = open_namespace(store)
    follower = Follower(store, namespace.client(), lambda: None)
    follower.poll()
    if step >= follower.steps:
        raise InvalidRequest(
            f"Step {step:,} was asked for, and {store.uri} has {follower.steps:,} steps. Give one of them."
        )
    batch = follower.batch(step)
    footer = read_footer(store, namespace, batch)
    ranges = [(dp, chunk) for dp in range(footer.dp) for chunk in range(footer.chunks)]
    slices = [
        SliceDescription(dp, chunk, *footer.range_of(dp, chunk), checksum)
        for (dp, chunk), checksum in zip(ranges, footer.checksums, strict=True)
    ]
    lane, epoch, sequence = names.parts_of_batch(batch.name)
    return BatchDescription(
        uri=store.uri,
        namespace=namespace.id,
        step=step,
        name=batch.name,
        n_bytes=batch.n_bytes,
        lane=lane,
        epoch=epoch,
        sequence=sequence,
        columns=footer.columns,
        slices=tuple(slices),
        origin=footer.origin,
    )
