"""Which step the batches of a lane get, which lanes there are, and where the data end.

    Arrival(lanes=4).steps(state, "rollouts-0", 3)      # range(811, 814): after the committed steps
    Assigned(lanes=4).steps(state, "2", 3)              # range(10, 22, 4): the steps i with i mod 4 = 2

In arrival order (the paper, section 4.2) a step is the place of a batch in the log, so it depends on who was
faster. In assigned order it follows from the lane and the number of the batch in its lane, so the sequence of
steps does not depend on which producer dies or comes first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from blender.global_batches.errors import NamespaceDiffers, UnevenLanes
from blender.global_batches.log.state import END, Lane, LogState
from factory.counted import counted


class Order(Protocol):
    """The order of a namespace."""

    @property
    def lanes(self) -> int | None:
        """The number of lanes; None lets them come and go."""

    def steps(self, state: LogState, lane: str, n: int) -> range:
        """The steps of the next `n` batches of a lane, after a state."""

    def require_lane(self, state: LogState, lane: str) -> None:
        """Raise NamespaceDiffers unless a lane may be opened."""

    def require_one_end(self, state: LogState, lane: str, progress: Lane) -> None:
        """Raise UnevenLanes if a lane that comes so far leaves a step that nobody will ever read."""

    def owing(self, state: LogState) -> list[str]:
        """The lanes, as a sentence names them, that may commit the next step."""

    def has_ended(self, state: LogState) -> bool:
        """Whether no step can follow the steps of a state."""


@dataclass(frozen=True)
class Arrival:
    """Steps are numbered as their batches are committed."""

    lanes: int | None = None

    def steps(self, state: LogState, lane: str, n: int) -> range:  # noqa: ARG002
        """See `Order.steps`."""
        return range(state.steps, state.steps + n)

    def require_lane(self, state: LogState, lane: str) -> None:
        """See `Order.require_lane`."""
        opened = sorted(state.lanes.keys() - {END})
        if self.lanes is not None and lane not in {*opened, END} and len(opened) >= self.lanes:
            raise NamespaceDiffers(
                f"Lane `{lane}` would be one too many: the namespace is for {counted(self.lanes, 'lane')}, "
                f"and has {', '.join(f'`{name}`' for name in opened)}. Take over one of them, or create a "
                "namespace with more lanes."
            )

    def require_one_end(self, state: LogState, lane: str, progress: Lane) -> None:
        """Every batch gets the next step."""

    def owing(self, state: LogState) -> list[str]:
        """See `Order.owing`."""
        opened = {name: lane for name, lane in sorted(state.lanes.items()) if name != END}
        lanes = [f"`{name}`" for name, lane in opened.items() if not lane.closed]
        if self.lanes is not None and len(opened) < self.lanes:
            lanes.append(f"{self.lanes - len(opened)} that nobody has opened")
        return lanes

    def has_ended(self, state: LogState) -> bool:
        """See `Order.has_ended`."""
        n_closed = sum(lane.closed for lane in state.lanes.values())
        return state.is_ended or (self.lanes is not None and n_closed >= self.lanes)


@dataclass(frozen=True)
class Assigned:
    """Steps are dealt to lanes `0` to `lanes - 1` in turn."""

    lanes: int

    def steps(self, state: LogState, lane: str, n: int) -> range:
        """See `Order.steps`."""
        first = self.step(lane, state.lane(lane).sequence)
        return range(first, first + n * self.lanes, self.lanes)

    def require_lane(self, state: LogState, lane: str) -> None:  # noqa: ARG002
        """See `Order.require_lane`."""
        if not lane.isdecimal() or f"{int(lane)}" != lane or int(lane) >= self.lanes:
            raise NamespaceDiffers(
                f"Lane `{lane}` is not one of this namespace, which deals its steps to {self._listed()}. "
                "Write to what it has, or create a namespace of arrival order, whose lanes have any names."
            )

    def require_one_end(self, state: LogState, lane: str, progress: Lane) -> None:
        """See `Order.require_one_end`: the first step that a closed lane lacks ends the data for all."""
        lanes = {**state.lanes, lane: progress}
        next_steps = {name: self.step(name, lanes[name].sequence) for name in lanes}
        ending = min((name for name in lanes if lanes[name].closed), key=next_steps.__getitem__, default=None)
        furthest = max(lanes, key=lambda name: next_steps[name])
        last = next_steps[furthest] - self.lanes
        if ending is not None and last > next_steps[ending]:
            raise UnevenLanes(
                f"Step {last:,} of lane `{furthest}` would never be read: lane `{ending}` ends the data "
                f"before step {next_steps[ending]:,}. Let the producers of all lanes end with the same step."
            )

    def owing(self, state: LogState) -> list[str]:
        """See `Order.owing`."""
        name = str(state.steps % self.lanes)
        if self.has_ended(state):
            return []
        return [f"`{name}`" if name in state.lanes else f"`{name}`, which nobody has opened"]

    def has_ended(self, state: LogState) -> bool:
        """See `Order.has_ended`: the lane of the first step that is missing will never commit it."""
        return state.lane(str(state.steps % self.lanes)).closed

    def _listed(self) -> str:
        """The lanes in a sentence."""
        return "lane `0` alone" if self.lanes == 1 else f"{self.lanes:,} lanes: `0` to `{self.lanes - 1}`"

    def step(self, lane: str, sequence: int) -> int:
        """The step of a batch by its number in its lane."""
        return int(lane) + self.lanes * sequence
