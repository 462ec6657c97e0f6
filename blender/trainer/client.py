"""A Blender's client: define blends, and iterate over the steps of one from any offset.

    with BlenderClient("127.0.0.1:50051") as blender:
        blend = blender.create([Source("packed.code", weight=6), Source("packed.prose", weight=2)], seed=7)
        for batch in blender.fetch(blend.id, offset=0, steps=1000):
            train(batch.tokens, batch.targets, batch.cu_seqlens, batch.position_ids)

The client holds no state worth saving: `next_offset` of the last batch says where to continue, on any machine
and with any number of ranks. If a Blender goes away, the client retries from there, so a restart goes
unnoticed; it raises only errors that a Blender states, as the classes that the core raises
(`blender.errors`). A thread prefetches, so a step that has arrived costs no wait.

A client may be pickled or forked; it opens a new connection in each process.

Importing this module imports neither Spark nor Dagster nor PyIceberg.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Self

import grpc

from blender.proto.blender.v1 import blender_pb2 as pb
from blender.records import BlendRecord, Description, ExplainedRow
from blender.spec.ranks import RankSlice
from blender.spec.step_range import StepRange
from blender.trainer.reader import PREFETCH_BYTES, Blender, BlendHandle
from blender.wire.address import checked_address
from blender.wire.credentials import Tls, bearer
from blender.wire.keepalive import SILENCE_S, client_options
from blender.wire.messages import to_record, to_request
from blender.wire.patience import Endpoint, Patience
from blender.wire.resume import Resumed
from blender.wire.status import SERVE
from blender.wire.stubs import stub
from blender.wire.wire import parse

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
        self.configs = stub(self.channel, "BlendConfigs")
        self.data = stub(self.channel, "BlendData")
        self.loading = stub(self.channel, "BlendLoading")
        self.fetch = self._stream("BlendData/Fetch", pb.FetchRequest)
        self.load = self._stream("BlendLoading/Load", pb.LoadRequest)

    def _stream(self, method: str, request: Any) -> Any:
        """A method that answers with blocks, which `parse` reads in place."""
        return self.channel.unary_stream(
            f"/blender.v1.{method}",
            request_serializer=request.SerializeToString,
            response_deserializer=parse,
        )


class BlenderClient(Blender):
    """A connection to one Blender, plaintext without `tls`; safe for many threads.

    `timeout_s` bounds every call, and in a fetch the wait for each step. `patience_s` is how long the client
    retries while no Blender answers. `silence_s`, at least 10, is how long a connection may be silent during
    a call before it counts as broken. `prefetch_bytes` bounds what each fetch holds before it is read.
    Raises the classes of `blender.errors`; logs a warning to `blender.client` while no Blender answers.
    """

    command = SERVE
    """What starts a server of this client."""

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
        self.address = checked_address(address)
        self._tls = tls
        self._endpoint = Endpoint(address, tls, self.command)
        self._metadata = bearer(token)
        self._timeout_s = timeout_s
        self._patience_s = patience_s
        self._silence_s = silence_s
        self.prefetch_bytes = prefetch_bytes
        self._opened = _Connection(address, tls, silence_s)

    @property
    def _connection(self) -> _Connection:
        if self._opened.process != os.getpid():  # the connection of the process that forked this one
            self._opened = _Connection(self.address, self._tls, self._silence_s)
        return self._opened

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_opened"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._opened = _Connection(self.address, self._tls, self._silence_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; fetches under way fail."""
        self._connection.channel.close()

    def open(self, blend: str) -> BlendHandle:
        """A blend by id, as a trainer reads it; raises BlendNotFound."""
        return BlendHandle(self, self.get(blend).id)

    def get(self, blend: str) -> BlendRecord:
        return self._blend(self._connection.configs.Get, pb.GetRequest(id=blend))

    def list(self, with_retired: bool = False) -> list[BlendRecord]:
        request = pb.ListRequest(with_retired=with_retired)
        records: list[BlendRecord] = []
        while True:
            page = self._call(self._connection.configs.List, request)
            records += [to_record(BlendRecord, blend) for blend in page.blends]
            if not page.next_page_token:
                return records
            request.page_token = page.next_page_token

    def retire(self, blend: str) -> BlendRecord:
        return self._blend(self._connection.configs.Retire, pb.RetireRequest(id=blend))

    def describe(self, blend: str) -> Description:
        answer = self._call(self._connection.data.Describe, pb.DescribeRequest(blend=blend))
        return to_record(Description, answer)

    def explain(self, blend: str, offset: int) -> tuple[ExplainedRow, ...]:
        request = pb.ExplainRequest(blend=blend, offset=offset)
        answer = self._call(self._connection.data.Explain, request)
        return tuple(to_record(ExplainedRow, row) for row in answer.rows)

    def _create(self, **definition: Any) -> BlendRecord:
        return self._blend(self._connection.configs.Create, to_request(pb.CreateRequest, definition))

    def _update(self, **definition: Any) -> BlendRecord:
        return self._blend(self._connection.configs.Update, to_request(pb.UpdateRequest, definition))

    def _rows(self, blend: str, steps: StepRange, share: RankSlice) -> tuple[Resumed, Callable[[], None]]:
        stop = steps.stop

        def stream(first: int, _waited_s: float) -> Any:  # the server begins anew, and may need all its time
            request = pb.FetchRequest(
                blend=blend,
                offset=first,
                steps=0 if stop is None else stop - first,
                rank=share.rank,
                ranks=share.ranks,
                stride=steps.stride,
            )
            return self._connection.fetch(request, timeout=self._timeout_s, metadata=self._metadata)

        resumed = Resumed(stream, steps.offset, stop, self._patience(), self._endpoint)
        return resumed, resumed.cancel

    def _patience(self) -> Patience:
        return Patience(self._endpoint, self._patience_s)

    def _blend(self, method: Any, request: Any) -> BlendRecord:
        return to_record(BlendRecord, self._call(method, request))

    def _call(self, method: Any, request: Any) -> Any:
        with self._patience() as patience:
            while True:
                try:
                    answer = method(request, timeout=self._timeout_s, metadata=self._metadata)
                    patience.restart()
                    return answer
                except grpc.RpcError as error:
                    if not patience.again(error):
                        raise self._endpoint.error(error) from error
