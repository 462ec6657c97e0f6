"""Every picture of a step has one place in the encoder and one in the backbone, and both are balanced."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blender.errors import InvalidRequest
from blender.loading import strategies
from blender.loading.columns import StepColumns
from blender.loading.costs import Backbone, Encoder, tokens
from blender.loading.graph import DGraph
from blender.loading.image_graph import ImageGraph
from blender.loading.image_plan import ImagePlan
from blender.loading.plan import Plan
from blender.loading.spec import LoadingSpec
from blender.loading.strategies import vlm_balance
from blender.loading.tree import ClientPlaceTree, Level
from blender.spec.mesh import Mesh
from tests.blender.loading.steps import IMAGE_INPUT, image_step_of, step_of

FACTS = ("n_tokens", "squared_lengths")
LEVELS = ("intra", "inter", "interleaved")

Pictures = list[list[tuple[int, int]]]


def spec_of(**fields: Any) -> LoadingSpec:
    options: dict[str, Any] = {
        "blend": "b",
        "mesh": Mesh(dp=2, tp=2),
        "model": Backbone(16, 2),
        "strategy": "vlm",
        "encoder": Encoder(8, 2),
        "images": IMAGE_INPUT,
    }
    return LoadingSpec(**options | fields)


def plan_of(step: StepColumns, spec: LoadingSpec) -> Plan:
    return vlm_balance(step, ClientPlaceTree(spec.mesh), spec)


@st.composite
def steps_and_specs(draw: st.DrawFn) -> tuple[StepColumns, LoadingSpec]:
    mesh = Mesh(dp=draw(st.integers(1, 3)), cp=draw(st.integers(1, 2)), pp=draw(st.integers(1, 2)))
    microbatches = draw(st.integers(1, 3))
    n_rows = mesh.dp * microbatches * draw(st.integers(1, 3))
    size = st.tuples(st.integers(1, 40), st.integers(1, 40))
    pictures = draw(st.lists(st.lists(size, max_size=4), min_size=n_rows, max_size=n_rows))
    level = draw(st.sampled_from(LEVELS))
    return image_step_of(pictures), spec_of(mesh=mesh, microbatches=microbatches, encoder_level=level)


@pytest.mark.invariant("Every picture of a step has one place in the encoder and one in the backbone.")
@given(step_and_spec=steps_and_specs())
def test_every_picture_is_in_one_place_of_each_module(step_and_spec: tuple[StepColumns, LoadingSpec]) -> None:
    step, spec = step_and_spec
    plan = plan_of(step, spec)
    images = plan.images
    assert images is not None
    assert step.images is not None
    by_node = [images.of_node(node, bin) for node in range(images.nodes) for bin in range(images.bins)]
    assert sorted(np.concatenate(by_node).tolist()) == list(range(len(step.images)))
    in_encoder = set(zip(images.node, images.bin, images.encoder_slot, strict=True))
    in_backbone = set(zip(images.bucket, images.microbatch, images.slot, strict=True))
    assert len(in_encoder) == len(in_backbone) == len(step.images)
    assert (images.bucket == plan.bucket[step.images.row]).all()
    assert (images.microbatch == plan.bin[step.images.row]).all()
    assert images.nodes == len(images.ranks) == spec.mesh.ranks
    if spec.encoder_level == "intra":
        assert (images.bin == images.microbatch).all()
    assert sorted(row for b in range(plan.buckets) for row in plan.rows_of_bucket(b)) == list(
        range(len(step))
    )


@given(step_and_spec=steps_and_specs())
def test_slots_of_a_backbone_microbatch_follow_its_rows(
    step_and_spec: tuple[StepColumns, LoadingSpec],
) -> None:
    step, spec = step_and_spec
    plan = plan_of(step, spec)
    images = plan.images
    assert images is not None
    for bucket in range(plan.buckets):
        for bin in range(plan.bins):
            rows = plan.rows_of(bucket, bin)
            numbers = np.flatnonzero(np.isin(images.images.row, rows))
            assert images.slot[numbers].tolist() == list(range(len(numbers)))


def pictures_of(n_rows: int, seed: int = 1) -> Pictures:
    draws = np.random.default_rng(seed)
    return [
        [(int(n), int(n)) for n in np.clip(draws.lognormal(2.5, 0.8, draws.integers(0, 6)), 1, 90)]
        for _ in range(n_rows)
    ]


def test_the_encoder_gains_most_over_the_step_and_stays_in_its_microbatch_within() -> None:
    step = image_step_of(pictures_of(512))
    after = {}
    for level in LEVELS:
        plan = plan_of(step, spec_of(mesh=Mesh(dp=8), microbatches=4, encoder_level=level))
        figures = plan.image_figures["microbatch"]
        assert figures.after <= figures.before
        assert plan.spreads["encoder"]["step"] >= 1
        assert plan.image_figures["step"].after < 1.1
        after[level] = figures.after
    assert after["interleaved"] < after["intra"] < 1.3
    assert plan.image_figures["step"].after < 1.02


def test_the_hash_covers_the_places_of_pictures() -> None:
    step = image_step_of(pictures_of(32))
    hashes = {level: plan_of(step, spec_of(encoder_level=level, microbatches=4)).hash for level in LEVELS}
    assert len(set(hashes.values())) == 3
    assert plan_of(step, spec_of(microbatches=4)).hash == hashes["intra"]
    text = strategies.llm_balance(step, ClientPlaceTree(Mesh(dp=2, tp=2)), spec_of(microbatches=4))
    assert text.hash not in hashes.values()


def test_the_strategy_adds_five_lines_to_the_language_strategy() -> None:
    def lines(strategy: Any) -> list[str]:
        return inspect.getsource(strategy).split('"""')[2].strip().splitlines()

    language, both = lines(strategies.llm_balance), lines(strategies.vlm_balance)
    assert [line for line in both if line in language] == language
    assert [line.split("(")[0].strip().rpartition(" ")[2] for line in both if line not in language] == [
        "ImageGraph",
        "images.distribute",
        "images.cost",
        "images.balance",
        "graph.join",
    ]


