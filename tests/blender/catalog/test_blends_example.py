"""The loop of docs/blends.md that mixes by loss runs as printed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from blender import Batch, BlenderClient, Schedule, Source
from factory.settings import Settings
from tests.blender.lakes import CODE, PROSE, serving

PAGE = Path(__file__).parents[3] / "docs" / "blends.md"
NAMES = (CODE, PROSE)


@pytest.fixture(scope="module")
def mix_by_loss() -> Callable[..., str]:
    """The function, from the page's text."""
    (code,) = [
        block for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL) if "def " in block
    ]
    names: dict[str, Any] = {}
    exec(code, names)
    found: Callable[..., str] = names["mix_by_loss"]
    return found


def test_a_source_with_higher_loss_gets_more_rows_and_runs_repeat(
    lake: Settings, mix_by_loss: Callable[..., str]
) -> None:
    trained: list[tuple[int, list[int], list[int]]] = []

    def train(batch: Batch) -> dict[str, float]:
        trained.append((batch.offset, batch.source.tolist(), batch.ordinal.tolist()))
        return {NAMES[number]: (0.8, 0.2)[number] for number in np.unique(batch.source)}

    with serving(lake.home) as server, BlenderClient(server.address) as blender:
        shares = dict.fromkeys(NAMES, 0.5)
        schedule = Schedule(8, ((0, shares),), "constant")
        blend = blender.create([Source(name, oversample=True) for name in NAMES], 7, schedule).id
        last = mix_by_loss(blender, blend, shares, train, rows_per_step=8, every=2, steps=20)
        assert [stored_blend.id for stored_blend in blender.list()] == [last]
        again = [
            (batch.offset, batch.source.tolist(), batch.ordinal.tolist())
            for batch in blender.fetch(last, steps=20)
        ]
    assert trained == again
    counts = [Counter(source) for _, source, _ in trained]
    assert counts[0] == {0: 4, 1: 4}
    assert counts[-1] == {0: 8}
    between_updates = [counts[begin][0] + counts[begin + 1][0] for begin in range(0, 20, 2)]
    assert between_updates[:5] == [8, 10, 13, 13, 15]  # of 16: .5, .64, .77, .85, .91 are due
