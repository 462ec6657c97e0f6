"""Components by alternating stars in Spark, against networkx."""

from __future__ import annotations

import random

import networkx as nx
import pytest
from pyspark.sql import SparkSession

from factory.dedup.components import alternating, one_task

pytestmark = pytest.mark.spark


def graph(seed: int) -> nx.Graph:
    """A path, a star, a clique, a grid and a sparse random graph, under shuffled names."""
    parts = [
        nx.path_graph(60),
        nx.star_graph(30),
        nx.complete_graph(12),
        nx.convert_node_labels_to_integers(nx.grid_2d_graph(6, 7)),
        nx.gnm_random_graph(120, 90, seed=seed),
    ]
    whole = nx.disjoint_union_all(parts)
    names = list(range(len(whole)))
    random.Random(seed).shuffle(names)
    return nx.relabel_nodes(whole, {node: f"d{name:04}" for node, name in enumerate(names)})


def test_both_ways_find_the_components_of_networkx(spark: SparkSession) -> None:
    shuffled = graph(seed=5)
    edges = [(min(edge), max(edge)) for edge in shuffled.edges]
    frame = spark.createDataFrame(edges, "left string, right string").repartition(4)
    expected = {
        name: min(nodes) for nodes in nx.connected_components(shuffled) if len(nodes) > 1 for name in nodes
    }
    assert {row.doc_id: row.component for row in alternating(frame).collect()} == expected
    assert {row.doc_id: row.component for row in one_task(frame).collect()} == expected


def test_no_edges_have_no_components(spark: SparkSession) -> None:
    frame = spark.createDataFrame([], "left string, right string")
    assert alternating(frame).collect() == []
    assert one_task(frame).collect() == []
