"""The calls that define, describe and read blends, the same through a server and in a trainer's process."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

from blender.batch import Batch
from blender.errors import InvalidBlend, InvalidRequest, UnknownLength
from blender.records import BlendRecord, Description, ExplainedRow, Schedule, Source
from blender.spec.ranks import RankSlice
from blender.spec.step_range import StepRange
from blender.spec.whole_number import whole_number
from blender.steps import StepRows, batches
from blender.trainer.prefetch import Prefetcher
from blender.trainer.states import BLEND
from blender.trainer.step_source import StepSource

PREFETCH_BYTES = 16 << 20  # a second of data for most trainers; a block from a server is 1 MiB


class Blender(ABC):
    """The blends of a lake: `BlenderClient` of `client`, or `LocalBlender` of `local`."""

    prefetch_bytes: int
    """Rows that each fetch holds before they are read."""

    def create(
        self, sources: Sequence[Source], seed: int = 0, schedule: Schedule | None = None, *, pad: bool = False
    ) -> BlendRecord:
        """Define a blend by its sources' weights or by a schedule; the same definition has the same id.

        `pad` admits sources with rows of different lengths and pads them to the longest. Raises InvalidBlend.
        """
        _require_whole({source.name: source.weight for source in sources})
        return self._create(sources=sources, seed=seed, schedule=schedule, pad=pad)

    def update(
        self,
        parent: str,
        offset: int,
        weights: Mapping[str, int] | None = None,
        add: Sequence[Source] = (),
        schedule: Schedule | None = None,
        *,
        pad: bool = False,
    ) -> BlendRecord:
        """The blend equal to `parent` before step `offset`, with `weights` by source name from there on.

        A source that `weights` does not name keeps its weight; a `schedule` replaces all weights. An update
        of a padded blend pads too; `pad` admits added sources of other lengths. Raises InvalidBlend.
        """
        _require_whole({**(weights or {}), **{source.name: source.weight for source in add}})
        given = {"weights": weights or {}, "add": add, "schedule": schedule, "pad": pad}
        return self._update(parent=parent, offset=offset, **given)

    @abstractmethod
    def get(self, blend: str) -> BlendRecord:
        """A blend by id."""

    @abstractmethod
    def list(self, with_retired: bool = False) -> list[BlendRecord]:
        """All blends, oldest first."""

    @abstractmethod
    def retire(self, blend: str) -> BlendRecord:
        """Release the blend's snapshots for maintenance."""

    @abstractmethod
    def describe(self, blend: str) -> Description:
        """Sources, sizes, weights and length of a blend."""

    @abstractmethod
    def explain(self, blend: str, offset: int) -> tuple[ExplainedRow, ...]:
        """The documents behind every row of a step."""

    def fetch(
        self,
        blend: str,
        offset: int = 0,
        steps: int | None = None,
        rank: int | None = None,
        ranks: int = 1,
        stride: int = 1,
    ) -> Iterator[Batch]:
        """One `Batch` per step from `offset` on: `steps` of them, or all up to the end of data.

        Rank r of n gets rows [r w/n, (r+1) w/n) of a step of w rows; more than one of `ranks` needs a `rank`.
        `stride` keeps every `stride`-th of these steps, beginning with the first. Raises InvalidRequest for
        numbers that do not fit, and EndOfData, after the last step, if the blend ends before `steps` steps.
        """
        if rank is None and ranks > 1:
            raise InvalidRequest(
                f"`ranks` is {ranks:,}, and without a `rank` every reader would get the rows of rank 0. "
                "`rank` and `ranks` belong together. Give both or neither."
            )
        return self.read(blend, StepRange(offset, steps, stride), RankSlice(rank or 0, ranks))

    def read(self, blend: str, steps: StepRange, share: RankSlice) -> Iterator[Batch]:
        """As `fetch`, by a range and a share."""
        steps.require_whole()
        return self._batches(blend, steps, share)

    def _batches(self, blend: str, steps: StepRange, share: RankSlice) -> Iterator[Batch]:
        if steps.steps == 0:
            return
        rows, cancel = self._rows(blend, steps, share)
        with Prefetcher(rows, self.prefetch_bytes, _size, cancel) as prefetched:
            yield from batches(prefetched, steps)

    @abstractmethod
    def _create(self, **definition: Any) -> BlendRecord:
        """Create the blend with the fields of a `CreateRequest`."""

    @abstractmethod
    def _update(self, **definition: Any) -> BlendRecord:
        """Create the blend with the fields of an `UpdateRequest`."""

    @abstractmethod
    def _rows(
        self, blend: str, steps: StepRange, share: RankSlice
    ) -> tuple[Iterable[StepRows], Callable[[], None]]:
        """The rows of a fetch, and a function that interrupts a wait for them from another thread."""


