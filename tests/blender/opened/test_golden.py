"""Rows that published blends serve for ever: another row is another `blender.spec.config.FORMAT`.

The id of a blend identifies its definition; a hash stands for the rows of a step, or of a rank's share of it.
A failure here means that training runs would continue with other data than they began with.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

import pyarrow as pa
import pytest

from blender.catalog.blends import Blends
from blender.records import Source
from blender.spec.ranks import RankSlice
from tests.blender.lakes import CODE, PROSE

FAR = 10**12  # a step that no replay would reach


@dataclass
class Golden:
    """A blend with all its updates; `steps` has a hash of the rows for (step, rank, number of ranks)."""

    sources: list[Source]
    id: str
    steps: dict[tuple[int, int, int], str]
    updates: list[tuple[int, dict[str, int]]] = field(default_factory=list)


GOLDEN = {
    "rows": Golden(
        [Source(CODE, 6, oversample=True, shuffle="row"), Source(PROSE, 2)],
        "bc3494c392c3c3b861317d27601915c7",
        {(0, 0, 1): "8ca6865a73c943ee", (7, 0, 1): "fd8bae1904710757", (149, 0, 1): "49f5a9fbb76ee2cf"},
    ),
    "pages": Golden(
        [Source(CODE, 6, oversample=True, shuffle="page", page_rows=7)],
        "dd7bf859ffe9df7264354bf1b177f6ae",
        {
            (0, 0, 1): "02d9ec882e5486a9",
            (9, 0, 1): "cac3654990ba093d",
            (9, 1, 3): "21b58b4dfd12966f",
            (FAR, 0, 1): "073a8db500656484",
        },
    ),
    "windows": Golden(
        [
            Source(CODE, 5, oversample=True, shuffle="page_window", page_rows=3, window_pages=4),
            Source(PROSE, 3, oversample=True, shuffle="row", columns=("n_tokens", "tokens")),
        ],
        "947bfdc16b53c68ea01a710e06d66309",
        {
            (0, 0, 1): "f904fd8d54e3a2bc",
            (11, 0, 1): "e396938101d18463",
            (11, 3, 4): "b6535cb4187b23d2",
            (FAR, 0, 1): "188e4920c1a8a9a8",
        },
    ),
    "updates": Golden(
        [Source(CODE, 6, oversample=True, shuffle="row"), Source(PROSE, 2, oversample=True)],
        "e79ba4cc1d3cb88f290387909d537ca9",
        {
            (9, 0, 1): "aaf220ff7c72e717",
            (10, 0, 1): "f45ad3554914eded",
            (39, 1, 2): "835d136d1130b7fb",
            (40, 0, 1): "daa7b931055945e0",
            (FAR // 2 - 1, 0, 1): "3a24c7c7ef1c2398",
            (FAR // 2, 0, 1): "95982d21de308faa",
            (FAR, 3, 4): "1748a764e5b86fa2",
        },
        [(10, {CODE: 2}), (10, {CODE: 3, PROSE: 5}), (40, {CODE: 0}), (FAR // 2, {CODE: 1, PROSE: 15})],
    ),
}


def digest(batch: pa.RecordBatch) -> str:
    """A hash of the rows, however Arrow lays them out."""
    return hashlib.blake2b(repr(batch.to_pylist()).encode(), digest_size=8).hexdigest()


@pytest.mark.invariant(
    "No release changes the rows of a published blend; a new order needs a new format number."
)
@pytest.mark.parametrize("golden", GOLDEN.values(), ids=GOLDEN)
def test_golden_steps_never_change(blends: Blends, golden: Golden) -> None:
    stored = blends.create(golden.sources, seed=7)
    for offset, weights in golden.updates:
        stored = blends.update(stored.id, offset, weights)
    assert stored.id == golden.id
    blend = blends.open(golden.id)
    rows = {at: digest(blend.step(at[0], RankSlice(*at[1:]))) for at in golden.steps}
    assert rows == golden.steps
