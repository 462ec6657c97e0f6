"""The bench of components: its graph, and scipy's labels against networkx."""

from __future__ import annotations

import logging
from collections import Counter
from pathlib import Path

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.dedup.components.graph import batches, graph, names
from bench.dedup.components.measure import counted_rounds, labelled, labels

N_EDGES = 20_000


def test_a_graph_has_the_edges_asked_for_and_no_loops() -> None:
    n_documents, edges = graph(N_EDGES, seed=2)
    assert edges.shape == (N_EDGES, 2)
    assert (edges[:, 0] != edges[:, 1]).all()
    assert edges.min() == 0
    assert edges.max() < n_documents
    assert np.array_equal(edges, graph(N_EDGES, seed=2)[1])
    assert not np.array_equal(edges, graph(N_EDGES, seed=3)[1])


def test_a_graph_has_hubs_and_long_paths() -> None:
    _, edges = graph(N_EDGES, seed=2)
    degrees = Counter(edges.ravel().tolist())
    assert max(degrees.values()) > 50
    path = nx.Graph(edges[(edges[:, 1] - edges[:, 0] == 1) & (edges[:, 1] < N_EDGES // 50)].tolist())
    assert max(len(part) for part in nx.connected_components(path)) > 100


def test_ids_are_distinct_and_look_like_those_of_documents() -> None:
    ids = names(np.arange(1_000)).to_pylist()
    assert len(set(ids)) == 1_000
    assert all(len(doc_id) == 32 and set(doc_id) <= set("0123456789abcdef") for doc_id in ids)
    assert ids != sorted(ids)


def test_labels_are_the_least_ids_of_components(tmp_path: Path) -> None:
    n_documents, edges = graph(N_EDGES, seed=4)
    ids = names(np.arange(n_documents))
    named = ids.to_pylist()
    parts = nx.connected_components(nx.Graph(edges.tolist()))
    expected = {named[it]: min(named[other] for other in part) for part in map(list, parts) for it in part}
    found = labels(n_documents, edges, ids)
    assert dict(zip(*(column.to_pylist() for column in found.columns), strict=True)) == expected
    pq.write_table(
        found.take(pa.array(np.random.default_rng(1).permutation(len(found)))), tmp_path / "0.parquet"
    )
    assert labelled(tmp_path).equals(found.combine_chunks())
    sent = pa.Table.from_batches(batches(edges, ids))
    assert sent["left"].to_pylist() == [named[left] for left in edges[:, 0]]
    assert sent["right"].to_pylist() == [named[right] for right in edges[:, 1]]


def test_rounds_are_counted_while_somebody_listens() -> None:
    log = logging.getLogger("factory.dedup.components")
    with counted_rounds() as seen:
        log.info("components: round %d leaves %d edges", 1, 70)
        log.info("components: round %d leaves %d edges", 2, 60)
    log.info("components: round %d leaves %d edges", 3, 50)
    assert seen == [70, 60]
