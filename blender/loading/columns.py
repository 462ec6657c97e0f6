"""The rows of a step as columns: where each comes from, and the facts that decide its cost.

    step = Buffer(blend).step(1_000)
    step.source                                 # array of int64: the number of each row's source
    step = Buffer(blend, ImageInput()).step(1_000)
    step.facts["n_patches"]                     # array of uint64: patches of all pictures of each row

One buffer serves several graphs, each with facts chosen by name. With pictures, a row has the length that a
model sees: its placeholders are replaced by the tokens that its pictures become.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from blender.arrays import as_arrow
from blender.errors import InvalidRequest
from blender.loading.buffer_summary import BufferSummary
from blender.loading.cost_index import CostIndex, lengths
from blender.loading.costs import Costs, sums
from blender.loading.image_index import IMAGES, ImageIndex, has_images, pictures
from blender.loading.image_input import ImageInput
from blender.loading.image_plan import StepImages
from blender.opened.blend import Blend
from blender.opened.source import OpenedSource
from blender.records import Schedule
from blender.spec.schedule import BlendSchedule, blend_schedule
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
    images: StepImages | None = None
    """The pictures of the rows; None for a spec that takes none."""
    part_of: StepColumns | None = None
    """The step of which a graph takes these rows alone; None for a step."""
    rows: Ints | None = None
    """The places of the rows in that step."""

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

    def summary(self) -> BufferSummary:
        """The rows and their pictures as record batches."""
        rows = {name: getattr(self, name) for name in ("source", "epoch", "ordinal")}
        pictures = None
        if self.images is not None:
            places = {name: getattr(self.images, name) for name in ("row", "number", "width", "height")}
            pictures = _batch({**places, **self.images.facts})
        return BufferSummary(self.blend, self.offset, self.sources, _batch({**rows, **self.facts}), pictures)

    def name_of(self, row: int) -> str:
        """A row by its place in the step and in its source, as the begin of a sentence."""
        source = self.sources[self.source[row]]
        return (
            f"Row {self.numbers[row]:,} of step {self.offset:,} (ordinal {self.ordinal[row]:,} of source "
            f"`{source}`)"
        )

    def require_followed(self, schedule: Schedule) -> None:
        """Raise InvalidRequest unless the blend follows a schedule, InvalidBlend for an unknown source."""
        if not isinstance(schedule, Schedule):
            raise InvalidRequest(
                f"`mix` got a {type(schedule).__name__}. Pass a `Schedule`, or None for the blend's mixture."
            )
        if blend_schedule(schedule, self.sources) != self.schedule:
            raise InvalidRequest(
                f"Blend {self.blend} does not follow this schedule. A plan changes no blend: make the "
                "spec with `LoadingSpec.scheduled`, which updates it."
            )

    def require_each_once(self, counts: Ints) -> None:
        """Raise InvalidRequest for a row in none of the graphs of a plan, or in two; `counts` has them."""
        for row in np.flatnonzero(counts != 1)[:1].tolist():
            raise InvalidRequest(
                f"{self.name_of(row)} is in {counts[row]} of the joined graphs, and {(counts != 1).sum():,} "
                "rows are not in one. Plan each row once: balance a graph of the other rows (`step.only`), "
                "and `join` it."
            )

    @property
    def whole(self) -> StepColumns:
        """The step with all of its rows."""
        return self if self.part_of is None else self.part_of

    @property
    def numbers(self) -> Ints:
        """The place of each row in the whole step."""
        return np.arange(len(self)) if self.rows is None else self.rows

    def only(self, sources: Collection[str] = (), rows: npt.ArrayLike | None = None) -> StepColumns:
        """The rows of some sources, or the ones that `rows` marks by True, for a graph of their own.

        The plan of a step has all of its rows, so other graphs take the others (`DGraph.join`). Raises
        InvalidRequest for an unknown source, and for other marks than one a row.
        """
        unknown = [name for name in sources if name not in self.sources]
        if unknown:
            raise InvalidRequest(
                f"Step {self.offset:,} has no source `{unknown[0]}`. Choose among "
                f"{', '.join(f'`{name}`' for name in self.sources)}."
            )
        marks = np.ones(len(self), dtype=bool) if rows is None else np.asarray(rows)
        if marks.shape != (len(self),) or marks.dtype != np.bool_:
            raise InvalidRequest(
                f"`only` got {marks.dtype} of shape {marks.shape} for {len(self):,} rows. Mark each row by "
                "True or False."
            )
        if sources:
            marks = marks & np.isin(self.source, [self.sources.index(name) for name in sources])
        columns = {name: getattr(self, name)[marks] for name in ("source", "epoch", "ordinal")}
        return replace(
            self,
            **columns,
            facts={name: values[marks] for name, values in self.facts.items()},
            images=None if self.images is None else self.images.of_rows(marks),
            part_of=self.whole,
            rows=self.numbers[marks],
        )


class Buffer:
    """The metadata of a blend's rows; safe for many threads."""

    def __init__(self, blend: Blend, images: ImageInput | None = None) -> None:
        """Make the indexes that are missing: of lengths, and with `images` of pictures.

        Raises InvalidRequest for a live source, and for `images` of a blend that delivers none.
        """
        require_snapshots(blend)
        self.blend, self._images = blend, images
        self._indexes = [CostIndex(source.reader) for source in blend.sources]
        self._image_indexes = {} if images is None else _image_indexes(blend)

    def step(self, offset: int) -> StepColumns:
        """The rows of a step; raises InvalidRequest and EndOfData."""
        offset = whole_number(offset, "offset")
        self.blend.check_step(offset)
        origins = self.blend.order.origins(self.blend.order.row_numbers(offset))
        step = StepColumns(
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
        if self._images is None:
            return step
        return with_images(step, pictures(self._image_indexes, origins), self._images)


def with_images(step: StepColumns, images: StepImages, image_input: ImageInput) -> StepColumns:
    """A step of text with the pictures of its rows, and with the lengths of rows that a model sees.

    Adds the facts `n_images`, `n_patches` and `n_pixels`. Raises InvalidRequest for a row with a picture
    that is not one document, or has fewer tokens than pictures.
    """
    n, n_tokens = len(step), step.facts["n_tokens"]
    n_patches = image_input.n_patches(images.width, images.height)
    of_picture = {
        "n_patches": n_patches.astype(np.uint64),
        "n_pixels": (images.width * images.height).astype(np.uint64),
        "n_tokens": image_input.tokens_of(n_patches).astype(np.uint64),
    }
    of_row = {name: sums(values, images.row, n) for name, values in of_picture.items()}
    of_row["n_images"] = np.bincount(images.row, minlength=n).astype(np.uint64)
    has_pictures = of_row["n_images"] > 0
    squared_lengths = step.facts["squared_lengths"]
    wrong = has_pictures & ((squared_lengths != n_tokens * n_tokens) | (n_tokens < of_row["n_images"]))
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise InvalidRequest(
            f"The row of ordinal {step.ordinal[row]:,} of source `{step.sources[step.source[row]]}` has "
            f"{of_row['n_images'][row]:,} pictures, and is not one document with a token for each. Pack the "
            "dataset again as one of images."
        )
    n_seen = n_tokens - of_row["n_images"] + of_row.pop("n_tokens")
    facts = {
        **step.facts,
        **of_row,
        "n_tokens": n_seen,
        "squared_lengths": np.where(has_pictures, n_seen * n_seen, squared_lengths),
    }
    return replace(step, facts=facts, images=replace(images, facts=of_picture))


def delivers_images(source: OpenedSource) -> bool:
    """Whether the rows of a source come with their pictures."""
    return IMAGES in source.config.columns and has_images(source.reader)


def _image_indexes(blend: Blend) -> dict[int, ImageIndex]:
    """The indexes of the sources that deliver pictures, by the number of their source."""
    indexes = {
        number: ImageIndex(source.reader)
        for number, source in enumerate(blend.sources)
        if delivers_images(source)
    }
    if not indexes:
        raise InvalidRequest(
            f"The spec takes pictures, and no source of blend {blend.id} delivers them. Make the blend with "
            "`columns: [tokens, images]` of a dataset of images, or leave `images` out of the spec."
        )
    return indexes


def require_snapshots(blend: Blend) -> None:
    """Raise InvalidRequest for a blend with a live source: a cost index is made of a snapshot."""
    live = [source.config.name for source in blend.sources if source.config.live]
    if live:
        raise InvalidRequest(
            f"Source `{live[0]}` of blend {blend.id} is live, and a cost index is made of a snapshot. "
            "Update the blend with a snapshot of it."
        )


def _batch(columns: Mapping[str, npt.NDArray[Any]]) -> pa.RecordBatch:
    arrays = [as_arrow(values) for values in columns.values()]
    return pa.RecordBatch.from_arrays(arrays, names=list(columns))


def _read_only(values: Values) -> Values:
    view = values.view()
    view.flags.writeable = False
    return view
