"""Plans of your own arrays: `plan_raw`, the low-level interface of MegaScale-Data, section 4.2.

    summary = planner.summary_buffer(1_000)
    plan = planner.plan_raw(1_000, bucket, bin)

A strategy that returns `raw_plan(step, tree, spec, bucket, bin)` delivers them.
"""

from __future__ import annotations

from typing import cast

import numpy.typing as npt

from blender.errors import InvalidRequest
from blender.loading.columns import StepColumns
from blender.loading.costs import tokens
from blender.loading.graph import DGraph
from blender.loading.image_graph import ImageGraph
from blender.loading.own_trees import encoder_tree
from blender.loading.placement import LevelName
from blender.loading.plan import Plan
from blender.loading.raw_places import RawPlaces
from blender.loading.spec import LoadingSpec
from blender.loading.tree import ClientPlaceTree


def raw_plan(
    step: StepColumns,
    tree: ClientPlaceTree,
    spec: LoadingSpec,
    bucket: npt.ArrayLike,
    bin: npt.ArrayLike,
    *,
    node: npt.ArrayLike | None = None,
    node_bin: npt.ArrayLike | None = None,
    encoder_level: str | None = None,
) -> Plan:
    """The plan that gives each row a bucket and a microbatch, and each picture a place in the encoder.

    Pictures of a spec with an encoder get the places that you give, `node` and `node_bin`, or else the
    balance of strategy `vlm` at `encoder_level`, by default the spec's. Raises InvalidRequest for a row or
    picture that is forgotten, planned twice, or put where no bucket, node or microbatch is.
    """
    return plan_of_places(step, tree, spec, RawPlaces.from_arrays(bucket, bin, node, node_bin, encoder_level))


def plan_of_places(step: StepColumns, tree: ClientPlaceTree, spec: LoadingSpec, places: RawPlaces) -> Plan:
    """As `raw_plan`."""
    graph = DGraph.of(step, tree, ("n_tokens", "squared_lengths"))
    graph.distribute("DP")
    graph.cost(spec.model, memory=tokens)
    graph.place(
        places.bucket,
        places.bin,
        bins=spec.microbatches,
        barrier=spec.waits_at,
        equal_counts=spec.equal_counts,
    )
    graph.broadcast_at(*spec.broadcast)
    if spec.encoder is not None and step.images is not None:
        graph.join(_pictures(graph, spec, places))
    elif places.node is not None or places.encoder_level is not None:
        raise InvalidRequest(
            "The plan places pictures on an encoder, and the spec has no "
            f"`{'images' if spec.encoder else 'encoder'}`. Give the spec both, or leave `node`, `node_bin` "
            "and `encoder_level` out."
        )
    return graph.plan()


def _pictures(graph: DGraph, spec: LoadingSpec, places: RawPlaces) -> ImageGraph:
    images = ImageGraph(graph, encoder_tree(spec.encoder_tree, spec.mesh), ("n_patches",))
    images.distribute("WORLD")
    images.cost(spec.encoder)
    if places.node is not None and places.node_bin is not None:
        images.place(places.node, places.node_bin, bins=spec.microbatches)
    else:
        level = cast(LevelName, places.encoder_level or spec.encoder_level)  # `balance` refuses others
        images.balance("greedybinpacking", bins=spec.microbatches, level=level)
    return images
