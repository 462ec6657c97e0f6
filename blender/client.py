"""A Blender's client: define blends, and iterate over the steps of one from any offset.

    with BlenderClient("127.0.0.1:50051") as blender:
        blend = blender.create([Source("packed.code", weight=6), Source("packed.prose", weight=2)], seed=7)
        for batch in blender.fetch(blend.id, offset=0, steps=1000):
            train(batch.tokens, batch.cu_seqlens, batch.position_ids)

It holds no state worth saving: `next_offset` of the last batch is where to go on, on any machine, with any
number of ranks. A Blender that goes away is asked again from there, so a restart goes unnoticed; only
what it says on purpose is raised, as the same classes the core raises (`blender.errors`).

Importing this module imports neither Spark nor Dagster nor PyIceberg.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import grpc
import numpy as np
import pyarrow as pa

from blender.arrays import as_numpy
from blender.batch import Batch
from blender.credentials import Tls, bearer
from blender.proto.blender.v1 import blender_pb2 as pb
from blender.proto.blender.v1 import blender_pb2_grpc as pb_grpc
from blender.records import (
    BlendRecord,
    DescribedPiece,
    DescribedSource,
    Description,
    ExplainedRow,
    Segment,
    Source,
)
from blender.status import TRANSIENT, to_error
from blender.wire import WireBlock, from_ipc, parse

__all__ = ["Batch", "BlendRecord", "BlenderClient", "Description", "ExplainedRow", "Source", "Tls"]

_FETCH = "/blender.v1.BlendData/Fetch"
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.05, 2.0
_OPTIONS = [
    ("grpc.max_receive_message_length", -1),  # a block is about 1 MiB, save a row larger than that
    ("grpc.initial_reconnect_backoff_ms", 100),  # the default of one second and growing outlasts a restart
    ("grpc.max_reconnect_backoff_ms", 1000),
]


class BlenderClient:
    """A connection to one Blender, plaintext without `tls`; safe for many threads.

    `timeout_s` bounds every call, of a fetch the wait for its next step; `patience_s` is how long a Blender
    that does not answer is asked again.
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
    ) -> None:
        self.address = address
        self._metadata = bearer(token)
        self._timeout_s = timeout_s
        self._patience_s = patience_s
        self._channel = (
            grpc.insecure_channel(address, options=_OPTIONS)
            if tls is None
            else grpc.secure_channel(address, tls.credentials(), options=_OPTIONS)
        )
        self._configs = pb_grpc.BlendConfigsStub(self._channel)
        self._data = pb_grpc.BlendDataStub(self._channel)
        self._fetch = self._channel.unary_stream(
            _FETCH, request_serializer=pb.FetchRequest.SerializeToString, response_deserializer=parse
        )

    def __enter__(self) -> BlenderClient:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connection; fetches under way fail."""
        self._channel.close()

    def create(self, sources: Sequence[Source], seed: int = 0) -> BlendRecord:
        """Define a blend; the same content, weights and seed again give the same id."""
        request = pb.CreateRequest(sources=[_source_to(one) for one in sources], seed=seed)
        return _record(self._call(self._configs.Create, request))

    def update(
        self, parent: str, offset: int, weights: Mapping[str, int] | None = None, add: Sequence[Source] = ()
    ) -> BlendRecord:
        """The blend equal to `parent` before step `offset`, with `weights` by source name from there on."""
        request = pb.UpdateRequest(
            parent=parent, offset=offset, weights=dict(weights or {}), add=[_source_to(one) for one in add]
        )
        return _record(self._call(self._configs.Update, request))

    def get(self, blend: str) -> BlendRecord:
        """A blend by id."""
        return _record(self._call(self._configs.Get, pb.GetRequest(id=blend)))

    def list(self, with_retired: bool = False) -> list[BlendRecord]:
        """Every blend, the oldest first."""
        answer = self._call(self._configs.List, pb.ListRequest(with_retired=with_retired))
        return [_record(one) for one in answer.blends]

    def retire(self, blend: str) -> BlendRecord:
        """Give the blend's snapshots free for maintenance."""
        return _record(self._call(self._configs.Retire, pb.RetireRequest(id=blend)))

    def describe(self, blend: str) -> Description:
        """Sources, sizes, weights and length of a blend."""
        answer = self._call(self._data.Describe, pb.DescribeRequest(blend=blend))
        return Description(
            blend=answer.blend,
            sources=tuple(_described(one) for one in answer.sources),
            pieces=tuple(
                DescribedPiece(one.offset, tuple(one.weights), one.rows_per_step) for one in answer.pieces
            ),
            steps=answer.steps if answer.HasField("steps") else None,
        )

    def explain(self, blend: str, offset: int) -> tuple[ExplainedRow, ...]:
        """The documents behind every row of a step."""
        answer = self._call(self._data.Explain, pb.ExplainRequest(blend=blend, offset=offset))
        return tuple(
            ExplainedRow(
                row=row.row,
                source=row.source,
                table=row.table,
                ordinal=row.ordinal,
                epoch=row.epoch,
                segments=tuple(Segment(one.doc_id, one.doc_offset, one.length) for one in row.segments),
            )
            for row in answer.rows
        )

    def fetch(
        self, blend: str, offset: int = 0, steps: int | None = None, rank: int = 0, ranks: int = 1
    ) -> Iterator[Batch]:
        """One `Batch` a step from `offset` on: `steps` of them, or all up to the end of data.

        Rank r of n gets rows [r w/n, (r+1) w/n) of a step of w rows. Raises EndOfData where the blend ends
        before `steps` steps, after the last one there is.
        """
        stop = None if steps is None else offset + steps
        patience = self._patience()
        while stop is None or offset < stop:
            request = pb.FetchRequest(
                blend=blend, offset=offset, steps=0 if stop is None else stop - offset, rank=rank, ranks=ranks
            )
            stream = self._fetch(request, timeout=self._timeout_s, metadata=self._metadata)
            try:
                for batch in _steps(stream):
                    offset = batch.next_offset
                    patience = self._patience()
                    yield batch
                return
            except grpc.RpcError as error:
                expired = error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
                if not (expired and offset > request.offset) and not patience(error):
                    raise to_error(error, self.address) from error
            finally:
                stream.cancel()  # of a stream that has ended, nothing

    def _call(self, method: Any, request: Any) -> Any:
        patience = self._patience()
        while True:
            try:
                return method(request, timeout=self._timeout_s, metadata=self._metadata)
            except grpc.RpcError as error:
                if not patience(error):
                    raise to_error(error, self.address) from error

    def _patience(self) -> Callable[[grpc.RpcError], bool]:
        """Whether to ask again after an error; waits a growing, jittered time before it says yes."""
        deadline = time.monotonic() + self._patience_s
        wait = _FIRST_WAIT_S

        def again(error: grpc.RpcError) -> bool:
            nonlocal wait
            if error.code() not in TRANSIENT or time.monotonic() + wait > deadline:
                return False
            time.sleep(wait * random.uniform(0.5, 1.0))  # many readers come back to one restarted server
            wait = min(2 * wait, _LONGEST_WAIT_S)
            return True

        return again