def test_the_encoder_has_a_tree_of_its_own() -> None:
    spec = spec_of(mesh=Mesh(dp=2, tp=2), encoder_tree=f"{__name__}:pairs")
    images = plan_of(image_step_of(pictures_of(16)), spec).images
    assert images is not None
    assert images.ranks == ((0, 1), (2, 3))
    with pytest.raises(InvalidRequest, match=r"of the encoder is a ClientPlaceTree of 2 ranks, and the mesh"):
        plan_of(image_step_of(pictures_of(16)), spec_of(encoder_tree=f"{__name__}:too_small"))


class Pairs(ClientPlaceTree):
    """Two neighbors encode a picture together."""

    def index(self, level: Level, rank: int) -> int:  # noqa: ARG002
        return rank // 2


def pairs(mesh: Mesh) -> ClientPlaceTree:
    """Places of an encoder on two ranks each."""
    return Pairs(mesh)


def too_small(_: Mesh) -> ClientPlaceTree:
    """Places of another number of ranks."""
    return ClientPlaceTree(Mesh(dp=2))


def test_a_step_without_a_picture_is_plan_of() -> None:
    plan = plan_of(image_step_of([[]] * 4), spec_of())
    assert plan.images is not None
    assert len(plan.images.node) == 0
    assert plan.image_figures["step"].after == 1


def test_a_picture_that_is_forgotten_or_outside_is_named() -> None:
    step = image_step_of([[(2, 2), (3, 3)], [(1, 1)]])
    images, costs = step.images, np.ones(3, dtype=np.uint64)
    row = np.array([0, 0, 0])
    assert images is not None
    with pytest.raises(InvalidRequest, match=r"gives a node to 2 pictures, and the step has 3\. Plan each"):
        ImagePlan(images, row[:2], row, costs, 2, 1, row, row)
    with pytest.raises(InvalidRequest, match=r"gives node -1 to picture 1 of row 0, and there are 0 to 1"):
        ImagePlan(images, np.array([0, -1, 0]), row, costs, 2, 1, row, row)
    with pytest.raises(InvalidRequest, match=r"gives bin 3 to picture 0 of row 1"):
        ImagePlan(images, row, np.array([0, 0, 3]), costs, 2, 1, row, row)


def graph_of(step: StepColumns, bins: int = 1) -> DGraph:
    graph = DGraph.of(step, ClientPlaceTree(Mesh(dp=2)), FACTS)
    graph.distribute("DP")
    graph.cost(Backbone(16, 2), memory=tokens)
    graph.balance("greedybinpacking", bins=bins, level="both", equal_counts=False)
    return graph


def images_of(graph: DGraph, **options: Any) -> ImageGraph:
    images = ImageGraph(graph, ClientPlaceTree(Mesh(dp=2)), ("n_patches",))
    images.distribute("WORLD")
    images.cost(Encoder(8, 2))
    images.balance("greedybinpacking", **{"bins": 1} | options)
    return images


