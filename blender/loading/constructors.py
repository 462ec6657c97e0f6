"""The constructors of a spec by their addresses: which of them serves a rank, and what each of them plans.

    constructors = Constructors(["10.0.0.5:50052", "10.0.0.6:50052"], connect=ConstructorClient)
    constructors.open()                         # the first that answers says which spec they serve
    constructors.of_rank(3, offset=1_000)       # "10.0.0.6:50052", which serves the bucket of rank 3

A rank needs one constructor of its bucket. It asks the addresses from its own place in their list on, so that
with an address for each node the first one asked is right, and a run of many ranks opens a few connections a
rank. Addresses that serve the same bucket stand in for each other. All that a process asked must agree on the
spec and on their plans.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from blender.errors import BlenderUnavailable, InvalidRequest, PlanChanged
from blender.proto.blender.v1 import blender_pb2 as pb
from blender.trainer.client import BlenderClient

EACH_S = 5.0
"""Patience with one of several addresses before the next one is asked."""
_ROUND_S = 0.5  # between rounds over addresses that do not answer

_LOG = logging.getLogger("blender.client")


class ConstructorClient(BlenderClient):
    """A connection to one constructor."""

    command = "factory loading serve"

    def spec(self, offset: int | None = None, blend: str = "") -> Any:
        """The constructor's `SpecResponse`, over an update `blend` of its own, with the plan of a step."""
        return self._call(self._connection.loading.Spec, pb.SpecRequest(offset=offset, blend=blend))

    def summary(self, request: Any) -> Any:
        """The `SummaryResponse` to a request."""
        return self._call(self._connection.loading.Summary, request)

    def plan(self, request: Any) -> Any:
        """The `PlanResponse` to a request."""
        return self._call(self._connection.loading.Plan, request)

    def load(self, request: Any, waited_s: float) -> Any:
        """A stream of the steps of a `LoadRequest`, ready with its first step.

        The constructor has gone on to make that step, so the wait for it has one bound over all streams.
        """
        left_s = max(0.05, self._timeout_s - waited_s)
        return self._connection.load(request, timeout=left_s, metadata=self._metadata)


@dataclass(frozen=True)
class ConstructorAnswer:
    """A constructor's description of itself."""

    spec: str
    blend: str
    spec_json: bytes
    ranks: frozenset[int]
    """The ranks that read there."""
    first_plan: int
    plan: int | None
    """Its plan of the step that was asked for."""


