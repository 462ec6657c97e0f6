"""A Blender's client: define blends, and iterate over the steps of one from any offset.

    with BlenderClient("127.0.0.1:50051") as blender:
        blend = blender.create([Source("packed.code", weight=6), Source("packed.prose", weight=2)], seed=7)
        for batch in blender.fetch(blend.id, offset=0, steps=1000):
            train(batch.tokens, batch.targets, batch.cu_seqlens, batch.position_ids)

The client holds no state worth saving: `next_offset` of the last batch says where to continue, on any machine
and with any number of ranks. If a Blender goes away, the client retries from there, so a restart goes
unnoticed; it raises only errors that a Blender states, as the classes that the core raises
(`blender.errors`). A thread prefetches, so a step that has arrived costs no wait.

A client can travel to other processes, by pickle or by fork; it opens a new connection in each.

Importing this module imports neither Spark nor Dagster nor PyIceberg.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import grpc

from blender.batch import Batch
from blender.prefetch import Prefetcher
from blender.proto.blender.v1 import blender_pb2 as pb
from blender.proto.blender.v1 import blender_pb2_grpc as pb_grpc
from blender.protocol.credentials import Tls, bearer
from blender.protocol.keepalive import SILENCE_S, client_options
from blender.protocol.records import to_message, to_record
from blender.protocol.resume import Patience, Resumed
from blender.protocol.status import to_error
from blender.protocol.wire import parse
from blender.reader import BlendHandle
from blender.records import BlendRecord, Description, ExplainedRow, Schedule, Source
from blender.steps import Rows, batches

PREFETCH_BYTES = 16 << 20  # a second of data for most trainers; a block is 1 MiB

_FETCH = "/blender.v1.BlendData/Fetch"
_OPTIONS = [
    ("grpc.max_receive_message_length", -1),  # a block is about 1 MiB, unless one row is larger
    ("grpc.initial_reconnect_backoff_ms", 100),  # the default, one second and growing, outlasts a restart
    ("grpc.max_reconnect_backoff_ms", 1000),
]


class _Connection:
    """The channel of one process, and its methods."""

    def __init__(self, address: str, tls: Tls | None, silence_s: float) -> None:
        self.process = os.getpid()
        options = [*_OPTIONS, *client_options(silence_s)]
        self.channel = (
            grpc.insecure_channel(address, options=options)
            if tls is None
            else grpc.secure_channel(address, tls.credentials(), options=options)
        )
        self.configs = pb_grpc.BlendConfigsStub(self.channel)
        self.data = pb_grpc.BlendDataStub(self.channel)
        self.fetch = self.channel.unary_stream(
            _FETCH, request_serializer=pb.FetchRequest.SerializeToString, response_deserializer=parse
        )


class BlenderClient:
    """A connection to one Blender, plaintext without `tls`; safe for many threads.

    `timeout_s` bounds every call, and in a fetch the wait for each step. `patience_s` is how long the client
    retries while no Blender answers. `silence_s`, at least 10, is how long a connection may be silent during
    a call before it counts as broken. `prefetch_bytes` bounds what each fetch holds before it is read.
    Raises the classes of `blender.errors`.
    """

    def __init__(
        self,
        address: str,
        *,
        tls: Tls | None = None,
        token: str | None = None,
        timeout_s: float = 60.0,
        patience_s: float = 30.0,
        silence_s: float = SILENCE_S,
        prefetch_bytes: int = PREFETCH_BYTES,
    ) -> None:
        self.address = address
        self._tls = tls
        self._metadata = bearer(token)
        self._timeout_s = timeout_s
        self._patience_s = patience_s
        self._silence_s = silence_s
        self._prefetch_bytes = prefetch_bytes
        self._made = _Connection(address, tls, silence_s)

    @property
    def _connection(self) -> _Connection:
        if self._made.process != os.getpid():  # the connection of the process that forked this one
            self._made = _Connection(self.address, self._tls, self._silence_s)
        return self._made

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_made"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._made = _Connection(self.address, self._tls, self._silence_s)

    def __enter__(self) -> BlenderClient:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; fetches under way fail."""
        self._connection.channel.close()

    def open(self, blend: str) -> BlendHandle:
        """A blend by id, as a trainer reads it; raises BlendNotFound."""
        return BlendHandle(self, self.get(blend).id)

    def create(
        self,
        sources: Sequence[Source],
        seed: int = 0,
        schedule: Schedule | None = None,
        *,
        pad: bool = False,
    ) -> BlendRecord:
        """Define a blend by its sources' weights or by a schedule; the same definition has the same id.

        `pad` admits sources with rows of different lengths and pads them to the longest.
        """
        request = pb.CreateRequest(
            sources=[to_message(pb.Source, one) for one in sources],
            seed=seed,
            schedule=_schedule(schedule),
            pad=pad,
        )
        return self._blend(self._connection.configs.Create, request)

    def update(
        self,
        parent: str,
        offset: int,
        weights: Mapping[str, int] | None = None,
        add: Sequence[Source] = (),
        schedule: Schedule | None = None,
        *,
        pad: bool = False,
    ) -> BlendRecord:
        """The blend equal to `parent` before step `offset`, with `weights` by source name from there on.

        A source that `weights` does not name keeps its weight; a `schedule` replaces all weights. An update
        of a padded blend pads too; `pad` admits added sources of other lengths.
        """
        request = pb.UpdateRequest(
            parent=parent,
            offset=offset,
            weights=dict(weights or {}),
            add=[to_message(pb.Source, one) for one in add],
            schedule=_schedule(schedule),
            pad=pad,
        )
        return self._blend(self._connection.configs.Update, request)

    def get(self, blend: str) -> BlendRecord:
        """A blend by id."""
        return self._blend(self._connection.configs.Get, pb.GetRequest(id=blend))

    def list(self, with_retired: bool = False) -> list[BlendRecord]:
        """All blends, oldest first."""
        answer = self._call(self._connection.configs.List, pb.ListRequest(with_retired=with_retired))
        return [to_record(BlendRecord, one) for one in answer.blends]

    def retire(self, blend: str) -> BlendRecord:
        """Release the blend's snapshots for maintenance."""
        return self._blend(self._connection.configs.Retire, pb.RetireRequest(id=blend))

    def describe(self, blend: str) -> Description:
        """Sources, sizes, weights and length of a blend."""
        answer = self._call(self._connection.data.Describe, pb.DescribeRequest(blend=blend))
        return to_record(Description, answer)

    def explain(self, blend: str, offset: int) -> tuple[ExplainedRow, ...]:
        """The documents behind every row of a step."""
        request = pb.ExplainRequest(blend=blend, offset=offset)
        answer = self._call(self._connection.data.Explain, request)
        return tuple(to_record(ExplainedRow, row) for row in answer.rows)

    def fetch(
        self,
        blend: str,
        offset: int = 0,
        steps: int | None = None,
        rank: int = 0,
        ranks: int = 1,
        stride: int = 1,
    ) -> Iterator[Batch]:
        """One `Batch` per step from `offset` on: `steps` of them, or all up to the end of data.

        Rank r of n gets rows [r w/n, (r+1) w/n) of a step of w rows. `stride` keeps every `stride`-th of
        these steps, beginning with the first. Raises EndOfData, after the last step, if the blend ends before
        `steps` steps.
        """
        stop = None if steps is None else offset + steps

        def stream(first: int) -> Any:
            request = pb.FetchRequest(
                blend=blend,
                offset=first,
                steps=0 if stop is None else stop - first,
                rank=rank,
                ranks=ranks,
                stride=stride,
            )
            return self._connection.fetch(request, timeout=self._timeout_s, metadata=self._metadata)

        resumed = Resumed(stream, offset, stop, Patience(self._patience_s), self.address, self._tls)
        with Prefetcher(resumed, self._prefetch_bytes, _size, resumed.cancel) as prefetched:
            yield from batches(prefetched, offset, stride)

    def _blend(self, method: Any, request: Any) -> BlendRecord:
        return to_record(BlendRecord, self._call(method, request))

    def _call(self, method: Any, request: Any) -> Any:
        patience = Patience(self._patience_s)
        while True:
            try:
                return method(request, timeout=self._timeout_s, metadata=self._metadata)
            except grpc.RpcError as error:
                if not patience.again(error):
                    raise to_error(error, self.address, self._tls) from error


def _schedule(schedule: Schedule | None) -> Any:
    return None if schedule is None else to_message(pb.Schedule, schedule)


def _size(rows: Rows) -> int:
    return int(rows.batch.nbytes)
