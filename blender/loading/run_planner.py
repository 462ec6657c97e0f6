"""Plans of a run: its first ones are made twice, and every step has the readers of step 0.

    planner = RunPlanner(Planner(blend, spec))
    planner.plan(1_000)                         # InvalidStrategy if the strategy draws at random

A strategy is a function of yours. A strategy that is not a pure function of the step gives ranks rows of two
plans, and one with a level that changes by step has readers unknown to the ranks: a rank reads the same
bucket for the entire run. Both lose rows without a word, so both are refused.
"""

from __future__ import annotations

import threading

from blender.errors import InvalidStrategy
from blender.loading.plan import Plan
from blender.loading.planner import Planner
from blender.loading.tree import LEVELS

TWICE = 8  # plans made twice besides that of step 0: of the first steps that are asked for


class RunPlanner:
    """Plans of one run; safe for many threads."""

    def __init__(self, planner: Planner) -> None:
        """Raises InvalidRequest for a spec that cannot be planned."""
        self._planner = planner
        self._left = 1 + TWICE
        self._lock = threading.Lock()
        self.first = self._repeatable(0)
        """The plan of step 0."""
        if self.first.groups is not None:
            raise InvalidStrategy(
                f"Strategy `{planner.spec.strategy}` groups ranks anew at every step, and loaders deliver to "
                "the same readers at every step. Take its plans from `open_planner`, or use `llm`."
            )

    def plan(self, offset: int) -> Plan:
        """The plan of a step.

        Raises the errors of `Planner.plan`, and InvalidStrategy for a second plan that differs and for other
        readers than at step 0.
        """
        plan = self._repeatable(offset)
        first = self.first
        if (plan.buckets, plan.consumers) != (first.buckets, first.consumers):
            raise InvalidStrategy(
                f"Strategy `{self._planner.spec.strategy}` plans step {offset:,} for {self._readers(plan)}, "
                f"and step 0 for {self._readers(first)}. The ranks of a run read the same buckets at every "
                "step: distribute all steps over one level with one `broadcast_at`."
            )
        if plan.images is not None and first.images is not None and plan.images.ranks != first.images.ranks:
            raise InvalidStrategy(
                f"Strategy `{self._planner.spec.strategy}` plans the pictures of step {offset:,} for "
                f"{plan.images.nodes:,} nodes of the encoder, and those of step 0 for {first.images.nodes:,} "
                "or other ranks. Ranks encode pictures on the same nodes at every step: distribute the "
                "pictures of all steps over one level of one tree."
            )
        return plan

    def _repeatable(self, offset: int) -> Plan:
        """The plan of a step, made twice while few plans were made."""
        plan = self._planner.plan(offset)
        with self._lock:
            self._left -= 1
            repeats = self._left >= 0
        if repeats and self._planner.plan(offset).hash != plan.hash:
            raise InvalidStrategy(
                f"Strategy `{self._planner.spec.strategy}` made two plans of step {offset:,}. A plan may "
                "depend on the step, the tree and the spec alone: use no random numbers, clock, order of "
                "a set or state from an earlier call."
            )
        return plan

    def _readers(self, plan: Plan) -> str:
        """The buckets of a plan with their level, and the number of ranks that read."""
        tree = self._planner.tree
        levels = [f"`{level}`" for level in LEVELS if len(tree.nodes(level)) == plan.buckets]
        return f"{plan.buckets:,} buckets (level {' or '.join(levels)}) and {len(plan.consumers):,} readers"
