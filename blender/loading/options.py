"""A loading spec from the words of a command line."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from blender.loading.costs import Backbone
from blender.loading.defaults import BROADCAST, MESH, MODEL
from blender.loading.spec import LoadingSpec
from blender.loading.spec_file import fields_of_file
from blender.number_ranges import numbers_of
from blender.opened.blend import Blend
from blender.spec.mesh import MEGATRON_ORDER, Mesh


def spec_of(
    blend: Blend,
    *,
    mesh: str = MESH,
    order: str = MEGATRON_ORDER,
    model: str = MODEL,
    broadcast: str = BROADCAST,
    file: str | None = None,
    **fields: Any,
) -> LoadingSpec:
    """The spec that the words describe, with the vocabulary of the blend unless `model` gives one.

    A `file` has further fields. Raises InvalidRequest.
    """
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))  # a strategy of one's own is a module beside the command
    vocabulary = max(source.reader.facts.vocabulary or 0 for source in blend.sources)
    return LoadingSpec(
        blend=blend.id,
        mesh=Mesh.parse(mesh, order),
        model=Backbone.parse(model, vocabulary),
        broadcast=() if broadcast == "none" else tuple(broadcast.split(",")),
        **fields,
        **fields_of_file(file),
    )


def add_spec_options(add: Callable[..., None], positive: Callable[[str], int]) -> None:
    """Add the options of a spec, except switches, by a function that adds one."""
    add("--mesh", "extents of the axes: dp=8,cp=2,tp=4,pp=2", MESH)
    add("--order", "the axes, first the one whose neighbors have consecutive ranks", MEGATRON_ORDER)
    add(
        "--model", "the model, whose FLOPs are the costs: hidden, layers, ffn, kv, topk, gated, causal", MODEL
    )
    add("--strategy", "llm, vlm, plain, or your own module:function", "llm")
    add("--spec", "a file of further fields, for pictures: images, encoder, row_tokens and others")
    add("--tree", "the places of ranks: a function of yours of the mesh, module:function", "")
    add("--microbatches", "microbatches of a bucket in a step", 1, positive)
    add("--barrier", "where ranks wait: step, microbatch or pipeline; by default pipeline if pp > 1")
    add("--limit", "the most tokens of a microbatch", kind=positive)
    add("--group-size", "neighboring buckets that are balanced as one; by default all at once", kind=positive)
    add("--chunking", "what context parallel ranks divide: row or document", "row")
    add("--broadcast", "axes on which the first rank reads for the others: tp, tp/4, or none", BROADCAST)


def buckets_of(text: str | None) -> tuple[int, ...] | None:
    """The buckets of `0-3,6`; None for all. Raises InvalidRequest."""
    return None if text is None else numbers_of(text, "buckets")
