"""Strategies by name: functions from the rows of a step, a tree and a spec to a plan.

    strategy("llm")(step, tree, spec)
    strategy("my_loading:by_pages")             # a function of a module of yours

`llm` and `vlm` are from MegaScale-Data, Figure 9: `vlm` is `llm` with a second graph, over the pictures of
its rows. `dynamic_cp` cuts rows for as many ranks as their lengths need. `plain` gives each rank its rows in
the blend's order.
"""

from __future__ import annotations

from collections.abc import Callable

from blender.errors import InvalidRequest
from blender.loading.columns import StepColumns
from blender.loading.costs import tokens
from blender.loading.graph import DGraph
from blender.loading.image_graph import ImageGraph
from blender.loading.own_trees import encoder_tree
from blender.loading.plan import Plan
from blender.loading.rank_groups import WidthGraph
from blender.loading.spec import LoadingSpec
from blender.loading.tree import ClientPlaceTree
from blender.named_function import named_function

Strategy = Callable[[StepColumns, ClientPlaceTree, LoadingSpec], Plan]


def llm_balance(step: StepColumns, tree: ClientPlaceTree, spec: LoadingSpec) -> Plan:
    """Microbatches of like cost over all data parallel ranks."""
    graph = DGraph.of(step, tree, ("n_tokens", "squared_lengths"))
    graph.mix(None)
    graph.distribute("DP", spec.group_size)
    graph.cost(spec.model, memory=tokens)
    graph.balance("greedybinpacking", level="both", **spec.balancing)
    graph.broadcast_at(*spec.broadcast)
    return graph.plan()


def vlm_balance(step: StepColumns, tree: ClientPlaceTree, spec: LoadingSpec) -> Plan:
    """Microbatches of like cost for the backbone, and pictures of like cost on all ranks of the encoder."""
    graph = DGraph.of(step, tree, ("n_tokens", "squared_lengths"))
    graph.mix(None)
    graph.distribute("DP", spec.group_size)
    graph.cost(spec.model, memory=tokens)
    graph.balance("greedybinpacking", level="both", **spec.balancing)
    graph.broadcast_at(*spec.broadcast)
    images = ImageGraph(graph, encoder_tree(spec.encoder_tree, spec.mesh), ("n_patches",))
    images.distribute("WORLD")
    images.cost(spec.encoder)
    images.balance("greedybinpacking", bins=spec.microbatches, level=spec.encoder_level)
    graph.join(images)
    return graph.plan()


def dynamic_cp(step: StepColumns, tree: ClientPlaceTree, spec: LoadingSpec) -> Plan:
    """Rows on as many neighboring context parallel ranks as their lengths need, by groups of each step."""
    graph = WidthGraph.of(step, tree, ("n_tokens", "squared_lengths"))
    graph.mix(None)
    graph.distribute("CP")
    graph.cost(spec.model, memory=tokens)
    graph.balance("greedybinpacking", level="both", **spec.balancing)
    graph.broadcast_at(*spec.broadcast)
    return graph.plan()


def plain(step: StepColumns, tree: ClientPlaceTree, spec: LoadingSpec) -> Plan:
    """Rows in the blend's order, as a loader without a plan gives them."""
    graph = DGraph.of(step, tree, ("n_tokens", "squared_lengths"))
    graph.distribute("DP")
    graph.cost(spec.model, memory=tokens)
    graph.fill(**spec.balancing)
    graph.broadcast_at(*spec.broadcast)
    return graph.plan()


_STRATEGIES: dict[str, Strategy] = {
    "llm": llm_balance,
    "vlm": vlm_balance,
    "dynamic_cp": dynamic_cp,
    "plain": plain,
}


def strategy(name: str) -> Strategy:
    """The strategy of a name; raises InvalidRequest for one that is unknown or cannot be imported."""
    if name in _STRATEGIES:
        return _STRATEGIES[name]
    if ":" not in name:
        known = ", ".join(f"`{known}`" for known in _STRATEGIES)
        raise InvalidRequest(
            f"There is no strategy `{name}`. Use {known}, or one of your own as `module:function`."
        )
    return named_function(name, "strategy", "a step, a tree and a spec")
