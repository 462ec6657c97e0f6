"""A process's knowledge of a namespace's log between two routines."""

from __future__ import annotations

import os
import secrets
import socket
from dataclasses import dataclass, field

from blender.global_batches.log.objects import Floor
from blender.global_batches.log.runs import Runs
from blender.global_batches.log.state import SEGMENT_STEPS, LogState
from blender.global_batches.log.step_order import Arrival, Order

CHECKPOINT_VERSIONS = 100

_USUAL_LANES = 1000


@dataclass
class Client:
    """The floors and marks that this process has read; for one thread at a time."""

    floor: Floor = field(default_factory=Floor)
    """The newest floor that it has read."""
    floor_index: int = 0
    """The index of that record; 0 before the first."""
    runs: Runs = field(default_factory=Runs)
    """The open runs after the marks that this process has read."""
    namespace: str | None = None
    """The id of the namespace that the process has opened; None reads the log of any."""
    order: Order = field(default_factory=Arrival)
    """Which lanes the namespace has, and which steps their batches get."""
    checkpoint_versions: int = CHECKPOINT_VERSIONS
    """Versions between two checkpoints, the same for all processes."""
    segment_steps: int = SEGMENT_STEPS
    """Steps of a segment, the same for all processes."""
    longest_tail: int = field(default=0, init=False)
    """Steps after the segments that a state may have before it is read anew."""
    most_lanes: int = field(default=0, init=False)
    """Lanes that a state may know before it is read anew, where lanes come and go."""

    def __post_init__(self) -> None:
        self.note_size(LogState())

    def is_long(self, state: LogState) -> bool:
        """Whether a checkpoint may archive much of a state."""
        n_lanes = len(state.lanes) + len(state.recalled_lanes)
        return len(state.tail) > self.longest_tail or (self.order.lanes is None and n_lanes > self.most_lanes)

    def note_size(self, state: LogState) -> None:
        """Note the size of a state that was just read again; it is long if checkpoints are missing."""
        usual = 2 * self.segment_steps
        self.longest_tail = 2 * len(state.tail) if len(state.tail) > usual else usual
        self.most_lanes = 2 * max(len(state.lanes), _USUAL_LANES)


def incarnation_of_process() -> str:
    """A name for what this process does with a lane, never used again: `host:process:random`."""
    return f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
