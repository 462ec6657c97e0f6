"""Pictures of a step made into patches, by the rules of its spec.

    preparer = Preparer(blend, spec.images, spec.pictures)      # ConfigurationError without Pillow
    preparer.prepare(plan.step, pictures)      # RecordBatch of PICTURES: `content` is patches, not a file

The same pictures give the same patches in any process: a loader prepares them, or a constructor.
"""

from __future__ import annotations

import logging
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from blender.arrays import as_numpy
from blender.errors import InvalidRequest
from blender.loading.columns import StepColumns
from blender.loading.image_input import ImageInput
from blender.loading.pictures.handover import PICTURES
from blender.loading.pictures.rules import PictureRules
from blender.loading.pictures.transforms import apply, function_of
from blender.opened.blend import Blend
from factory.errors import ConfigurationError

_LOG = logging.getLogger("blender.loading")
_THREADS = min(8, os.cpu_count() or 1)  # that decode the pictures of a step
_FEW = 4  # pictures, for which starting threads costs more than it gains
_REMEMBERED = 4_096  # replaced pictures that were logged
_GRAY = 128


@dataclass(frozen=True)
class _Picture:
    """A picture of a step, for messages."""

    row: int
    number: int
    source: int
    ordinal: int


class Preparer:
    """Makes patches of pictures; safe for many threads."""

    def __init__(self, blend: Blend, images: ImageInput, rules: PictureRules) -> None:
        """Raises ConfigurationError without Pillow, and InvalidRequest for a transform that is refused."""
        require_pillow()
        self._blend, self._images, self._rules = blend, images, rules
        self._transforms = [(transform, function_of(transform)) for transform in rules.transforms]
        self._logged: set[tuple[int, int, int]] = set()
        self._lock = threading.Lock()
        self.n_gray = 0
        """Pictures that became gray, each time that a step was made."""

    def prepare(self, step: StepColumns, pictures: pa.RecordBatch) -> pa.RecordBatch:
        """The pictures with patches as `content`; raises InvalidRequest by the rules of the spec."""
        from blender.loading.pictures.decode import PictureProblem, PlannedSize, pixels_of
        from blender.loading.pictures.patches import patches_of

        images, rules = self._images, self._rules
        widths, heights = (as_numpy(pictures.column(name)) for name in ("width", "height"))
        across, down = images.grid(widths, heights)

        def patches_at(index: int, content: pa.Scalar) -> tuple[memoryview, str | None, str | None]:
            size = int(across[index]) * images.patch, int(down[index]) * images.patch
            picture = self._named(step, pictures, index)
            problem = document = None
            try:
                target = PlannedSize(*size, int(widths[index]), int(heights[index]))
                pixels = pixels_of(content.as_buffer(), target, rules.background, rules.most_pixels)
            except PictureProblem as error:
                problem, document = str(error), document_of(self._blend, picture.source, picture.ordinal)
                pixels = self._replacement(step, picture, problem, document, size)
            else:
                place = (self._blend.config.seed, step.offset, picture.row, picture.number)
                pixels = apply(self._transforms, pixels, *place)
            return patches_of(pixels, images.patch, images.merge).data.cast("B"), problem, document

        files = pictures.column("content")
        if len(files) < _FEW:
            rows = list(map(patches_at, range(len(files)), files))
        else:  # decoders let other threads run
            with ThreadPoolExecutor(_THREADS, thread_name_prefix="pictures") as threads:
                rows = list(threads.map(patches_at, range(len(files)), files))
        contents, problems, documents = ([row[part] for row in rows] for part in range(3))
        columns = {name: pictures.column(name) for name in PICTURES.names}
        columns["content"] = pa.array(contents, pa.large_binary())
        columns["problem"] = pa.array(problems, pa.string())
        columns["document"] = pa.array(documents, pa.string())
        return pa.RecordBatch.from_pydict(columns, schema=PICTURES)

    def _replacement(
        self, step: StepColumns, picture: _Picture, problem: str, document: str, size: tuple[int, int]
    ) -> np.ndarray[tuple[int, int, int], np.dtype[np.uint8]]:
        """The gray picture, counted and logged; raises InvalidRequest where the spec says so."""
        source = step.sources[picture.source]
        fact = (
            f"Picture {picture.number} of document {document} (row {picture.ordinal:,} of source `{source}`) "
            f"{problem}"
        )
        if self._rules.on_failure == "raise":
            raise InvalidRequest(
                f'{fact}. Leave the document out of the dataset, or set `on_failure="gray"` in the pictures '
                "of the spec."
            )
        key = picture.source, picture.ordinal, picture.number
        with self._lock:
            self.n_gray += 1
            is_new = key not in self._logged and len(self._logged) < _REMEMBERED
            if is_new:
                self._logged.add(key)
        if is_new:
            _LOG.warning("%s, so step %d has a gray one.", fact, step.offset)
        return np.full((size[1], size[0], 3), _GRAY, dtype=np.uint8)

    @staticmethod
    def _named(step: StepColumns, pictures: pa.RecordBatch, index: int) -> _Picture:
        row = int(as_numpy(pictures.column("row"))[index])
        number = int(as_numpy(pictures.column("number"))[index])
        return _Picture(row, number, int(step.source[row]), int(step.ordinal[row]))


def document_of(blend: Blend, source: int, ordinal: int) -> str:
    """The id of the document that begins a row, read for a message alone."""
    segments = blend.sources[source].segments(np.array([ordinal]))[0]
    return segments[0].doc_id if segments else "without an id"


def require_pillow() -> None:
    """Raise ConfigurationError where Pillow is not installed."""
    try:
        import PIL.Image  # noqa: F401
    except ImportError as error:
        raise ConfigurationError(
            "The spec reads pictures, and Pillow is not installed where they are decoded. Install the extra: "
            "`pip install 'corpus-factory[images]'`."
        ) from error
