"""The sign of life of a worker: an object that a thread replaces a few times in each term.

The thread also sees that the queue is there, and the process that started the worker. A worker that outlives
its queue or its run works for nobody: it is asked to end. Without its run it ends at once if it does not.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable
from types import TracebackType

from factory.errors import MachineError
from factory.synthesis.queue import Queue

_BEATS_A_TERM = 4
_LOOK_S = 0.5  # between two looks at the parent
_GRACE_S = 10.0  # for the item in progress, once the parent has gone


class Beat:
    """Shows that a worker is alive, from its construction to `end`; also a context manager.

    `at_orphanhood` is called once when the queue is gone, or when process `parent`, if there is one, is no
    longer the worker's parent.
    """

    def __init__(
        self,
        queue: Queue,
        worker: str,
        term_s: float,
        *,
        parent: int | None = None,
        at_orphanhood: Callable[[], None] = lambda: None,
    ) -> None:
        self._queue, self._worker = queue, worker
        self._every_s = term_s / _BEATS_A_TERM
        self._parent, self._orphaned = parent, at_orphanhood
        self._number = 0
        self._ended = threading.Event()
        self._move()
        self._thread = threading.Thread(target=self._run, name="synthesis-beat", daemon=True)
        self._thread.start()

    def __enter__(self) -> Beat:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()

    def end(self) -> None:
        """Stop, and remove the sign."""
        self._ended.set()
        self._thread.join()
        self._queue.bury(self._worker)

    def _move(self) -> None:
        self._number += 1
        body = {"number": self._number, "process": os.getpid()}
        self._queue.beat(self._worker, json.dumps(body).encode())

    def _run(self) -> None:
        last_s = time.monotonic()
        while not self._ended.wait(min(_LOOK_S, self._every_s)):
            if self._parent is not None and os.getppid() != self._parent:
                self._leave()
                return
            if time.monotonic() - last_s >= self._every_s:
                last_s = time.monotonic()
                try:
                    self._move()
                    if not self._queue.exists():
                        self._orphaned()
                        return
                except MachineError:
                    continue  # the next may reach the store; without any, others take the slice

    def _leave(self) -> None:
        if os.getpgrp() == os.getpid():
            os.killpg(os.getpid(), signal.SIGCONT)  # what an item has started may be stopped
        self._orphaned()
        if not self._ended.wait(_GRACE_S):
            os.kill(os.getpid(), signal.SIGKILL)