def _steps(blocks: Iterable[WireBlock]) -> Iterator[Batch]:
    """The steps in a stream of blocks: coalesced ones split, a split one joined."""
    parts: list[pa.RecordBatch] = []
    for block in blocks:
        batch = from_ipc(block.payload)
        steps = as_numpy(batch.column("offset"))
        starts = np.flatnonzero(np.diff(steps, prepend=steps[0] - 1))
        for start, end in zip(starts, [*starts[1:], len(steps)], strict=True):
            step = int(steps[start])
            parts.append(batch.slice(start, end - start))
            if step < block.next_offset:
                yield Batch(step, step + 1, parts[0] if len(parts) == 1 else pa.concat_batches(parts))
                parts = []


def _source_to(source: Source) -> Any:
    return pb.Source(
        table=source.table,
        name=source.name,
        snapshot=source.snapshot,
        branch=source.branch,
        tag=source.tag,
        weight=source.weight,
        oversample=source.oversample,
        shuffle=source.shuffle,
        page_rows=source.page_rows,
        window_pages=source.window_pages,
        columns=source.columns,
        content=source.content,
    )


def _record(answer: Any) -> BlendRecord:
    sources = tuple(
        Source(
            table=one.table,
            weight=one.weight,
            name=one.name,
            oversample=one.oversample,
            shuffle=one.shuffle,
            page_rows=one.page_rows,
            window_pages=one.window_pages,
            columns=tuple(one.columns),
            snapshot=one.snapshot,
            content=one.content,
        )
        for one in answer.sources
    )
    return BlendRecord(answer.id, sources, answer.seed, answer.parent, answer.offset, answer.retired)


def _described(one: Any) -> DescribedSource:
    return DescribedSource(
        name=one.name,
        table=one.table,
        snapshot=one.snapshot,
        content=one.content,
        rows=one.rows,
        weight=one.weight,
        oversample=one.oversample,
        shuffle=one.shuffle,
        page_rows=one.page_rows,
        window_pages=one.window_pages,
        columns=tuple(one.columns),
        steps=one.steps if one.HasField("steps") else None,
    )