def test_graphs_over_parts_of_a_step_make_one_plan() -> None:
    pictures: Pictures = [[(2, 2)], [], [(3, 3), (4, 4)], []] * 4
    step = image_step_of(pictures, sources=2)
    with_pictures, text = (step.only(sources=[f"packed.s{number}"]) for number in (0, 1))
    assert with_pictures.numbers.tolist() == list(range(0, 16, 2))
    llm, other = graph_of(with_pictures), graph_of(text)
    llm.join(other)
    llm.join(images_of(llm))
    plan = llm.plan()
    assert sorted(np.concatenate([plan.rows_of(0, 0), plan.rows_of(1, 0)]).tolist()) == list(range(16))
    assert plan.step is step
    assert plan.images is not None
    assert plan.images.images is step.images
    counts = np.bincount(plan.bucket[step.source == 1], minlength=2)
    assert counts.tolist() == [4, 4]  # the text alone is balanced, too
    again = step.only(rows=step.facts["n_images"] > 0).only(sources=["packed.s0"])
    assert again.numbers.tolist() == with_pictures.numbers.tolist()


def test_a_graph_that_leaves_something_out_is_refused_in_a_sentence() -> None:
    step = image_step_of([[(2, 2)], [(1, 1)], [(3, 3)], [(2, 1)]], sources=2)
    part = graph_of(step.only(sources=["packed.s0"]))
    with pytest.raises(
        InvalidRequest, match=r"Row 1 of step 5 .ordinal 0 .* is in 0 of the joined graphs, and 2 rows"
    ):
        part.plan()
    part.join(graph_of(step.only(sources=["packed.s1"])))
    part.join(images_of(part))
    with pytest.raises(InvalidRequest, match=r"gives node -1 to picture 0 of row 1"):
        part.plan()
    whole = graph_of(step)
    whole.join(images_of(whole))
    with pytest.raises(InvalidRequest, match=r"pictures of step 5 are planned twice"):
        whole.join(images_of(whole))
    with pytest.raises(InvalidRequest, match=r"balanced for another graph of rows"):
        graph_of(step).join(images_of(graph_of(step)))
    with pytest.raises(InvalidRequest, match=r"Graphs of two steps"):
        graph_of(step).join(graph_of(image_step_of([[]])))
    with pytest.raises(InvalidRequest, match=r"2 buckets of 1 microbatches and with 2 of 2 are joined"):
        graph_of(step).join(graph_of(step, bins=2))
    twice = graph_of(step)
    twice.join(graph_of(step.only(sources=["packed.s0"])))
    with pytest.raises(InvalidRequest, match=r"is in 2 of the joined graphs"):
        twice.plan()
    with pytest.raises(InvalidRequest, match=r"no source `packed.x`"):
        step.only(sources=["packed.x"])
    with pytest.raises(InvalidRequest, match=r"`only` got int64 of shape .1,. for 4 rows"):
        step.only(rows=np.array([1]))


def test_bad_input_is_refused_in_a_sentence() -> None:
    step = image_step_of([[(2, 2)]] * 4)
    graph = graph_of(step)
    with pytest.raises(InvalidRequest, match=r"no fact `n_tok`. Choose among `n_patches`"):
        ImageGraph(graph, ClientPlaceTree(Mesh(dp=2)), ("n_tok",))
    with pytest.raises(InvalidRequest, match=r"knows no pictures. Give the spec `images`"):
        ImageGraph(graph_of(step_of([[1], [2]])), ClientPlaceTree(Mesh(dp=2)), ("n_patches",))
    with pytest.raises(InvalidRequest, match=r"stay in the 1 microbatches of their rows .* 2 were asked for"):
        images_of(graph, bins=2)
    with pytest.raises(InvalidRequest, match=r"rows of a graph have no microbatches yet"):
        ImageGraph(DGraph.of(step, ClientPlaceTree(Mesh()), FACTS), ClientPlaceTree(Mesh()), ("n_patches",))
    with pytest.raises(InvalidRequest, match=r"pictures of a graph have no microbatches yet"):
        graph.join(ImageGraph(graph, ClientPlaceTree(Mesh(dp=2)), ("n_patches",)))
    with pytest.raises(InvalidRequest, match=r"pictures of step 5 have no cost function"):
        ImageGraph(graph, ClientPlaceTree(Mesh(dp=2)), ("n_patches",)).cost(None)
    with pytest.raises(InvalidRequest, match=r"the spec has no `encoder`"):
        spec_of(encoder=None)
    with pytest.raises(InvalidRequest, match=r"the spec has no `images`"):
        spec_of(images=None)
