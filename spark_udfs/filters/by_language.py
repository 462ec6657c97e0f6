"""Texts by their detected language, for measures that differ by language."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_udfs.filters import language_id


def by_language(
    texts: pa.Array, languages: Collection[str]
) -> Iterator[tuple[str, npt.NDArray[np.intp], pa.Array]]:
    """Yield each of `languages` that a text is in, with the positions of these texts and the texts."""
    labels, _ = language_id.measure(texts)
    for language in sorted(languages):
        [positions] = np.nonzero(pc.equal(labels, language).fill_null(False).to_numpy(zero_copy_only=False))
        if len(positions):
            yield language, positions, texts.take(pa.array(positions))
