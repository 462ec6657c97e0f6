"""Plans of the steps that loaders and constructors work at, each made once while it is kept."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Protocol

from blender.loading.plan import Plan

KEPT = 8  # plans: a step, those ahead of it, and those of ranks that lag behind


class Plans(Protocol):
    """What makes plans, such as `blender.loading.run_planner.RunPlanner`."""

    def plan(self, offset: int) -> Plan:
        """The plan of a step."""


class PlannerRole:
    """The last `kept` plans that were asked for; safe for many threads.

    A dropped plan is made again and is the same.
    """

    def __init__(self, planner: Plans, kept: int = KEPT) -> None:
        self._planner, self._most = planner, kept
        self._plans: OrderedDict[int, Plan] = OrderedDict()
        self._lock = threading.Lock()

    def plan(self, offset: int) -> Plan:
        """The plan of a step; raises InvalidRequest and EndOfData."""
        with self._lock:
            if offset in self._plans:
                self._plans.move_to_end(offset)
                return self._plans[offset]
        plan = self._planner.plan(offset)
        with self._lock:
            self._plans[offset] = plan
            while len(self._plans) > self._most:
                self._plans.popitem(last=False)
        return plan
