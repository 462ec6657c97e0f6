"""The blends of a run by the steps that they hold for: a new mixture in mid-run begins a stretch.

    stretches = Stretches(blend="4f1c...", spec="c7a9...")
    stretches.extend(1_000, blend="8d02...", spec="77b1...")
    stretches.of_step(999).blend                     # "4f1c..."

A stretch begins behind every step that a reader of this process has got, so no step is read under two blends.
"""

from __future__ import annotations

import mmap
import os
import threading
from dataclasses import dataclass
from typing import Any

from blender.errors import InvalidRequest


@dataclass(frozen=True)
class Stretch:
    """The steps of a run from `first` on, under one blend."""

    first: int
    blend: str
    spec: str
    """The id of the spec over that blend."""


class Stretches:
    """The stretches of a run, in order; safe for many threads."""

    def __init__(self, blend: str, spec: str) -> None:
        self._stretches = [Stretch(0, blend, spec)]
        self._next_step = 0  # after all that readers have got
        self._is_copied = False
        self._start()

    def __getstate__(self) -> dict[str, Any]:
        self._is_copied = True
        return {"_stretches": self._stretches, "_next_step": self._next_step, "_is_copied": False}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._start()

    def _start(self) -> None:
        self.change = threading.Lock()
        """Held while somebody decides on the next stretch."""
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._forks = _Forks(len(self._stretches))

    @property
    def last(self) -> Stretch:
        """The stretch without an end."""
        return self._stretches[-1]

    def of_step(self, offset: int) -> Stretch:
        """The stretch of a step."""
        with self._lock:
            return next(stretch for stretch in reversed(self._stretches) if stretch.first <= offset)

    def end_of(self, stretch: Stretch) -> int | None:
        """The first step of the next stretch; None for the last one."""
        with self._lock:
            return next((later.first for later in self._stretches if later.first > stretch.first), None)

    def give(self, stretch: Stretch, offset: int) -> bool:
        """Count a step that a reader gets under `stretch`; False if a later stretch has it by now."""
        if os.getpid() != self._process:
            self._forks.require_no_change(len(self._stretches))
        with self._lock:
            if any(stretch.first < later.first <= offset for later in self._stretches):
                return False
            self._next_step = max(self._next_step, offset + 1)
            return True

    def require_room(self, offset: int) -> None:
        """Raise InvalidRequest if a stretch cannot begin at step `offset`."""
        with self._lock:
            self._require_room(offset)

    def extend(self, offset: int, blend: str, spec: str) -> None:
        """Begin a stretch at step `offset`; raises InvalidRequest for a step in the past, and for copies.

        The same stretch a second time changes nothing.
        """
        with self._lock:
            if Stretch(offset, blend, spec) == self.last:
                return
            self._require_room(offset)
            self._forks.announce(len(self._stretches) + 1)
            if self._forks.read:  # one has begun meanwhile, and has not seen the number
                self._forks.announce(len(self._stretches))
                self._require_room(offset)
            self._stretches.append(Stretch(offset, blend, spec))

    def _require_room(self, offset: int) -> None:
        if self._is_copied or self._forks.read:
            raise InvalidRequest(
                "This loader was copied into other processes, such as workers of a DataLoader, which would "
                "read on with the old weights. Read without workers, or start them with `spawn` and reweight "
                "in each."
            )
        last = self.last
        if offset < max(self._next_step, last.first + 1 if len(self._stretches) > 1 else 0):
            raise InvalidRequest(
                f"New weights from step {offset:,} on are in the past: steps up to "
                f"{max(self._next_step - 1, last.first):,} are read, some of them ahead, or have new weights "
                "already. Give a later step, or go back to an earlier state with a new loader."
            )


class _Forks:
    """The facts that a process and its forks share: whether a fork reads, and the number of stretches.

    Forks are copies that Python does not make. Each side writes before it looks, so that one of them sees
    the other.
    """

    def __init__(self, n_stretches: int) -> None:
        self._memory = mmap.mmap(-1, 9)  # shared with forks
        self.announce(n_stretches)

    @property
    def read(self) -> bool:
        """Whether a fork has read a step."""
        return self._memory[0] == 1

    def announce(self, n_stretches: int) -> None:
        """Let forks know the number of stretches."""
        self._memory[1:] = n_stretches.to_bytes(8, "little")

    def require_no_change(self, n_stretches: int) -> None:
        """Note that a fork reads; raise InvalidRequest if there are more stretches than it knows."""
        self._memory[0] = 1
        if int.from_bytes(self._memory[1:], "little") != n_stretches:
            raise InvalidRequest(
                "The weights were changed in the process that this worker was forked from, and the worker "
                "would read on with the old ones. Change them before the loop begins, or read without "
                "workers."
            )