def _require_whole(weights: Mapping[str, int]) -> None:
    """Raise InvalidBlend for a weight that is not a whole number, which no message can carry."""
    for name, weight in weights.items():
        if not isinstance(weight, Integral):
            raise InvalidBlend(
                f"The weight of `{name}` is {weight!r}. Weights are whole rows per step, such as 1 and 4."
            )


def _size(rows: StepRows) -> int:
    return int(rows.batch.nbytes)


@dataclass(frozen=True)
class BlendHandle(StepSource[RankSlice]):
    """One blend of a Blender."""

    blender: Blender
    id: str

    def describe(self) -> Description:
        """Sources, sizes, weights and length."""
        return self.blender.describe(self.id)

    @property
    def vocabulary(self) -> int:
        """Size of the tokenizer's vocabulary: every token is below it.

        Raises InvalidRequest if a table of the blend does not say it.
        """
        return self._largest("vocabulary")

    @property
    def sequence_length(self) -> int:
        """Tokens of a full row, with `pad` of the longest; raises InvalidRequest if a table lacks it."""
        return self._largest("sequence_length")

    def _largest(self, name: str) -> int:
        values = [getattr(source, name) for source in self.describe().sources]
        records = self.blender.get(self.id).sources
        silent = [record.table for record, value in zip(records, values, strict=True) if not value]
        if silent:
            raise InvalidRequest(
                f"Of the tables of blend {self.id}, {', '.join(silent)} do not say their `{name}`. Pack them "
                "again with `factory materialize`, then create the blend again."
            )
        return max(values)

    def explain(self, offset: int) -> tuple[ExplainedRow, ...]:
        """The documents behind every row of a step."""
        return self.blender.explain(self.id, offset)

    def fetch(
        self,
        offset: int = 0,
        steps: int | None = None,
        rank: int | None = None,
        ranks: int = 1,
        stride: int = 1,
    ) -> Iterator[Batch]:
        """One `Batch` per step from `offset` on: see `Blender.fetch`."""
        return self.blender.fetch(self.id, offset, steps, rank, ranks, stride)

    def read(self, steps: StepRange, share: RankSlice) -> Iterator[Batch]:
        """As `fetch`, by a range and a share."""
        return self.blender.read(self.id, steps, share)

    def end(self) -> int:
        """The number of steps of the blend; raises UnknownLength for one that does not end."""
        description = self.describe()
        if description.steps is not None:
            return description.steps
        live = [entry.source.name for entry in description.sources if entry.source.live]
        reason = f"`{live[0]}` grows" if live else "all its sources are read again and again (`oversample`)"
        raise UnknownLength(
            f"Blend {self.id} has no last step: {reason}. Give the dataset a `stop`, the step after the last "
            "one to read."
        )

    def state(self, offset: int) -> dict[str, Any]:
        """The blend and the next step."""
        return {"blend": self.id, "offset": offset}

    def offset_of(self, state: Mapping[str, Any]) -> int:
        """The next step of a state of this blend, or of one that it updates at that step or later.

        Raises InvalidRequest for a state of any other blend, and for anything but a state.
        """
        fields = BLEND.require(state)
        blend, offset = fields["blend"], whole_number(fields["offset"], "offset")
        if not isinstance(blend, str):
            raise BLEND.fault(f"its `blend` is of type `{type(blend).__name__}`")
        one = self.id
        while one != blend:
            record = self.blender.get(one)
            if not record.parent:
                raise InvalidRequest(
                    f"The state belongs to blend {blend}, and blend {self.id} is not an update of it. "
                    "Open the blend of the state, or update it."
                )
            if record.offset < offset:
                raise InvalidRequest(
                    f"The state is at step {offset:,} of blend {blend}, from which blend {self.id} differs "
                    f"from step {record.offset:,} on. Update {blend} at step {offset:,} or later."
                )
            one = record.parent
        return offset
