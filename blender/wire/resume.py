"""The rows of a fetch, resumed over as many streams as it takes.

A broken stream is reopened at the first step that did not arrive whole. Errors that the server states are
raised at once; a server that is unreachable or busy is asked again until patience runs out, unless another
one takes its stream over.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import grpc

from blender.errors import BlenderFailure
from blender.ipc import from_ipc
from blender.steps import StepRows
from blender.wire.patience import Endpoint, Patience
from blender.wire.status import is_transient


class Resumed:
    """Rows from step `offset` up to `stop`; None reads to the end of data.

    `open_stream(offset, waited_s)` starts a call that yields `ReceivedBlock`s; `waited_s` are the seconds
    that earlier streams, which passed their deadline, have waited for the first block. `take_over` is asked
    after a failure whether another server continues at once. Iterate once; any thread may `cancel`.
    """

    def __init__(
        self,
        open_stream: Callable[[int, float], Any],
        offset: int,
        stop: int | None,
        patience: Patience,
        endpoint: Endpoint,
        take_over: Callable[[], bool] = lambda: False,
    ) -> None:
        self._open = open_stream
        self._offset, self._stop = offset, stop
        self._patience = patience
        self._endpoint = endpoint
        self._take_over = take_over
        self._stream: Any = None
        self._cancelled = False

    def cancel(self) -> None:
        """End the iteration, also while it waits."""
        self._cancelled = True  # first, so that a stream opened meanwhile ends too
        if self._stream is not None:
            self._stream.cancel()
        self._patience.give_up()

    def __iter__(self) -> Iterator[StepRows]:
        waited_s = 0.0
        while self._has_more():
            stream = self._stream = self._open(self._offset, waited_s)
            arrived, waited_s, wait_began = False, 0.0, time.monotonic()
            try:
                if self._cancelled:
                    return
                for block in stream:
                    rows = StepRows(block.next_offset, from_ipc(block.payload), begins=not arrived)
                    arrived = True
                    self._offset = block.next_offset
                    self._patience.restart()
                    yield rows
                    wait_began = time.monotonic()
                if self._stop is None:
                    return
                if self._has_more():
                    raise BlenderFailure(
                        f"Blender at {self._endpoint.address} ended a fetch before step {self._offset:,} "
                        "without a reason. Check the proxies between it and this client."
                    )
            except grpc.RpcError as error:
                if self._cancelled:
                    return
                expired = error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
                if expired and arrived:  # the deadline is the stream's alone
                    waited_s = time.monotonic() - wait_began
                elif (expired or is_transient(error)) and self._take_over():
                    continue
                elif not self._patience.again(error):
                    raise self._endpoint.error(error) from error
            finally:
                stream.cancel()  # does nothing once the stream has ended

    def _has_more(self) -> bool:
        return self._stop is None or self._offset < self._stop
