"""Rows that published blends serve for ever: another row is another `blender.spec.config.FORMAT`.

Each blend is named by its id, which says what it is made of; a hash stands for the rows of a step, or of a
rank's share of it. A failure here means that training runs would go on with other data than they began with.
"""

from __future__ import annotations

import hashlib
from typing import Any

import pyarrow as pa
import pytest

from blender.catalog.blends import Blends
from blender.records import Source
from blender.spec.ranks import RankSlice

CODE, PROSE = "packed.code", "packed.prose"
FAR = 10**12  # a step that no replay would reach

BLENDS: dict[str, tuple[list[dict[str, Any]], list[tuple[int, dict[str, int]]]]] = {
    "pages": ([{"table": CODE, "weight": 6, "oversample": True, "shuffle": "page", "page_rows": 7}], []),
    "windows": (
        [
            {
                "table": CODE,
                "weight": 5,
                "oversample": True,
                "shuffle": "page_window",
                "page_rows": 3,
                "window_pages": 4,
            },
            {
                "table": PROSE,
                "weight": 3,
                "oversample": True,
                "shuffle": "row",
                "columns": ("n_tokens", "tokens"),
            },
        ],
        [],
    ),
    "updates": (
        [
            {"table": CODE, "weight": 6, "oversample": True, "shuffle": "row"},
            {"table": PROSE, "weight": 2, "oversample": True},
        ],
        [(10, {CODE: 2}), (10, {CODE: 3, PROSE: 5}), (40, {CODE: 0}), (FAR // 2, {CODE: 1, PROSE: 15})],
    ),
}


def digest(batch: pa.RecordBatch) -> str:
    """A hash of the rows, however Arrow lays them out."""
    return hashlib.blake2b(repr(batch.to_pylist()).encode(), digest_size=8).hexdigest()


def made(blends: Blends, name: str) -> str:
    """The id of a blend with all its updates."""
    sources, updates = BLENDS[name]
    blend = blends.create([Source(**source) for source in sources], seed=7).id
    for offset, weights in updates:
        blend = blends.update(blend, offset, weights).id
    return blend


# A step, rank and ranks -> a hash of the rows.
GOLDEN: dict[str, tuple[str, dict[tuple[int, int, int], str]]] = {
    "pages": (
        "ff483c04f983792dba54d55ecd55621d",
        {
            (0, 0, 1): "02d9ec882e5486a9",
            (9, 0, 1): "cac3654990ba093d",
            (9, 1, 3): "21b58b4dfd12966f",
            (FAR, 0, 1): "073a8db500656484",
        },
    ),
    "windows": (
        "cab0f978f77792cbcb10fd30146d4e36",
        {
            (0, 0, 1): "f904fd8d54e3a2bc",
            (11, 0, 1): "e396938101d18463",
            (11, 3, 4): "b6535cb4187b23d2",
            (FAR, 0, 1): "188e4920c1a8a9a8",
        },
    ),
    "updates": (
        "cf281f478efe34c902ddd8dbbace696b",
        {
            (9, 0, 1): "aaf220ff7c72e717",
            (10, 0, 1): "f45ad3554914eded",
            (39, 1, 2): "835d136d1130b7fb",
            (40, 0, 1): "daa7b931055945e0",
            (FAR // 2 - 1, 0, 1): "3a24c7c7ef1c2398",
            (FAR // 2, 0, 1): "95982d21de308faa",
            (FAR, 3, 4): "1748a764e5b86fa2",
        },
    ),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_steps_never_change(blends: Blends, name: str) -> None:
    identity, steps = GOLDEN[name]
    assert made(blends, name) == identity
    blend = blends.open(identity)
    assert {at: digest(blend.step(at[0], RankSlice(*at[1:]))) for at in steps} == steps
