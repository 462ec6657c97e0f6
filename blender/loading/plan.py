"""A loading plan: the bucket and the bin of every row of a step, and who reads them.

The rows of a step stay the blend's: a plan only says who reads which, so `explain` and `trace` stay true. Its
hash names it in messages.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from blender.errors import InvalidRequest
from blender.loading.bin_order import Barrier
from blender.loading.columns import StepColumns
from blender.loading.costs import Costs, sums
from blender.loading.figures import StepTimes, bounds, bounds_of_groups, spreads, times
from blender.loading.image_plan import ImagePlan
from blender.loading.placement import sums_as_given
from blender.loading.tree import Consumer
from blender.spec.whole_number import whole_number

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class RankGroups:
    """The context parallel ranks of each bucket, where a plan groups them by the lengths of its rows."""

    widths: tuple[int, ...]
    """Ranks of each bucket; the groups stand side by side in the order of the level CP."""
    cp: int
    """Context parallel ranks of the mesh, which cut every row without groups."""

    def per_rank(self, loads: Costs, *, repeat: bool = True) -> Costs:
        """An equal part of the loads of buckets for each of their ranks; shape [ranks or buckets, bins]."""
        widths = np.array(self.widths, dtype=np.uint64)
        parts = -(-loads.astype(np.int64) // widths.astype(np.int64)[:, None])
        return np.repeat(parts, self.widths, axis=0).astype(np.uint64) if repeat else parts.astype(np.uint64)

    def as_given(self, costs: Costs, bins: int) -> Costs:
        """The loads of ranks if all rows were cut for all context parallel ranks of a node."""
        loads = sums_as_given(costs, sum(self.widths) // self.cp, bins)
        return np.repeat(-(-loads.astype(np.int64) // self.cp), self.cp, axis=0).astype(np.uint64)


@dataclass(frozen=True, eq=False)
class Plan:
    """A planned step. Raises InvalidRequest unless each of its rows is in one bin.

    `bucket` and `bin` have a value a row of the step, in the blend's order.
    """

    step: StepColumns
    bucket: Ints
    bin: Ints
    costs: Costs
    buckets: int
    bins: int
    consumers: tuple[Consumer, ...] = ()
    stages: int = 1
    barrier: Barrier = "microbatch"
    equal_counts: bool = field(default=True, kw_only=True)
    images: ImagePlan | None = field(default=None, kw_only=True)
    """Who encodes the pictures of the step; None where they go with their rows."""
    groups: RankGroups | None = field(default=None, kw_only=True)
    """Ranks of each bucket of a plan whose readers change by step; None where all have the same."""

    def __post_init__(self) -> None:
        self._require_whole_numbers("costs", np.uint64)
        for name, extent in (("bucket", self.buckets), ("bin", self.bins)):
            values = self._require_whole_numbers(name, np.int64)
            if len(values) and not 0 <= int(values.min()) <= int(values.max()) < extent:
                raise InvalidRequest(
                    f"The plan names a {name} {values.min()} or {values.max()}. There are 0 to {extent - 1}."
                )

    @cached_property
    def order(self) -> Ints:
        """The rows of the step by bucket and bin, in the blend's order within a bin."""
        # numpy sorts 16 bits by radix, in a fifth of the time
        narrow = self._place.astype(np.min_scalar_type(self.buckets * self.bins))
        return np.argsort(narrow, kind="stable")

    @cached_property
    def ends(self) -> Ints:
        """The end of each bucket and bin in `order`; shape [buckets, bins]."""
        counts = np.bincount(self._place, minlength=self.buckets * self.bins)
        return np.cumsum(counts).reshape(self.buckets, self.bins)

    def rows_of(self, bucket: int, bin: int) -> Ints:
        """The rows of a microbatch, in order; raises InvalidRequest for one that the plan does not have."""
        bucket = whole_number(bucket, "bucket", most=self.buckets - 1)
        bin = whole_number(bin, "bin", most=self.bins - 1)
        place = bucket * self.bins + bin
        ends = self.ends.reshape(-1)
        return self.order[int(ends[place - 1]) if place else 0 : int(ends[place])]

    def rows_of_bucket(self, bucket: int) -> Ints:
        """The rows of all microbatches of a bucket, in order; raises InvalidRequest for another bucket."""
        bucket = whole_number(bucket, "bucket", most=self.buckets - 1)
        ends = self.ends[:, -1]
        return self.order[int(ends[bucket - 1]) if bucket else 0 : int(ends[bucket])]

    def loader_do_plan(self, source: int) -> Ints:
        """The work of a source loader: ordinals of its rows, in the order of their microbatches.

        Raises InvalidRequest for a number that no source has.
        """
        source = whole_number(source, "source", most=len(self.step.sources) - 1)
        chosen = self.order[self.step.source[self.order] == source]
        return self.step.ordinal[chosen]

    def constructor_do_plan(self, bucket: int) -> list[Ints]:
        """The work of a bucket's constructor: the rows of each of its microbatches."""
        return [self.rows_of(bucket, bin) for bin in range(self.bins)]

    @cached_property
    def hash(self) -> int:
        """64 bits of the planned rows and their readers: equal hashes mean that every rank reads the same."""
        digest = hashlib.blake2b(digest_size=8)
        digest.update(f"{self.step.blend}/{self.step.offset}/{self.buckets}/{self.bins}/".encode())
        digest.update(self._place.astype("<i8").tobytes())
        readers = [
            value
            for consumer in self.consumers
            for value in (
                consumer.rank,
                consumer.bucket,
                consumer.piece,
                consumer.pieces,
                consumer.needs_tokens,
            )
        ]
        digest.update(np.array(readers, dtype="<i8").tobytes())
        if self.images is not None:
            digest.update(f"/{self.images.nodes}/{self.images.bins}/{self.images.ranks}/".encode())
            for places in (self.images.node, self.images.bin):
                digest.update(places.astype("<i8").tobytes())
        return int.from_bytes(digest.digest(), "little")

    @cached_property
    def loads(self) -> Costs:
        """The cost of each microbatch; shape [buckets, bins]."""
        return self.sums_of(self.costs)

    def sums_of(self, values: Costs) -> Costs:
        """The sum of a value a row in each microbatch; shape [buckets, bins]."""
        return sums(values, self._place, self.buckets * self.bins).reshape(self.buckets, self.bins)

    @cached_property
    def rank_loads(self) -> Costs:
        """The cost of each microbatch to one rank: its part of the bucket's, with groups of ranks."""
        return self.loads if self.groups is None else self.groups.per_rank(self.loads)

    @cached_property
    def as_given(self) -> Costs:
        """The cost of each microbatch if every bucket took its share of the rows in the blend's order."""
        if self.groups is not None:
            return self.groups.as_given(self.costs, self.bins)
        return sums_as_given(self.costs, self.buckets, self.bins)

    @cached_property
    def figures(self) -> Mapping[Barrier, StepTimes]:
        """The time of the step at each barrier relative to equal microbatches."""
        before, after = times(self.as_given, self.stages), times(self.rank_loads, self.stages)
        least = (
            bounds(self.costs, self.buckets, self.bins, equal_counts=self.equal_counts, stages=self.stages)
            if self.groups is None
            else bounds_of_groups(self.costs, sum(self.groups.widths), self.groups.cp, self.bins, self.stages)
        )
        return {barrier: StepTimes(before[barrier], after[barrier], least[barrier]) for barrier in before}

    @cached_property
    def image_figures(self) -> Mapping[Barrier, StepTimes]:
        """The time of the encoder at each barrier relative to equal loads; none without planned pictures."""
        if self.images is None:
            return {}
        before, after = times(self.images.as_given), times(self.images.loads)
        least = bounds(self.images.costs, self.images.nodes, self.images.bins, equal_counts=False)
        return {barrier: StepTimes(before[barrier], after[barrier], least[barrier]) for barrier in before}

    @property
    def spreads(self) -> dict[str, dict[Barrier, float]]:
        """The largest load over the smallest at each barrier, of the `backbone` and of the `encoder`."""
        modules = {"backbone": self.rank_loads} | (
            {} if self.images is None else {"encoder": self.images.loads}
        )
        return {module: spreads(loads) for module, loads in modules.items()}

    def bytes_of(self, consumer: Consumer) -> int:
        """Bytes of tokens that a rank gets: a piece of its bucket, or none where lengths are enough."""
        if not consumer.needs_tokens:
            return 0
        n_tokens = int(self._tokens_of_bucket[consumer.bucket])
        return -(-n_tokens // consumer.pieces) * self.step.token_bytes

    def described(self) -> dict[str, Any]:
        """The plan as JSON: figures, loads, rows of each microbatch, and the ranks that read."""
        return {
            "blend": self.step.blend,
            "offset": self.step.offset,
            "hash": f"{self.hash:016x}",
            "barrier": self.barrier,
            "times": {barrier: vars(figure) for barrier, figure in self.figures.items()},
            "buckets": [
                {
                    "bins": [
                        {"cost": int(self.loads[bucket, bin]), "rows": self.rows_of(bucket, bin).tolist()}
                        for bin in range(self.bins)
                    ],
                }
                for bucket in range(self.buckets)
            ],
            **({} if self.images is None else {"encoder": self._encoder_described(self.images)}),
            "ranks": [vars(consumer) | {"bytes": self.bytes_of(consumer)} for consumer in self.consumers],
        }

    def _encoder_described(self, images: ImagePlan) -> dict[str, Any]:
        """The encoder's part as JSON: figures, and the pictures of each node and microbatch."""
        return {
            "times": {barrier: vars(figure) for barrier, figure in self.image_figures.items()},
            "nodes": [
                [
                    {"cost": int(images.loads[node, bin]), "pictures": images.of_node(node, bin).tolist()}
                    for bin in range(images.bins)
                ]
                for node in range(images.nodes)
            ],
        }

    @cached_property
    def _tokens_of_bucket(self) -> Costs:
        return sums(self.step.facts["n_tokens"], self.bucket, self.buckets)

    @cached_property
    def _place(self) -> Ints:
        return self.bucket * self.bins + self.bin

    def _require_whole_numbers(self, name: str, kind: npt.DTypeLike) -> npt.NDArray[Any]:
        """Let the field `name` be read-only and of one type; raises InvalidRequest unless it has all rows."""
        values = np.asarray(getattr(self, name))
        if values.shape != (len(self.step),):
            rows = f"{len(values):,} rows" if values.ndim == 1 else f"rows in the shape {values.shape}"
            raise InvalidRequest(
                f"The plan gives a {name.removesuffix('s')} to {rows}, and step {self.step.offset:,} has "
                f"{len(self.step):,}. Plan each row once."
            )
        if values.dtype.kind not in "iu":
            raise InvalidRequest(
                f"The plan gives {values.dtype} as {name} of the rows of step {self.step.offset:,}. Give "
                "whole numbers."
            )
        whole = values.astype(kind, copy=False).view()
        whole.flags.writeable = False
        object.__setattr__(self, name, whole)
        return whole
