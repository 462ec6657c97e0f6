"""The bench of mixtures: its updates are checked before they are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.harness import Report, WrongAnswer
from bench.mixture.updates import STEPS, check, updated
from blender.spec.mixture import Mixture, constant


def test_updates_are_timed_part_by_part_and_checked(tmp_path: Path) -> None:
    report = Report([], "")
    found = updated(report, tmp_path, updates=20, part=5)
    assert len(found.wall_ms) == len(found.cpu_ms) == 4
    assert report.answers[0] == "the last of 20 updates holds every change"


def test_a_blend_that_lost_an_update_is_found_out() -> None:
    first, second, third = constant([100, 100, 100]), constant([2, 3, 4]), constant([3, 5, 7])
    check(Report([], ""), Mixture([first, second, third], [0, STEPS, 2 * STEPS]), 2)
    with pytest.raises(WrongAnswer, match="holds every change"):
        check(Report([], ""), Mixture([first, third], [0, 2 * STEPS]), 2)
