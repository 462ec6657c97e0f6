"""Processes of workers that stand still, amid an item too, while a more pressing run has the machine.

A worker looks for such a run between its items only, and an item may take an hour. So the process that
started the workers stops their process groups with SIGSTOP, and shows the signs of life for them, so that
nobody takes their slices. A stopped process keeps its memory, and the wall clock of its item runs on.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from factory.errors import MachineError
from factory.lake.claims import CoresClaim, most_pressing

_BEATS_A_TERM = 4


@dataclass
class Suspension:
    """Stops and continues process groups by the claims of this machine on its cores.

    `beat` shows the sign of life of a worker by its name; a stopped worker needs one a term.
    """

    priority: int
    term_s: float
    beat: Callable[[str, bytes], None]
    holder: CoresClaim | None = None
    """The claim that the workers give way to, None while they work."""
    _number: int = 0
    _last_s: float = 0.0

    def look(self, workers: Iterable[tuple[str, int]]) -> None:
        """Stop or continue workers, each a name and the id of its process group."""
        holder = most_pressing(above=self.priority)
        if holder is not None:
            for _, group in workers:
                _signal(group, signal.SIGSTOP)
            self._show(name for name, _ in workers)
        elif self.holder is not None:
            for _, group in workers:
                _signal(group, signal.SIGCONT)
        self.holder = holder

    def _show(self, names: Iterable[str]) -> None:
        if self.holder is not None and time.monotonic() - self._last_s < self.term_s / _BEATS_A_TERM:
            return
        self._last_s = time.monotonic()
        self._number += 1
        for name in names:
            with contextlib.suppress(MachineError):  # the next may reach the store
                self.beat(name, json.dumps({"stopped": self._number, "process": os.getpid()}).encode())


def _signal(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, number)
