"""The client of a loader's constructors: the planned steps of a rank, from the constructor of its bucket.

    with LoadingClient("10.0.0.5:50052,10.0.0.6:50052") as client:
        loading = client.open()                 # the spec that they serve; open(spec) refuses another
        for step in loading.read(StepRange(0, 1_000), rank): ...

A rank asks one address for the spec, and then the addresses from its own place in the list on for one that
serves it (`constructors`). A constructor that goes away is asked again from the first step that did not
arrive completely, so a restart goes unnoticed, and another one of the same bucket takes over at once; one
with a strategy that now plans differently is refused. Importing this module imports neither PyIceberg nor
pydantic.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Protocol

from blender.arrays import as_numpy
from blender.errors import EndOfData, InvalidRequest
from blender.ipc import from_ipc
from blender.loading.buffer_summary import BufferSummary
from blender.loading.constructors import ConstructorAnswer, ConstructorClient, Constructors
from blender.loading.handle import LoadingHandle
from blender.loading.raw_places import RawPlaces
from blender.loading.step import PLAN, LoadedStep
from blender.loading.stretches import Stretch
from blender.proto.blender.v1 import blender_pb2 as pb
from blender.spec.mesh import Mesh
from blender.spec.step_range import StepRange
from blender.steps import StepRows, batches
from blender.trainer.prefetch import Prefetcher
from blender.trainer.reader import PREFETCH_BYTES, BlendHandle
from blender.wire.address import checked_address
from blender.wire.credentials import Tls
from blender.wire.keepalive import SILENCE_S
from blender.wire.patience import Endpoint, Patience
from blender.wire.resume import Resumed

PREFETCH_STEPS = 16
"""The most messages, of a step or more than one a step, that a rank holds before it reads them.

Ranks of a bucket get pieces of different sizes, or lengths alone. If bytes alone bounded what they hold,
those with the least would be thousands of steps ahead, and the constructor would make each step for them,
drop it, and make it again for the others.
"""


class SpecWithId(Protocol):
    """A `LoadingSpec`; a trainer does not import its module."""

    @property
    def id(self) -> str:
        """The hash of the spec."""


class LoadingClient:
    """The constructors of one spec; see `BlenderClient` for the options."""

    def __init__(
        self,
        addresses: str | Sequence[str],
        *,
        tls: Tls | None = None,
        token: str | None = None,
        timeout_s: float = 60.0,
        patience_s: float = 30.0,
        silence_s: float = SILENCE_S,
        prefetch_bytes: int = PREFETCH_BYTES,
    ) -> None:
        """`addresses` is a list, or text with commas between."""
        names = addresses.split(",") if isinstance(addresses, str) else addresses
        names = [checked_address(name.strip()) for name in names if name.strip()]
        if not names:
            raise InvalidRequest(
                "No address of a constructor was given. Write them as `host:50052,host:50053`."
            )
        connect = partial(
            ConstructorClient,
            tls=tls,
            token=token,
            timeout_s=timeout_s,
            patience_s=patience_s,
            silence_s=silence_s,
        )
        self._new = partial(Constructors, tuple(names), connect, patience_s)
        self._opened: list[Constructors] = []
        self._reading = _Reading(tls, patience_s, prefetch_bytes)

    def __enter__(self) -> LoadingClient:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; reads under way fail."""
        for constructors in self._opened:
            constructors.close()

    def open(self, spec: str | SpecWithId | None = None, *, blend: str | None = None) -> ServedLoading:
        """The loader of the spec that the constructors serve, which must be `spec`, or have this id.

        With a `blend`, an update of theirs, the spec is over that one: after `reweight` a run continues with
        the blend of its state. Raises InvalidRequest for another spec or blend and for a Blender that
        loads none, BlenderUnavailable and Unauthenticated.
        """
        wanted = getattr(spec, "id", spec)
        if not isinstance(wanted, str | None):
            raise InvalidRequest(
                f"`open` got a {type(spec).__name__}. Give a spec or its id, or nothing for the one that is "
                "served."
            )
        constructors = self._new(blend or "")
        self._opened.append(constructors)
        address, answer = constructors.open()
        if blend not in (None, answer.blend):
            raise _too_old(address, answer.blend)
        if wanted not in (None, answer.spec):
            raise InvalidRequest(
                f"The constructor at {address} loads spec {answer.spec}, and this rank reads spec {wanted}. "
                "Give the addresses of its constructors, or start them with `factory loading serve`."
            )
        return ServedLoading(answer, constructors, self._reading)


@dataclass(frozen=True)
class _Reading:
    """How a rank reads."""

    tls: Tls | None
    patience_s: float
    prefetch_bytes: int


