"""Plans of a spec: a pure function of the offset.

    planner = open_planner(spec)
    planner.plan(1_000).hash == open_planner(spec).plan(1_000).hash

The planner keeps cost indexes open and nothing else, so that a planner in another process, or one that was
killed and started again, makes the same plans.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from blender.catalog.blends import open_blends
from blender.errors import InvalidRequest
from blender.loading.columns import Buffer, StepColumns
from blender.loading.own_trees import tree_of
from blender.loading.plan import Plan
from blender.loading.raw_places import RawPlaces
from blender.loading.raw_plans import plan_of_places
from blender.loading.spec import LoadingSpec
from blender.loading.strategies import strategy
from blender.loading.tree import LEVELS
from blender.opened.blend import Blend
from factory.errors import FactoryError, first_line
from factory.settings import Settings
from factory.settings import settings as default_settings


class Planner:
    """Plans a spec of an open blend; safe for many threads."""

    def __init__(self, blend: Blend, spec: LoadingSpec) -> None:
        """Raises InvalidRequest for a spec of another blend, a strategy or a tree that cannot be imported."""
        if spec.blend != blend.id:
            raise InvalidRequest(
                f"The spec plans blend {spec.blend}, and blend {blend.id} was opened. Open that one."
            )
        self.spec = spec
        self.tree = tree_of(spec)
        self._strategy = strategy(spec.strategy)
        self._buffer = Buffer(blend, spec.images)

    def plan(self, offset: int) -> Plan:
        """The plan of a step.

        Raises EndOfData, and InvalidRequest where the strategy fails, which is its cause, or where its plan
        is not of this step and spec.
        """
        step = self.summary_buffer(offset)
        try:
            plan = self._strategy(step, self.tree, self.spec)
        except FactoryError:
            raise
        except Exception as error:
            raise InvalidRequest(
                f"Strategy `{self.spec.strategy}` failed on step {step.offset:,} "
                f"({type(error).__name__}: {first_line(error)}). Correct its function."
            ) from error
        return self._checked(plan, step, f"Strategy `{self.spec.strategy}`")

    def summary_buffer(self, offset: int) -> StepColumns:
        """The metadata of a step's rows, the input of plans (section 4.2)."""
        return self._buffer.step(offset)

    def plan_raw(
        self,
        offset: int,
        bucket: npt.ArrayLike,
        bin: npt.ArrayLike,
        *,
        node: npt.ArrayLike | None = None,
        node_bin: npt.ArrayLike | None = None,
        encoder_level: str | None = None,
    ) -> Plan:
        """A plan of your own: the data parallel bucket and the microbatch of each row (section 4.2).

        Pictures get the places that you give, or a balance at `encoder_level` (`raw_plan`). Raises
        InvalidRequest unless each row and picture of the step is planned once, in the counts and below the
        limit of the spec.
        """
        return self.plan_of_places(offset, RawPlaces.from_arrays(bucket, bin, node, node_bin, encoder_level))

    def plan_of_places(self, offset: int, places: RawPlaces) -> Plan:
        """As `plan_raw`."""
        step = self.summary_buffer(offset)
        return self._checked(plan_of_places(step, self.tree, self.spec, places), step, "`plan_raw`")

    def _checked(self, plan: object, step: StepColumns, author: str) -> Plan:
        """A plan that `author` made, if it is of `step` and of the spec; raises InvalidRequest."""
        spec = self.spec
        if not isinstance(plan, Plan):
            raise InvalidRequest(
                f"{author} returned a {type(plan).__name__} for step {step.offset:,}. Return a `Plan`, as "
                "`DGraph.plan` makes it."
            )
        if plan.step is not step:
            raise InvalidRequest(
                f"{author} planned other rows than those of step {step.offset:,} of blend {step.blend}. Plan "
                "the step that it is given."
            )
        buckets = {level: len(self.tree.nodes(level)) for level in LEVELS}
        has_groups = plan.groups is not None and sum(plan.groups.widths) == buckets["CP"]
        if not (has_groups or plan.buckets in buckets.values()) or plan.bins != spec.microbatches:
            nodes = ", ".join(f"{number:,} at level {level}" for level, number in buckets.items())
            raise InvalidRequest(
                f"{author} made {plan.buckets:,} buckets of {plan.bins:,} microbatches, and mesh {spec.mesh} "
                f"has {nodes}, with {spec.microbatches:,} microbatches each. Balance with "
                "`**spec.balancing`."
            )
        if spec.encoder is not None and plan.images is None and step.images is not None and len(step.images):
            raise InvalidRequest(
                f"{author} planned none of the {len(step.images):,} pictures of step {step.offset:,}, and "
                "the spec has an encoder. Join a graph of them (`ImageGraph`), or leave `encoder` out."
            )
        if plan.images is not None and plan.images.images is not step.images:
            raise InvalidRequest(
                f"{author} planned other pictures than those of step {step.offset:,}. Make its graph of the "
                "step's rows."
            )
        counts = np.diff(plan.ends.reshape(-1), prepend=0)
        if spec.equal_counts and counts.min() != counts.max():
            raise InvalidRequest(
                f"{author} put {counts.min():,} to {counts.max():,} rows of step {step.offset:,} in a "
                "microbatch, and the spec has equal counts. Give each microbatch as many, or set "
                "`equal_counts=False`."
            )
        if spec.limit is not None:
            of_buckets = plan.sums_of(step.facts["n_tokens"])
            most = int((of_buckets if plan.groups is None else plan.groups.per_rank(of_buckets)).max())
            if most > spec.limit:
                raise InvalidRequest(
                    f"{author} put {most:,} tokens of step {step.offset:,} in a microbatch, which may hold "
                    f"{spec.limit:,}. Balance with `memory=tokens` and `**spec.balancing`, or raise `limit`."
                )
        if not counts.min() and plan.groups is None:
            raise InvalidRequest(
                f"{author} left a microbatch of step {step.offset:,} without rows: it has {len(step):,} for "
                f"{len(counts):,} microbatches. Use fewer, or a smaller mesh: ranks would read different "
                "numbers of microbatches."
            )
        return plan


def open_planner(spec: LoadingSpec, settings: Settings | None = None) -> Planner:
    """The planner of a spec over the lake that `settings` names, by default the environment's.

    Raises BlendNotFound, SourceGone and InvalidRequest.
    """
    return Planner(open_blends(settings or default_settings()).open(spec.blend), spec)