class Constructors:
    """The constructors at some addresses; safe for many threads, and may be pickled.

    `connect(address, ...)` makes a client, with the options of `BlenderClient`.
    """

    def __init__(
        self,
        addresses: Sequence[str],
        connect: Callable[..., ConstructorClient],
        patience_s: float,
        blend: str = "",
    ) -> None:
        """With a `blend` they are asked for their spec over it, an update of theirs."""
        self.addresses, self._blend = tuple(addresses), blend
        self._connect, self._patience_s = connect, patience_s
        self._first: tuple[str, ConstructorAnswer] | None = None
        """The first answer and its address, with which all others must agree."""
        self._ranks: dict[str, frozenset[int]] = {}
        """The ranks that read at the addresses that were asked."""
        self._chosen: dict[int, str] = {}
        """The address from which each rank of this process reads."""
        self.latest = self.addresses[0]
        """The address that answered last to a rank."""
        self._lock = threading.Lock()
        self._clients: dict[str, ConstructorClient] = {}

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_lock": None, "_clients": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.Lock())

    def client(self, address: str) -> ConstructorClient:
        """The connection to an address, made at the first call."""
        with self._lock:
            if address not in self._clients:
                self._clients[address] = self._connect(address)
            return self._clients[address]

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            for client in self._clients.values():
                client.close()
            self._clients.clear()

    def open(self) -> tuple[str, ConstructorAnswer]:
        """An address that answers, and its answer; each process begins at another one.

        Raises InvalidRequest for a Blender that loads nothing, BlenderUnavailable and Unauthenticated.
        """
        # Or all ranks would ask the same one; a draw of `random` would change the numbers of a trainer.
        first = random.SystemRandom().randrange(len(self.addresses))
        answer, failures = self._ask_in_turn(self._from(first), lambda _: True)
        if answer is None:
            raise self._silent("No constructor answers", failures)
        self.latest = answer[0]
        return answer

    def of_rank(self, rank: int, ranks: int, offset: int) -> str:
        """The address that a rank of `ranks` reads from.

        Its plan of step `offset` is compared with another constructor's. Raises PlanChanged,
        InvalidRequest if no constructor serves the rank, BlenderUnavailable and Unauthenticated.
        """
        if rank not in self._chosen:
            order = self._from(rank * len(self.addresses) // ranks)
            answer, failures = self._ask_in_turn(order, lambda answer: rank in answer.ranks, offset)
            if answer is None and failures:
                raise self._silent(f"No constructor that answers serves rank {rank}", failures)
            if answer is None:
                raise InvalidRequest(
                    f"No constructor at {', '.join(self.addresses)} serves rank {rank}. Give the address of "
                    "the one that serves its bucket, or, if its rows come by a broadcast, read on the rank "
                    "that sends them."
                )
            self._compare(answer, order, offset)
            self._chosen[rank] = self.latest = answer[0]
        return self._chosen[rank]

    def stand_in(self, rank: int, failures: set[str]) -> str | None:
        """Another address that answers and serves a rank, which reads there from now on; None without one."""
        first = self.addresses.index(self._chosen[rank])
        for address in self._from(first):
            if address in failures or rank not in self._ranks.get(address, {rank}):
                continue
            try:
                answer = self._ask(address, 0.0, timeout_s=EACH_S)
            except BlenderUnavailable:
                continue
            if rank in answer.ranks:
                _LOG.warning("%s takes over from %s for rank %d.", address, self._chosen[rank], rank)
                self._chosen[rank] = self.latest = address
                return address
        return None

    def _from(self, first: int) -> tuple[str, ...]:
        return self.addresses[first:] + self.addresses[:first]

    def _ask_in_turn(
        self, order: Sequence[str], accepts: Callable[[ConstructorAnswer], bool], offset: int | None = None
    ) -> tuple[tuple[str, ConstructorAnswer] | None, dict[str, BlenderUnavailable]]:
        """The first accepted answer and its address; else the failures of the silent constructors.

        An address is asked again while it does not answer, until patience runs out.
        """
        until = time.monotonic() + self._patience_s
        each_s = self._patience_s if len(order) == 1 else min(EACH_S, self._patience_s)
        silent = tuple(order)
        bound = {} if len(order) == 1 else {"timeout_s": each_s}  # of the first round: one may hang
        while True:
            began, failures = time.monotonic(), {}
            for address in silent:
                left_s = max(0.0, until - time.monotonic())
                try:
                    answer = self._ask(address, min(each_s, left_s), offset, **bound)
                except BlenderUnavailable as error:
                    failures[address] = error
                    continue
                if accepts(answer):
                    return (address, answer), failures
            if not failures or len(order) == 1 or time.monotonic() >= until:
                return None, failures
            silent, bound = tuple(failures), {}
            time.sleep(max(0.0, _ROUND_S - (time.monotonic() - began)))

    def _ask(
        self, address: str, patience_s: float, offset: int | None = None, **options: Any
    ) -> ConstructorAnswer:
        """The answer of an address, by a connection of its own; raises PlanChanged and InvalidRequest.

        The answer must agree with those before.
        """
        with self._connect(address, patience_s=patience_s, **options) as client:
            message = client.spec(offset, self._blend)
        answer = ConstructorAnswer(
            message.spec,
            message.blend,
            bytes(message.spec_json),
            frozenset(message.ranks),
            message.first_plan,
            message.plan if message.HasField("plan") else None,
        )
        self._ranks[address] = answer.ranks
        if self._first is None:
            self._first = address, answer
        other_address, other = self._first
        if answer.spec != other.spec:
            raise InvalidRequest(
                f"The constructors at {other_address} and {address} load the specs {other.spec} and "
                f"{answer.spec}. Give the addresses of one spec, or start them with the same options of "
                "`factory loading serve`."
            )
        if answer.first_plan != other.first_plan:
            raise _planned_otherwise(other_address, address, 0, answer.spec)
        return answer

    def _compare(self, answer: tuple[str, ConstructorAnswer], order: Sequence[str], offset: int) -> None:
        """Raise PlanChanged if the next constructor in `order` plans step `offset` in another way."""
        address, own = answer
        after = [*order, *order][order.index(address) + 1]
        if after == address:
            return
        try:
            other = self._ask(after, 0.0, offset, timeout_s=EACH_S)
        except BlenderUnavailable:
            return  # the rank does not need it
        if own.plan is not None and other.plan is not None and own.plan != other.plan:
            raise _planned_otherwise(address, after, offset, own.spec)

    def _silent(self, fact: str, failures: dict[str, BlenderUnavailable]) -> BlenderUnavailable:
        """The error of addresses that did not answer."""
        if len(self.addresses) == 1:
            return next(iter(failures.values()))
        return BlenderUnavailable(f"{fact}; silent: {', '.join(failures)}. {next(iter(failures.values()))}")


def _planned_otherwise(address: str, other: str, offset: int, spec: str) -> PlanChanged:
    return PlanChanged(
        f"The constructors at {address} and {other} plan step {offset:,} of spec {spec} differently. Use one "
        "version of its strategy on all constructors, and let it depend on the step, the tree and the spec "
        "alone."
    )