class ServedLoading(LoadingHandle):
    """The steps of a spec from its constructors; safe for many threads, and may be pickled."""

    def __init__(self, answer: ConstructorAnswer, constructors: Constructors, reading: _Reading) -> None:
        super().__init__(answer.spec, answer.blend)
        self._spec_json = answer.spec_json
        self._constructors, self._reading = constructors, reading

    @property
    def blend(self) -> BlendHandle:
        return BlendHandle(self._client, self.id)

    @cached_property
    def mesh(self) -> Mesh:
        return Mesh(**json.loads(self._spec_json)["mesh"])

    @property
    def _client(self) -> ConstructorClient:
        return self._constructors.client(self._constructors.latest)

    def _summary(self, stretch: Stretch, offset: int) -> BufferSummary:
        request = pb.SummaryRequest(spec=stretch.spec, blend=stretch.blend, offset=offset)
        pages: list[BufferSummary] = []
        while not pages or request.row:
            answer = self._client.summary(request)
            pictures = from_ipc(answer.pictures) if answer.HasField("pictures") else None
            rows = from_ipc(answer.rows)
            pages.append(BufferSummary(answer.blend, offset, tuple(answer.sources), rows, pictures))
            request.row = answer.next_row
        return BufferSummary.whole(pages)

    def _plan_raw(self, stretch: Stretch, offset: int, places: RawPlaces) -> dict[str, Any]:
        request = pb.PlanRequest(
            spec=stretch.spec,
            blend=stretch.blend,
            offset=offset,
            bucket=places.bucket.tolist(),
            bin=places.bin.tolist(),
            pictures=_picture_places(places),
            encoder_level=places.encoder_level,
        )
        plan: dict[str, Any] = json.loads(self._client.plan(request).plan_json)
        return plan

    def _updated(self, offset: int, weights: Mapping[str, int]) -> tuple[str, str]:
        blend = self._client.update(self.id, offset, weights).id
        answer = self._client.spec(offset, blend)
        if answer.blend != blend:
            raise _too_old(self._constructors.latest, answer.blend)
        return blend, answer.spec

    def _steps(self, stretch: Stretch, steps: StepRange, share: int) -> Generator[LoadedStep]:
        self.mesh.coordinate(share)
        rank = int(share)
        if steps.steps == 0:
            return
        address = self._constructors.of_rank(rank, self.mesh.ranks, steps.offset)
        progress = _Progress(stretch, rank, steps)
        streams = _Streams(self._constructors, address, self._reading.tls, progress)
        rows = streams.rows(steps.offset, self._reading.patience_s)
        budget = self._reading.prefetch_bytes
        size = partial(_size, least=budget // PREFETCH_STEPS)
        with Prefetcher(streams.noted(rows), budget, size, rows.cancel) as prefetched:
            for batch in batches(prefetched, steps):
                yield LoadedStep(batch.offset, batch.arrow)


class _Streams:
    """The streams of a rank's steps, one after the other, each from a constructor of its bucket."""

    def __init__(
        self, constructors: Constructors, address: str, tls: Tls | None, progress: _Progress
    ) -> None:
        self._constructors, self._progress = constructors, progress
        self._endpoint = Endpoint(address, tls, ConstructorClient.command)
        self._endpoint.has_answered = True  # when it was asked for its ranks
        self._failed: set[str] = set()
        """Addresses that failed since a row arrived."""

    def rows(self, offset: int, patience_s: float) -> Resumed:
        """The rows from step `offset` on."""
        endpoint, patience = self._endpoint, Patience(self._endpoint, patience_s)
        return Resumed(self._open, offset, self._progress.stop, patience, endpoint, self._take_over)

    def noted(self, rows: Resumed) -> Iterator[StepRows]:
        """The rows, while the plan of each whole step is kept."""
        try:
            for part in rows:
                self._failed.clear()
                self._progress.note(part)
                yield part
        except EndOfData:  # also if the stream broke after the last step, and the next one began behind it
            if self._progress.stop is not None or not self._progress.has_begun:
                raise

    def _open(self, first: int, waited_s: float) -> Any:
        client = self._constructors.client(self._endpoint.address)
        return client.load(self._progress.request_at(first), waited_s)

    def _take_over(self) -> bool:
        """Whether another constructor continues; without one the last one is asked again."""
        self._failed.add(self._endpoint.address)
        address = self._constructors.stand_in(self._progress.rank, self._failed)
        if address is None:
            self._failed.clear()
            return False
        self._endpoint.address = address
        return True


class _Progress:
    """The last step that arrived whole and its plan, which the next stream must go on with."""

    def __init__(self, stretch: Stretch, rank: int, steps: StepRange) -> None:
        self.rank = rank
        self._stretch, self._steps = stretch, steps
        self._plan: tuple[int, int] | None = None

    @property
    def has_begun(self) -> bool:
        """Whether a step has arrived whole."""
        return self._plan is not None

    @property
    def stop(self) -> int | None:
        """The step after the last one of the range; None for the end of data."""
        steps = self._steps
        if steps.steps is None:
            return None
        return steps.offset + (steps.steps - 1) // steps.stride * steps.stride + 1

    def request_at(self, first: int) -> Any:
        """The request for the steps of the range from `first` on."""
        stride = self._steps.stride
        first = self._steps.offset + -(-(first - self._steps.offset) // stride) * stride
        request = pb.LoadRequest(
            spec=self._stretch.spec,
            blend=self._stretch.blend,
            offset=first,
            steps=0 if self.stop is None else self.stop - first,
            rank=self.rank,
            stride=stride,
        )
        if self._plan is not None and self._plan[0] == first - stride:
            request.last_plan = self._plan[1]
        return request

    def note(self, part: StepRows) -> None:
        """Keep the plan of the last step if it is whole with these rows."""
        offset = int(as_numpy(part.batch.column("offset"))[-1])
        if offset < part.next_offset:
            self._plan = offset, part.batch.column(PLAN)[-1].as_py()


def _picture_places(places: RawPlaces) -> Any:
    if places.node is None or places.node_bin is None:
        return None
    return pb.PicturePlaces(node=places.node.tolist(), bin=places.node_bin.tolist())


def _too_old(address: str, blend: str) -> InvalidRequest:
    return InvalidRequest(
        f"The constructor at {address} knows blend {blend} alone, because its version cannot change weights "
        "in mid-run. Start constructors of this version."
    )


def _size(rows: StepRows, least: int) -> int:
    return max(least, int(rows.batch.nbytes))
