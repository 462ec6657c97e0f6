"""Pictures of a plan as text for Mermaid and Graphviz (MegaScale-Data, Figure 8).

    drawing(plan, "mermaid")                    # sources, microbatches of buckets, the ranks that read
    graph.draw("dot")                           # the states of rows and pictures before them, and their edges

In a small plan each sample is an ellipse, `4:17` for row 4 of cost 17.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from blender.errors import InvalidRequest
from blender.loading.costs import Costs
from blender.loading.plan import Plan

DrawingLanguage = Literal["mermaid", "dot"]

MOST_BINS = 256  # a larger picture cannot be read
MOST_SAMPLES = 32  # of rows and pictures that are drawn one by one


@dataclass(frozen=True)
class GraphStates:
    """The states of the samples of a graph: its edges are (from, to, primitive)."""

    name: str
    samples: int
    edges: tuple[tuple[str, str, str], ...]
    n_excluded: int = 0
    """Rows of the step that the graph does not take."""


@dataclass(frozen=True)
class _Node:
    id: str
    label: str
    shape: Literal["box", "round", "ellipse"] = "box"


@dataclass(frozen=True)
class _Cluster:
    id: str
    label: str
    parts: list[_Node | _Cluster]


@dataclass(frozen=True)
class _Edge:
    """From a node or cluster to another; a dotted one carries no samples on."""

    tail: str
    head: str
    label: str = ""
    is_dotted: bool = False


@dataclass(frozen=True)
class _Picture:
    parts: list[_Node | _Cluster]
    edges: list[_Edge]


def drawing(plan: Plan, language: DrawingLanguage, lanes: Sequence[GraphStates] = ()) -> str:
    """The picture of a plan, with the states of its graphs; raises InvalidRequest above MOST_BINS bins."""
    n_bins = plan.buckets * plan.bins
    if plan.images is not None:
        n_bins += plan.images.nodes * plan.images.bins
    if n_bins > MOST_BINS:
        raise InvalidRequest(
            f"The plan has {n_bins:,} microbatches, and a picture shows at most {MOST_BINS}. Draw a smaller "
            "mesh."
        )
    picture = _Picture([], [])
    for number, lane in enumerate(lanes):
        _add_lane(picture, f"g{number}", lane)
    _add_rows(picture, plan)
    if plan.images is not None:
        _add_images(picture, plan)
    return _mermaid(picture) if language == "mermaid" else _dot(picture)


def _add_lane(picture: _Picture, prefix: str, lane: GraphStates) -> None:
    """The states of a graph in a row; an edge to another graph joins its last state."""
    states, to_graph = ["loaded"], ""
    for _, state, primitive in lane.edges:
        if primitive == "join":
            to_graph = state
        else:
            states.append(state)
    nodes: list[_Node | _Cluster] = [
        _Node(f"{prefix}s{number}", f"{state}: {lane.samples:,}", "round")
        for number, state in enumerate(states)
    ]
    for number, (_, _, primitive) in enumerate(edge for edge in lane.edges if edge[2] != "join"):
        picture.edges.append(_Edge(f"{prefix}s{number}", f"{prefix}s{number + 1}", primitive))
    if lane.n_excluded:
        nodes.append(_Node(f"{prefix}x", f"in other graphs: {lane.n_excluded:,}", "round"))
        picture.edges.append(_Edge(f"{prefix}s0", f"{prefix}x", "only", is_dotted=True))
    picture.parts.append(_Cluster(prefix, lane.name, nodes))
    if to_graph:
        picture.edges.append(_Edge(prefix, "g0", "join"))


def _add_rows(picture: _Picture, plan: Plan) -> None:
    counts = np.bincount(plan.step.source, minlength=len(plan.step.sources))
    for number, name in enumerate(plan.step.sources):
        if counts[number]:
            picture.parts.append(_Node(f"s{number}", f"{name}: {counts[number]:,} rows"))
    samples = len(plan.step) <= MOST_SAMPLES
    for bucket in range(plan.buckets):
        bins: list[_Node | _Cluster] = []
        for bin in range(plan.bins):
            rows = plan.rows_of(bucket, bin)
            share = _share(plan.loads[bucket, bin] * plan.bins, plan.loads)
            label = f"microbatch {bin}: {len(rows):,} rows, {share}"
            inside = [(int(row), int(plan.costs[row])) for row in rows] if samples else []
            bins.append(_bin(f"b{bucket}m{bin}", label, inside))
        picture.parts.append(
            _Cluster(f"b{bucket}", f"bucket {bucket}: {_share(plan.loads[bucket].sum(), plan.loads)}", bins)
        )
    for source, bucket, rows_moved in _moved(plan):
        picture.edges.append(_Edge(f"s{source}", f"b{bucket}", f"{rows_moved:,}"))
    for bucket in range(plan.buckets):
        ranks = [str(consumer.rank) for consumer in plan.consumers if consumer.bucket == bucket]
        picture.parts.append(_Node(f"r{bucket}", f"rank{'s' if len(ranks) != 1 else ''} {', '.join(ranks)}"))
        picture.edges.append(_Edge(f"b{bucket}", f"r{bucket}"))


def _add_images(picture: _Picture, plan: Plan) -> None:
    images = plan.images
    assert images is not None
    samples = len(images.images) <= MOST_SAMPLES
    for node in range(images.nodes):
        bins: list[_Node | _Cluster] = []
        for bin in range(images.bins):
            numbers = images.of_node(node, bin)
            share = _share(images.loads[node, bin] * images.bins, images.loads)
            label = f"microbatch {bin}: {len(numbers):,} pictures, {share}"
            inside = [(int(number), int(images.costs[number])) for number in numbers] if samples else []
            bins.append(_bin(f"e{node}m{bin}", label, inside))
        picture.parts.append(
            _Cluster(f"e{node}", f"encoder {node}: {_share(images.loads[node].sum(), images.loads)}", bins)
        )
    pairs, counts = np.unique(images.node * plan.buckets + images.bucket, return_counts=True)
    for pair, count in zip(pairs.tolist(), counts.tolist(), strict=True):
        picture.edges.append(_Edge(f"e{pair // plan.buckets}", f"b{pair % plan.buckets}", f"{count:,}"))


def _bin(id: str, label: str, samples: Sequence[tuple[int, int]]) -> _Node | _Cluster:
    """A microbatch, with its samples inside if there are some to draw."""
    if not samples:
        return _Node(id, label, "round")
    return _Cluster(id, label, [_Node(f"{id}n{row}", f"{row}:{cost}", "ellipse") for row, cost in samples])


def _mermaid(picture: _Picture) -> str:
    brackets = {"box": ('["', '"]'), "round": ('("', '")'), "ellipse": ('(["', '"])')}

    def lines_of(part: _Node | _Cluster, indent: str) -> Iterator[str]:
        label = part.label.replace('"', "'")
        if isinstance(part, _Node):
            begin, end = brackets[part.shape]
            yield f"{indent}{part.id}{begin}{label}{end}"
            return
        yield f'{indent}subgraph {part.id}["{label}"]'
        for inner in part.parts:
            yield from lines_of(inner, indent + "  ")
        yield f"{indent}end"

    lines = ["flowchart LR", *(line for part in picture.parts for line in lines_of(part, "  "))]
    for edge in picture.edges:
        arrow = "-.->" if edge.is_dotted else "-->"
        lines.append(f"  {edge.tail} {arrow}{f'|{edge.label}|' if edge.label else ''} {edge.head}")
    return "\n".join(lines) + "\n"


def _dot(picture: _Picture) -> str:
    shapes = {"box": "", "round": ", style=rounded", "ellipse": ", shape=ellipse"}
    first: dict[str, str] = {}  # Graphviz draws an edge to a cluster from one of its nodes

    def lines_of(part: _Node | _Cluster, indent: str) -> Iterator[str]:
        label = part.label.replace('"', "'")
        if isinstance(part, _Node):
            yield f'{indent}{part.id} [label="{label}"{shapes[part.shape]}];'
            return
        yield f"{indent}subgraph cluster_{part.id} {{"
        yield f'{indent}  label="{label}";'
        for inner in part.parts:
            yield from lines_of(inner, indent + "  ")
            first.setdefault(part.id, first.get(inner.id, inner.id))
        yield f"{indent}}}"

    lines = ["digraph plan {", "  rankdir=LR; compound=true; node [shape=box];"]
    lines += [line for part in picture.parts for line in lines_of(part, "  ")]
    for edge in picture.edges:
        options = [f'label="{edge.label}"'] if edge.label else []
        options += [f"ltail=cluster_{edge.tail}"] if edge.tail in first else []
        options += [f"lhead=cluster_{edge.head}"] if edge.head in first else []
        options += ["style=dotted"] if edge.is_dotted else []
        ends = f"{first.get(edge.tail, edge.tail)} -> {first.get(edge.head, edge.head)}"
        in_brackets = f" [{', '.join(options)}]" if options else ""
        lines.append(f"  {ends}{in_brackets};")
    return "\n".join([*lines, "}"]) + "\n"


def _moved(plan: Plan) -> Iterator[tuple[int, int, int]]:
    """Source, bucket and the number of rows that go from one to the other."""
    pairs, counts = np.unique(plan.step.source * plan.buckets + plan.bucket, return_counts=True)
    for pair, count in zip(pairs.tolist(), counts.tolist(), strict=True):
        yield pair // plan.buckets, pair % plan.buckets, count


def _share(cost: float, loads: Costs) -> str:
    """A cost relative to the mean bucket's."""
    mean = float(loads.sum(dtype=np.float64)) / len(loads)
    return f"{float(cost) / max(mean, 1e-300):.2f} of the mean"
