"""The pictures of some sources that a bucket needs: their sizes and places, and the files that it encodes.

    loader = PictureLoader(blend, is_own, places, prepare)
    loader.take(plan, bucket=0)                 # PictureHandover

Sizes and positions are leaves of their own in the table, so that a picture's bytes are read by the one bucket
that encodes it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from blender.arrays import as_arrow, as_numpy
from blender.errors import InvalidRequest
from blender.loading.columns import StepColumns
from blender.loading.pictures.encoders import EncoderPlaces
from blender.loading.pictures.handover import PICTURES, SIZES, PictureHandover
from blender.loading.plan import Plan
from blender.loading.spec import LoadingSpec
from blender.opened.blend import Blend
from blender.rows.snapshot_reader import RowRequest, gather
from blender.spec.row_order import Origins
from factory.lake.schemas.images import IMAGES

Ints = npt.NDArray[np.int64]
Prepare = Callable[[StepColumns, pa.RecordBatch], pa.RecordBatch]

_NUMBERS = ("position", "width", "height")
_ROWS = 16  # of which the files are one array at a time, whose offsets count up to 2 GiB


class PictureLoader:
    """Reads the pictures of the sources that `is_own` says; safe for many threads."""

    def __init__(
        self, blend: Blend, is_own: npt.NDArray[np.bool_], places: EncoderPlaces, prepare: Prepare | None
    ) -> None:
        """With `prepare` pictures become patches here, else they stay files."""
        self._blend, self._places, self._prepare = blend, places, prepare
        delivers = np.array([IMAGES in source.config.columns for source in blend.sources])
        self._has_pictures = is_own & delivers

    def take(self, plan: Plan, bucket: int) -> PictureHandover:
        """The pictures of these sources in the rows of a bucket, and all that its ranks encode."""
        self._places.require_like(plan)
        step = plan.step
        own = plan.rows_of_bucket(bucket)
        selection = None
        if plan.images is not None:
            indices = np.flatnonzero(np.isin(plan.images.node, self._places.of_bucket[bucket]))
            selection = plan.images.images.row[indices], plan.images.images.number[indices]
            own = np.union1d(own, selection[0])
        rows = np.sort(own[self._has_pictures[step.source[own]]])
        sizes = self._sizes(step, rows)
        pictures = self._pictures(step, sizes, selection)
        return PictureHandover(sizes, pictures if self._prepare is None else self._prepare(step, pictures))

    def _sizes(self, step: StepColumns, rows: Ints) -> pa.RecordBatch:
        lists = self._read(step, rows, {name: pa.int32() for name in _NUMBERS})
        structs = lists.flatten()
        columns = [*_places(rows, lists), *(structs.field(name).cast(pa.int64()) for name in _NUMBERS)]
        return pa.RecordBatch.from_arrays(columns, schema=SIZES)

    def _pictures(
        self, step: StepColumns, sizes: pa.RecordBatch, selection: tuple[Ints, Ints] | None
    ) -> pa.RecordBatch:
        """The files of the wanted pictures, by default of all that have sizes."""
        row, number = as_numpy(sizes.column("row")), as_numpy(sizes.column("number"))
        if selection is None:
            indices = np.arange(len(row))
        else:
            width = 1 + int(number.max(initial=0))
            indices = np.flatnonzero(np.isin(row * width + number, selection[0] * width + selection[1]))
        rows = np.unique(row[indices])
        groups = [rows[first : first + _ROWS] for first in range(0, max(1, len(rows)), _ROWS)]
        lists = [self._read(step, group, {"content": pa.binary()}) for group in groups]
        contents = pa.concat_arrays([_contents(part) for part in lists])
        counts = np.concatenate([np.diff(as_numpy(part.offsets).astype(np.int64)) for part in lists])
        firsts = np.concatenate([[0], np.cumsum(counts)])
        places = firsts[np.searchsorted(rows, row[indices])] + number[indices]
        sizes_of_files = sizes.take(_indices(indices))
        nulls = pa.nulls(len(indices), pa.string())
        columns = {name: sizes_of_files.column(name) for name in ("row", "number", "width", "height")}
        columns |= {"content": pc.take(contents, _indices(places)), "problem": nulls, "document": nulls}
        return pa.RecordBatch.from_pydict(columns, schema=PICTURES)

    def _read(self, step: StepColumns, rows: Ints, leaves: dict[str, pa.DataType]) -> pa.ListArray:
        """Some leaves of the pictures of rows; nothing else is read."""
        kind = pa.list_(pa.field("element", pa.struct([pa.field(*leaf) for leaf in leaves.items()])))
        if not len(rows):
            return pa.array([], kind)
        origins = Origins(step.source[rows], step.epoch[rows], step.ordinal[rows])
        requests = [
            RowRequest(self._blend.sources[number].reader, origins.ordinal[indices], indices, (IMAGES,))
            for number, indices in origins.by_source()
        ]
        (lists,) = gather(requests, len(rows), [pa.field(IMAGES, kind)])
        return lists


def _contents(lists: pa.ListArray) -> pa.LargeBinaryArray:
    return lists.flatten().field("content").cast(pa.large_binary())


def require_pictures(blend: Blend, spec: LoadingSpec) -> None:
    """Raise InvalidRequest for a blend without pictures, and for context parallel documents."""
    if spec.chunking == "document" and spec.mesh.cp > 1:
        raise InvalidRequest(
            "Context parallel ranks that divide documents pad each of them, and the places of pictures are "
            "of whole rows. Use `chunking` row with pictures."
        )
    if not any(IMAGES in source.config.columns for source in blend.sources):
        raise InvalidRequest(
            f"The spec reads pictures, and no source of blend {blend.id} delivers the column `{IMAGES}`. "
            "Name it in the `columns` of a source whose table has pictures, or leave `images` out of the "
            "spec."
        )


def _places(rows: Ints, lists: pa.ListArray) -> list[pa.Array]:
    """The row and the number of each picture."""
    ends: Ints = as_numpy(lists.offsets).astype(np.int64)
    counts: Ints = ends[1:] - ends[:-1]
    firsts = np.repeat(np.cumsum(counts) - counts, counts)
    return [_indices(np.repeat(rows, counts)), _indices(np.arange(counts.sum()) - firsts)]


def _indices(values: Ints) -> pa.Array:
    return as_arrow(np.asarray(values, dtype=np.int64))
