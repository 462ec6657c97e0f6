"""The outcome of every threshold, against decisions made at it and components by networkx."""

from __future__ import annotations

from typing import get_args

import networkx as nx
import pytest
from pyspark.sql import SparkSession

from factory.dedup.components import components
from factory.dedup.config import DedupConfig
from factory.dedup.decisions import DecisionConfig, Keep, decisions
from factory.dedup.edges import similar
from factory.dedup.sweep import SweepConfig, sweep
from factory.lake.schemas.dedup import EDGES, SIGNATURES, SWEEP
from factory.lake_spark.audit import spark_schema
from tests.dedup.corpus import arrow, corpus, document
from tests.dedup.group import Group

pytestmark = pytest.mark.spark

CONFIG = DedupConfig(kind="code", threshold=0.8, sweep=(0.7, 0.9))


@pytest.fixture(scope="module")
def group(spark: SparkSession) -> Group:
    return Group(spark.createDataFrame(arrow(corpus(40, seed=5))).localCheckpoint(), CONFIG)


@pytest.mark.parametrize("keep", get_args(Keep))
def test_a_sweep_counts_what_decisions_at_each_threshold_do(group: Group, keep: Keep) -> None:
    documents, signed, found = group.documents, group.signatures, group.edges
    swept = sweep(documents, signed, found, CONFIG.changed(keep=keep).part(SweepConfig))
    assert swept.columns == SWEEP.names
    outcomes = {row.threshold: row for row in swept.collect()}
    assert sorted(outcomes) == [0.7, 0.8, 0.9]
    n_bytes = {row.doc_id: row.n_bytes for row in documents.collect()}
    copies = {row.doc_id: row.copies for row in signed.where("signature IS NOT NULL").collect()}
    for threshold, outcome in outcomes.items():
        config = CONFIG.changed(threshold=threshold, keep=keep).part(DecisionConfig)
        labels = components(found, signed, threshold)
        decided = decisions(documents, signed, found, labels, config).collect()
        removed = [row.doc_id for row in decided if not row.kept]
        assert (outcome.documents, outcome.kept) == (len(n_bytes), len(n_bytes) - len(removed))
        assert (outcome.removed, outcome.removed_bytes) == (len(removed), sum(map(n_bytes.get, removed)))
        pairs = [(row.left, row.right) for row in similar(found, threshold).collect()]
        assert outcome.similar_pairs == len(pairs)
        graph = nx.Graph(pairs)
        graph.add_nodes_from(copies)
        sizes = [sum(copies[name] for name in nodes) for nodes in nx.connected_components(graph)]
        assert outcome.largest_component == max(sizes)
    removed_at = [outcomes[threshold].removed for threshold in (0.7, 0.8, 0.9)]
    assert removed_at == sorted(removed_at, reverse=True)
    assert len(set(removed_at)) == 3


def test_documents_without_tokens_or_edges_are_counted(spark: SparkSession) -> None:
    given = [
        document("a", "alpha beta"),
        document("b", "alpha beta"),
        *(document(f"{n}", "()") for n in range(3)),
    ]
    group = Group(spark.createDataFrame(arrow(given)), CONFIG)
    none = spark.createDataFrame([], spark_schema(EDGES))
    for row in sweep(group.documents, group.signatures, none, CONFIG.part(SweepConfig)).collect():
        assert (row.documents, row.kept, row.removed, row.removed_bytes) == (5, 2, 3, 14)
        assert (row.similar_pairs, row.largest_component) == (0, 2)


def test_nothing_is_swept_as_nothing(spark: SparkSession) -> None:
    documents = spark.createDataFrame(arrow([]))
    signed = spark.createDataFrame([], spark_schema(SIGNATURES))
    none = spark.createDataFrame([], spark_schema(EDGES))
    rows = sweep(documents, signed, none, CONFIG.part(SweepConfig)).collect()
    assert [(row.documents, row.kept, row.largest_component) for row in rows] == [(0, 0, 0)] * 3
