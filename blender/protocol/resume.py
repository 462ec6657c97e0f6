"""The rows of a fetch, resumed over as many streams as it takes.

A broken stream is reopened at the first step that did not arrive whole. Errors that the server states are
raised at once; a server that is unreachable or busy is asked again until patience runs out.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import grpc

from blender.errors import BlenderFailure
from blender.ipc import from_ipc
from blender.protocol.credentials import Tls
from blender.protocol.status import is_transient, to_error
from blender.steps import StepRows

_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.05, 2.0


class Patience:
    """Decides whether to retry: for `seconds` after the first failure, with growing, jittered waits."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._changed = threading.Condition()  # its lock is reentrant: `__del__` may call `give_up`
        self._given_up = False
        self.restart()

    def restart(self) -> None:
        """Start over after an answer."""
        self._deadline: float | None = None
        self._wait = _FIRST_WAIT_S

    def give_up(self) -> None:
        """End the current wait, which another thread is in, and every later one."""
        with self._changed:
            self._given_up = True
            self._changed.notify_all()

    def again(self, error: grpc.RpcError) -> bool:
        """Return whether to retry after `error`; waits before it returns True."""
        now = time.monotonic()
        self._deadline = now + self._seconds if self._deadline is None else self._deadline
        if not is_transient(error) or now + self._wait > self._deadline:
            return False
        wait = self._wait * random.uniform(0.5, 1.0)  # many readers return to one restarted server
        self._wait = min(2 * self._wait, _LONGEST_WAIT_S)
        with self._changed:
            return not self._changed.wait_for(lambda: self._given_up, wait)


class Resumed:
    """Rows from step `offset` up to `stop`; None reads to the end of data.

    `open_stream(offset)` starts a call that yields `ReceivedBlock`s. Iterate once; any thread may `cancel`.
    """

    def __init__(
        self,
        open_stream: Callable[[int], Any],
        offset: int,
        stop: int | None,
        patience: Patience,
        address: str,
        tls: Tls | None = None,
    ) -> None:
        self._open = open_stream
        self._offset, self._stop = offset, stop
        self._patience = patience
        self._address, self._tls = address, tls
        self._stream: Any = None
        self._cancelled = False

    def cancel(self) -> None:
        """End the iteration, whatever it is waiting for."""
        self._cancelled = True  # first, so that a stream opened meanwhile ends too
        if self._stream is not None:
            self._stream.cancel()
        self._patience.give_up()

    def __iter__(self) -> Iterator[StepRows]:
        while self._has_more():
            stream = self._stream = self._open(self._offset)
            arrived = False
            try:
                if self._cancelled:
                    return
                for block in stream:
                    rows = StepRows(block.next_offset, from_ipc(block.payload), begins=not arrived)
                    arrived = True
                    self._offset = block.next_offset
                    self._patience.restart()
                    yield rows
                if self._stop is None:
                    return
                if self._has_more():
                    raise BlenderFailure(
                        f"Blender at {self._address} ended a fetch before step {self._offset:,} without a "
                        "reason. Check the proxies between it and this client."
                    )
            except grpc.RpcError as error:
                # A deadline that passes after rows arrived is the stream's alone.
                expired = arrived and error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
                if self._cancelled:
                    return
                if not expired and not self._patience.again(error):
                    raise to_error(error, self._address, self._tls) from error
            finally:
                stream.cancel()  # does nothing once the stream has ended

    def _has_more(self) -> bool:
        return self._stop is None or self._offset < self._stop
