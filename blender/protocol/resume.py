"""The rows of a fetch, from however many streams it takes to get them all.

A stream that breaks is opened again at the first step that had not wholly come. What the server says on
purpose is raised at once; a server that is not there, or too busy, is asked again until patience ends.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import grpc

from blender.errors import BlenderFailure
from blender.protocol.credentials import Tls
from blender.protocol.status import is_transient, to_error
from blender.protocol.wire import from_ipc
from blender.steps import Rows

_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.05, 2.0


class Patience:
    """Whether to ask again: for `seconds` from the first failure on, after growing, jittered waits."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._changed = (
            threading.Condition()
        )  # of a lock that may be taken twice: `give_up` comes from `__del__`
        self._given_up = False
        self.restart()

    def restart(self) -> None:
        """There was an answer."""
        self._deadline: float | None = None
        self._wait = _FIRST_WAIT_S

    def give_up(self) -> None:
        """End the wait under way, in another thread, and every later one."""
        with self._changed:
            self._given_up = True
            self._changed.notify_all()

    def again(self, error: grpc.RpcError) -> bool:
        """Whether to ask again after `error`; waits before it says yes."""
        now = time.monotonic()
        self._deadline = now + self._seconds if self._deadline is None else self._deadline
        if not is_transient(error) or now + self._wait > self._deadline:
            return False
        wait = self._wait * random.uniform(0.5, 1.0)  # many readers come back to one restarted server
        self._wait = min(2 * self._wait, _LONGEST_WAIT_S)
        with self._changed:
            return not self._changed.wait_for(lambda: self._given_up, wait)


class Resumed:
    """Rows from step `offset` on: to `stop`, or where that is None to the end of data.

    `open_stream(offset)` is a call that yields `WireBlock`s. Iterate once; `cancel` ends it from any thread.
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
        """End the iteration, whatever it waits for."""
        self._cancelled = True  # first: a stream that is opened meanwhile ends by it
        if self._stream is not None:
            self._stream.cancel()
        self._patience.give_up()

    def __iter__(self) -> Iterator[Rows]:
        while self._left():
            stream = self._stream = self._open(self._offset)
            came = False
            try:
                if self._cancelled:
                    return
                for block in stream:
                    rows = Rows(block.next_offset, from_ipc(block.payload), begins=not came)
                    came = True
                    self._offset = block.next_offset
                    self._patience.restart()
                    yield rows
                if self._stop is None:
                    return
                if self._left():
                    raise BlenderFailure(
                        f"Blender at {self._address} ended a fetch before step {self._offset:,}, without a "
                        "reason. Look at what stands between it and this client."
                    )
            except grpc.RpcError as error:
                expired = came and error.code() is grpc.StatusCode.DEADLINE_EXCEEDED  # of the stream alone
                if self._cancelled:
                    return
                if not expired and not self._patience.again(error):
                    raise to_error(error, self._address, self._tls) from error
            finally:
                stream.cancel()  # of a stream that has ended, nothing

    def _left(self) -> bool:
        return self._stop is None or self._offset < self._stop
