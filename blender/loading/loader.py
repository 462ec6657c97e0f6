"""A loader in threads of this process: planner, source loaders and constructor, each behind its queue.

    loader = Loader(blend, spec, encode=lambda rows: rows, size=lambda rows: rows.nbytes)
    next(loader.batches(StepRange(1_000), 3))   # (1000, RecordBatch): what rank 3 of the mesh reads
    loader.close()

It holds nothing that a spec and an offset do not give back.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import Any, Generic, TypeVar

import pyarrow as pa

from blender.call_context import current_context
from blender.errors import EndOfData, InvalidRequest
from blender.loading.buffer_summary import BufferSummary
from blender.loading.pictures.encoders import EncoderPlaces
from blender.loading.pictures.preparing import Preparer
from blender.loading.pictures.rules import Decode
from blender.loading.planner import Planner
from blender.loading.raw_places import RawPlaces
from blender.loading.roles.assembly import Assembly
from blender.loading.roles.constructor import DataConstructor
from blender.loading.roles.picture_loader import require_pictures
from blender.loading.roles.planner import KEPT, PlannerRole
from blender.loading.roles.shared import MEMORY_BYTES, SharedBatches
from blender.loading.roles.source_loader import SourceLoader
from blender.loading.run_planner import RunPlanner
from blender.loading.runtime.threads import Mailbox
from blender.loading.spec import LoadingSpec
from blender.loading.tree import Consumer
from blender.opened.blend import Blend
from blender.spec.ranks import WHOLE_STEP
from blender.spec.step_range import StepRange

Encoded = TypeVar("Encoded")

CONSTRUCTORS = 2  # steps that are assembled at once


class Loader(Generic[Encoded]):
    """The planned batches of some buckets of a spec; safe for many threads.

    `encode` makes the output from a rank's rows, once for all ranks that read the same, and `size` gives its
    bytes. Sources are dealt to `loaders` source loaders. `ahead` steps are made before a rank asks.
    Pictures are decoded by source loaders, or by the constructor with `decode="constructor"`: then their
    files travel between the two, not their patches. Without `for_late` no batch is held for ranks of its
    bucket that have not read yet.
    """

    def __init__(
        self,
        blend: Blend,
        spec: LoadingSpec,
        encode: Callable[[pa.RecordBatch], Encoded],
        size: Callable[[Encoded], int],
        *,
        buckets: Collection[int] | None = None,
        loaders: int = 1,
        ahead: int = 1,
        memory_bytes: int = MEMORY_BYTES,
        for_late: bool = True,
        decode: Decode = "loader",
    ) -> None:
        """Raises InvalidRequest for another blend, a spec that cannot be planned, and buckets it lacks.

        A spec of pictures needs a blend that delivers some (InvalidRequest), and Pillow (ConfigurationError).
        """
        self.blend, self.spec, self._ahead = blend, spec, ahead
        self._over = partial(
            Loader[Encoded],
            encode=encode,
            size=size,
            buckets=buckets,
            loaders=loaders,
            ahead=ahead,
            memory_bytes=memory_bytes,
            for_late=for_late,
            decode=decode,
        )
        pictures = None if spec.images is None else Preparer(blend, spec.images, spec.pictures)
        self._preparer = pictures
        if pictures is not None:
            require_pictures(blend, spec)
        first = Planner(blend, spec)
        self._planner = first
        planner = RunPlanner(first)
        self.first_plan = planner.first
        self.buckets = (
            tuple(range(self.first_plan.buckets)) if buckets is None else tuple(sorted(set(buckets)))
        )
        if not self.buckets or not 0 <= self.buckets[0] <= self.buckets[-1] < self.first_plan.buckets:
            raise InvalidRequest(
                f"Buckets {', '.join(map(str, buckets or ()))} were asked for. The spec has buckets 0 to "
                f"{self.first_plan.buckets - 1}."
            )
        self._consumers = {consumer.rank: consumer for consumer in self.first_plan.consumers}
        places = (
            None
            if pictures is None
            else EncoderPlaces.from_plan(first.tree, spec.broadcasts, self.first_plan)
        )
        prepare = None if pictures is None else pictures.prepare
        by_loader, by_constructor = (prepare, None) if decode == "loader" else (None, prepare)
        self._mailboxes: list[Mailbox] = []
        self._plans = self._start(PlannerRole(planner, KEPT + ahead), "planner")
        n_loaders = max(1, min(loaders, len(blend.sources)))
        source_loaders = []
        for number in range(n_loaders):
            own = range(number, len(blend.sources), n_loaders)
            loader = SourceLoader(blend, own, self._plans, places, by_loader, spec.loader_do_plan)
            source_loaders.append(self._start(loader, f"source loader {number}"))
        self._made = DataConstructor(
            self._plans,
            source_loaders,
            encode,
            spec.chunking,
            assembly=Assembly(blend, spec),
            places=places,
            prepare=by_constructor,
            program=spec.constructor_do_plan,
        )
        self._constructor = self._start(self._made, "constructor", CONSTRUCTORS)
        self._shared = SharedBatches(
            self._constructor,
            [consumer for consumer in self.first_plan.consumers if consumer.bucket in self.buckets],
            spec.chunking,
            size,
            memory_bytes,
            for_late=for_late,
            nodes=None if places is None else places.of_rank,
        )

    def over(self, blend: Blend) -> Loader[Encoded]:
        """A loader of the same options over another blend, such as an update; raises InvalidRequest."""
        return self._over(blend, self.spec.model_copy(update={"blend": blend.id}))

    @property
    def ranks(self) -> tuple[int, ...]:
        """The ranks that read of the buckets, ascending."""
        return tuple(rank for rank, one in self._consumers.items() if one.bucket in self.buckets)

    @property
    def held(self) -> int:
        """The bytes of batches that some rank has not taken yet."""
        return self._shared.held

    @property
    def taken_bytes(self) -> int:
        """The bytes that source loaders have handed to the constructor."""
        return self._made.taken_bytes

    @property
    def replaced_pictures(self) -> int:
        """The pictures that became gray, each time that their step was made."""
        return 0 if self._preparer is None else self._preparer.n_gray

    def consumer(self, rank: int) -> Consumer:
        """The consumer of a rank.

        Raises InvalidRequest for a rank outside the mesh, one that gets its rows by a broadcast, and one of
        another bucket.
        """
        self.spec.mesh.coordinate(rank)
        if rank not in self._consumers:
            raise InvalidRequest(
                f"Rank {rank} reads nothing: strategy `{self.spec.strategy}` lets another rank of its bucket "
                "read and broadcast. Read on that rank, or make the spec with `broadcast` none."
            )
        consumer = self._consumers[rank]
        if consumer.bucket not in self.buckets:
            served = ", ".join(map(str, self.buckets))
            raise InvalidRequest(
                f"Rank {rank} reads of bucket {consumer.bucket}, and this constructor serves {served}. Ask "
                "the constructor of that bucket."
            )
        return consumer

    def plan_hash(self, offset: int) -> int:
        """The hash of the plan of a step, as batches carry it."""
        return int(self._plans.result("plan", offset).hash)

    def summary_buffer(self, offset: int) -> BufferSummary:
        """The metadata of a step's rows and pictures; raises InvalidRequest and EndOfData."""
        return self._planner.summary_buffer(offset).summary()

    def plan_raw(self, offset: int, places: RawPlaces) -> dict[str, Any]:
        """A plan of your own as JSON (`Plan.described`); raises the errors of `Planner.plan_raw`."""
        return self._planner.plan_of_places(offset, places).described()

    def batches(self, steps: StepRange, rank: int) -> Iterator[tuple[int, Encoded]]:
        """A rank's part of each step of a range, with the step; waits within the call of this thread.

        A step counts as taken at the request for the next one. Raises the errors of `consumer`, Stalled, the
        errors of reading, and EndOfData if the range begins or ends beyond the end of the data.
        """
        self.blend.order.check(steps, WHOLE_STEP)
        self.consumer(rank)
        offset, stop, stride = steps.offset, steps.stop, steps.stride
        while stop is None or offset < stop:
            try:
                step = [self._shared.batch(offset, rank)]
            except EndOfData:
                begins_behind = offset == steps.offset > (self.blend.steps or offset)
                if stop is None and not begins_behind:
                    return
                raise
            for later in range(offset + stride, offset + (self._ahead + 1) * stride, stride):
                if stop is None or later < stop:
                    self._shared.make_ahead(later, rank)
            yield offset, step.pop()  # not held here while a rank reads it
            self._shared.taken(offset, rank)
            offset += stride

    def whole_steps(self, steps: StepRange) -> Iterator[tuple[int, list[pa.RecordBatch]]]:
        """Each step of a range, with the uncut rows of its buckets; waits within the call of this thread.

        Raises InvalidRequest, Stalled, the errors of reading, and EndOfData as `batches` does.
        """
        self.blend.order.check(steps, WHOLE_STEP)
        offset, call = steps.offset, current_context()

        def stalled() -> str:
            return (
                f"The rows of step {offset:,} were not ready in time. Ask again, or give the call more time."
            )

        while steps.stop is None or offset < steps.stop:
            try:
                asked = [self._constructor.ask("rows", offset, bucket) for bucket in self.buckets]
                rows = [call.result(answer, stalled) for answer in asked]
            except EndOfData:
                if steps.stop is None:
                    return
                raise
            yield offset, rows
            offset += steps.stride

    def close(self) -> None:
        """End the threads."""
        for mailbox in reversed(self._mailboxes):
            mailbox.close()

    def end(self) -> None:
        """As `close`, without waiting."""
        for mailbox in reversed(self._mailboxes):
            mailbox.end()

    def _start(self, role: object, name: str, threads: int = 1) -> Mailbox:
        self._mailboxes.append(Mailbox(role, name, threads))
        return self._mailboxes[-1]
