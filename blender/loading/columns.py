"""The rows of a step as columns: where each comes from, and the facts that decide its cost.

    step = Buffer(blend).step(1_000)
    step.source                                 # array of int64: the number of each row's source

One buffer serves several graphs, each with facts chosen by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from blender.errors import InvalidRequest
from blender.loading.cost_index import CostIndex, lengths
from blender.loading.costs import Costs
from blender.opened.blend import Blend
from blender.spec.schedule import BlendSchedule
from blender.spec.whole_number import whole_number

Ints = npt.NDArray[np.int64]
Values = TypeVar("Values", bound=npt.NDArray[Any])


@dataclass(frozen=True)
class StepColumns:
    """The rows of a step in the blend's order, a value a row in every column; nobody can write into them."""

    blend: str
    offset: int
    sources: tuple[str, ...]
    """The names of the blend's sources, by number."""
    source: Ints
    epoch: Ints
    ordinal: Ints
    facts: Mapping[str, Costs]
    schedule: BlendSchedule | None = None
    """The schedule of the blend, None for weights."""
    token_bytes: int = 4

    def __post_init__(self) -> None:
        for name in ("source", "epoch", "ordinal"):
            object.__setattr__(self, name, _read_only(getattr(self, name)))
        facts = {name: _read_only(values) for name, values in self.facts.items()}
        object.__setattr__(self, "facts", facts)

    def __len__(self) -> int:
        return len(self.source)

    def choose(self, names: Sequence[str]) -> dict[str, Costs]:
        """The facts of these names; raises InvalidRequest for an unknown one."""
        unknown = [name for name in names if name not in self.facts]
        if unknown:
            raise InvalidRequest(
                f"The rows of step {self.offset:,} have no fact `{unknown[0]}`. Choose among "
                f"{', '.join(f'`{name}`' for name in self.facts)}."
            )
        return {name: self.facts[name] for name in names}


class Buffer:
    """The metadata of a blend's rows; safe for many threads."""

    def __init__(self, blend: Blend) -> None:
        """Make the cost indexes that are missing; raises InvalidRequest for a live source."""
        require_snapshots(blend)
        self.blend = blend
        self._indexes = [CostIndex(source.reader) for source in blend.sources]

    def step(self, offset: int) -> StepColumns:
        """The rows of a step; raises InvalidRequest and EndOfData."""
        offset = whole_number(offset, "offset")
        self.blend.check_step(offset)
        origins = self.blend.order.origins(self.blend.order.row_numbers(offset))
        return StepColumns(
            self.blend.id,
            offset,
            tuple(source.config.name for source in self.blend.sources),
            origins.source,
            origins.epoch,
            origins.ordinal,
            lengths(self._indexes, origins),
            self.blend.config.schedule,
            int(self.blend.sources[0].reader.token_bytes or 4),
        )


def require_snapshots(blend: Blend) -> None:
    """Raise InvalidRequest for a blend with a live source: a cost index is made of a snapshot."""
    live = [source.config.name for source in blend.sources if source.config.live]
    if live:
        raise InvalidRequest(
            f"Source `{live[0]}` of blend {blend.id} is live, and a cost index is made of a snapshot. "
            "Update the blend with a snapshot of it."
        )


def _read_only(values: Values) -> Values:
    view = values.view()
    view.flags.writeable = False
    return view
