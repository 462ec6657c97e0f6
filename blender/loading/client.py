"""The client of a loader's constructors: the planned steps of a rank, from the constructor of its bucket.

    with LoadingClient("10.0.0.5:50052,10.0.0.6:50052") as client:
        loading = client.open()                 # the spec that they serve; open(spec) refuses another
        for step in loading.read(StepRange(0, 1_000), rank): ...

Every address is asked once for its spec and its ranks. A constructor that goes away is asked again from the
first step that did not arrive whole, so a restart goes unnoticed; one whose strategy plans otherwise than
before is refused. Importing this module imports neither PyIceberg nor pydantic.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from typing import Any

from blender.arrays import as_numpy
from blender.client import BlenderClient
from blender.errors import InvalidRequest, PlanChanged
from blender.loading.handle import LoadingHandle
from blender.loading.step import PLAN, LoadedStep
from blender.prefetch import Prefetcher
from blender.proto.blender.v1 import blender_pb2 as pb
from blender.protocol.credentials import Tls
from blender.protocol.keepalive import SILENCE_S
from blender.protocol.resume import Resumed
from blender.reader import PREFETCH_BYTES
from blender.spec.mesh import Mesh
from blender.spec.step_range import StepRange
from blender.steps import StepRows, batches

PREFETCH_STEPS = 16
"""The most messages, of a step or more than one a step, that a rank holds before it reads them.

Ranks of a bucket get pieces of different sizes, or lengths alone. If bytes alone bounded what they hold,
those with the least would be thousands of steps ahead, and the constructor would make each step for them,
drop it, and make it again for the others.
"""


class LoadingClient:
    """Connections to the constructors of one spec; see `BlenderClient` for the options."""

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
        names = [name.strip() for name in names if name.strip()]
        if not names:
            raise InvalidRequest(
                "No address of a constructor was given. Write them as `host:50052,host:50053`."
            )
        self.constructors = [
            BlenderClient(
                address,
                tls=tls,
                token=token,
                timeout_s=timeout_s,
                patience_s=patience_s,
                silence_s=silence_s,
                prefetch_bytes=prefetch_bytes,
            )
            for address in names
        ]

    def __enter__(self) -> LoadingClient:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; reads under way fail."""
        for constructor in self.constructors:
            constructor.close()

    def open(self, spec: str | None = None) -> ServedLoading:
        """The loader, whose spec must have the id `spec` if one is given.

        Raises InvalidRequest for another spec, for constructors of different ones and for a Blender that
        loads none, PlanChanged for constructors that plan differently, BlenderUnavailable and
        Unauthenticated.
        """
        answers = [constructor.spec() for constructor in self.constructors]
        wanted = spec or answers[0].spec
        for constructor, answer in zip(self.constructors, answers, strict=True):
            if answer.spec != wanted:
                raise InvalidRequest(
                    f"The constructor at {constructor.address} loads spec {answer.spec}, and this rank reads "
                    f"spec {wanted}. Give the addresses of its constructors, or start them with `factory "
                    "loading serve`."
                )
            if answer.first_plan != answers[0].first_plan:
                raise PlanChanged(
                    f"The constructors at {self.constructors[0].address} and {constructor.address} plan step "
                    f"0 of spec {wanted} differently. Use one version of its strategy on all constructors."
                )
        return ServedLoading(wanted, self.constructors, answers)


class ServedLoading(LoadingHandle):
    """The steps of a spec from its constructors; safe for many threads, and may be pickled."""

    def __init__(self, spec: str, constructors: Sequence[BlenderClient], answers: Sequence[Any]) -> None:
        super().__init__(spec, constructors[0].open(answers[0].blend))
        self._spec_json = bytes(answers[0].spec_json)
        self._constructor_of = {
            rank: constructor
            for constructor, answer in zip(constructors, answers, strict=True)
            for rank in answer.ranks
        }
        self._addresses = [constructor.address for constructor in constructors]

    @cached_property
    def mesh(self) -> Mesh:
        return Mesh(**json.loads(self._spec_json)["mesh"])

    def read(self, steps: StepRange, share: int) -> Iterator[LoadedStep]:
        constructor = self._constructor(share)
        steps.require_whole()
        if steps.steps == 0:
            return
        received = _Received(self.spec, share, steps)
        rows = constructor.load(received.request_at, steps.offset, received.stop)
        noted = received.noted(rows)
        budget = constructor.prefetch_bytes
        size = partial(_size, least=budget // PREFETCH_STEPS)
        with Prefetcher(noted, budget, size, rows.cancel) as prefetched:
            for batch in batches(prefetched, steps):
                yield LoadedStep(batch.offset, batch.arrow)

    def _constructor(self, rank: int) -> BlenderClient:
        if rank in self._constructor_of:
            return self._constructor_of[rank]
        self.mesh.coordinate(rank)
        raise InvalidRequest(
            f"No constructor at {', '.join(self._addresses)} serves rank {rank}. Give the address of the one "
            "that serves its bucket, or, if its rows come by a broadcast, read on the rank that sends them."
        )


class _Received:
    """The last step that arrived whole and its plan, which the next stream must go on with."""

    def __init__(self, spec: str, rank: int, steps: StepRange) -> None:
        self._spec, self._rank, self._steps = spec, rank, steps
        self._plan: tuple[int, int] | None = None

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
            spec=self._spec,
            offset=first,
            steps=0 if self.stop is None else self.stop - first,
            rank=self._rank,
            stride=stride,
        )
        if self._plan is not None and self._plan[0] == first - stride:
            request.last_plan = self._plan[1]
        return request

    def noted(self, rows: Resumed) -> Iterator[StepRows]:
        """The rows, while the plan of each whole step is kept."""
        for part in rows:
            offset = int(as_numpy(part.batch.column("offset"))[-1])
            if offset < part.next_offset:
                self._plan = offset, part.batch.column(PLAN)[-1].as_py()
            yield part


def _size(rows: StepRows, least: int) -> int:
    return max(least, int(rows.batch.nbytes))
