"""Plans are made once while they are kept, and are the same when they are made again."""

from __future__ import annotations

from typing import cast

import pytest

from blender.errors import EndOfData
from blender.loading.plan import Plan
from blender.loading.roles.planner import PlannerRole


class Counting:
    """A planner whose plan is the number of the step, up to step 9."""

    def __init__(self) -> None:
        self.planned: list[int] = []

    def plan(self, offset: int) -> Plan:
        """A stand-in that only identity matters of."""
        if offset > 9:
            raise EndOfData("The blend ends at step 10.")
        self.planned.append(offset)
        return cast(Plan, offset)


def test_a_plan_is_made_once_while_it_is_kept() -> None:
    counting = Counting()
    role = PlannerRole(counting, kept=2)
    assert [role.plan(offset) for offset in (1, 2, 1, 2, 3, 2, 1)] == [1, 2, 1, 2, 3, 2, 1]
    assert counting.planned == [1, 2, 3, 1]


def test_a_step_that_cannot_be_planned_is_tried_again() -> None:
    role = PlannerRole(Counting())
    for _ in range(2):
        with pytest.raises(EndOfData, match="ends at step 10"):
            role.plan(10)
    assert role.plan(9) == 9
