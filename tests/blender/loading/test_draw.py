"""Both pictures of a small plan, word for word: states, samples, the join and the ranks that read."""

from __future__ import annotations

from pathlib import Path

import pytest

from blender.loading.costs import Encoder
from blender.loading.draw import DrawingLanguage
from blender.loading.graph import DGraph
from blender.loading.image_graph import ImageGraph
from blender.loading.tree import ClientPlaceTree
from blender.spec.mesh import Mesh
from tests.blender.loading.steps import image_step_of


def graph_of_two_modules() -> DGraph:
    """Two rows with pictures and two of text in graphs of their own, and the graph of the pictures."""
    step = image_step_of([[(1, 2)], [], [(2, 2), (1, 1)], []], words=2, sources=2)
    tree = ClientPlaceTree(Mesh(dp=2))
    graphs = []
    for source in step.sources:
        graph = DGraph.of(step.only(sources=[source]), tree, ("n_tokens",))
        graph.mix(None)
        graph.distribute("DP")
        graph.cost(lambda facts: facts["n_tokens"])
        graph.balance("greedybinpacking", bins=1)
        graphs.append(graph)
    images = ImageGraph(graphs[0], tree, ("n_patches",))
    images.distribute("WORLD")
    images.cost(Encoder(1, 1))
    images.balance("greedybinpacking", bins=1)
    graphs[0].join(graphs[1])
    graphs[0].join(images)
    return graphs[0]


@pytest.mark.parametrize("language", ["mermaid", "dot"])
def test_a_plan_of_two_modules_is_drawn(language: DrawingLanguage) -> None:
    assert (
        graph_of_two_modules().draw(language)
        == Path(__file__).with_name(f"two_modules.{language}").read_text()
    )
