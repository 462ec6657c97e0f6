"""Plans of a spec: a pure function of the offset.

    planner = open_planner(spec)
    planner.plan(1_000).hash == open_planner(spec).plan(1_000).hash

The planner keeps cost indexes open and nothing else, so that a planner in another process, or one that was
killed and started again, makes the same plans.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from blender.catalog.blends import open_blends
from blender.errors import InvalidRequest
from blender.loading.columns import Buffer, StepColumns
from blender.loading.plan import Plan
from blender.loading.spec import LoadingSpec
from blender.loading.strategies import strategy
from blender.loading.tree import LEVELS, ClientPlaceTree
from blender.named_function import named_function
from blender.opened.blend import Blend
from factory.errors import FactoryError, first_line
from factory.settings import Settings
from factory.settings import settings as default_settings

Ints = npt.NDArray[np.int64]


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

    def plan_raw(self, offset: int, bucket: Ints, bin: Ints) -> Plan:
        """A plan of your own: the data parallel bucket and the microbatch of each row (section 4.2).

        Raises InvalidRequest unless each row of the step is planned once, in the counts and below the limit
        of the spec.
        """
        step = self.summary_buffer(offset)
        plan = Plan(
            step,
            _copied("bucket", bucket),
            _copied("bin", bin),
            self.spec.model(step.facts),
            len(self.tree.nodes("DP")),
            self.spec.microbatches,
            self.tree.consumers("DP", self.spec.broadcasts),
            self.spec.mesh.pp,
            self.spec.waits_at,
            equal_counts=self.spec.equal_counts,
        )
        return self._checked(plan, step, "`plan_raw`")

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
        if plan.buckets not in buckets.values() or plan.bins != spec.microbatches:
            nodes = ", ".join(f"{number:,} at level {level}" for level, number in buckets.items())
            raise InvalidRequest(
                f"{author} made {plan.buckets:,} buckets of {plan.bins:,} microbatches, and mesh {spec.mesh} "
                f"has {nodes}, with {spec.microbatches:,} microbatches each. Balance with "
                "`**spec.balancing`."
            )
        counts = np.diff(plan.ends.reshape(-1), prepend=0)
        if spec.equal_counts and counts.min() != counts.max():
            raise InvalidRequest(
                f"{author} put {counts.min():,} to {counts.max():,} rows of step {step.offset:,} in a "
                "microbatch, and the spec has equal counts. Give each microbatch as many, or set "
                "`equal_counts=False`."
            )
        if spec.limit is not None:
            most = int(plan.sums_of(step.facts["n_tokens"]).max())
            if most > spec.limit:
                raise InvalidRequest(
                    f"{author} put {most:,} tokens of step {step.offset:,} in a microbatch, which may hold "
                    f"{spec.limit:,}. Balance with `memory=tokens` and `**spec.balancing`, or raise `limit`."
                )
        if not counts.min():
            raise InvalidRequest(
                f"{author} left a microbatch of step {step.offset:,} without rows: it has {len(step):,} for "
                f"{len(counts):,} microbatches. Use fewer, or a smaller mesh: ranks would read different "
                "numbers of microbatches."
            )
        return plan


def _copied(name: str, values: npt.ArrayLike) -> npt.NDArray[Any]:
    try:
        return np.array(values)
    except ValueError as error:
        cause = first_line(error)
        raise InvalidRequest(f"`{name}` is not an array ({cause}). Give a number for each row.") from error


def tree_of(spec: LoadingSpec) -> ClientPlaceTree:
    """The places of the ranks of a spec; raises InvalidRequest for a function that gives none."""
    if not spec.tree:
        return ClientPlaceTree(spec.mesh)
    places = named_function(spec.tree, "tree", "a mesh")
    try:
        tree = places(spec.mesh)
        for level in LEVELS:
            tree.nodes(level)
    except FactoryError:
        raise
    except Exception as error:
        raise InvalidRequest(
            f"The tree `{spec.tree}` failed on mesh {spec.mesh} ({type(error).__name__}: "
            f"{first_line(error)}). Correct its function: it takes a mesh and returns a `ClientPlaceTree`."
        ) from error
    if not isinstance(tree, ClientPlaceTree) or tree.mesh != spec.mesh:
        of_mesh = getattr(tree, "mesh", None)
        raise InvalidRequest(
            f"The tree `{spec.tree}` is a {type(tree).__name__} of mesh {of_mesh}, and the spec has mesh "
            f"{spec.mesh}. Return a `ClientPlaceTree` of the mesh that the function is given."
        )
    tree.require_whole_samples()
    return tree


def open_planner(spec: LoadingSpec, settings: Settings | None = None) -> Planner:
    """The planner of a spec over the lake that `settings` names, by default the environment's.

    Raises BlendNotFound, SourceGone and InvalidRequest.
    """
    return Planner(open_blends(settings or default_settings()).open(spec.blend), spec)
