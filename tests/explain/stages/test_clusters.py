"""The cluster of a document, as a trace shows it."""

from __future__ import annotations

from pathlib import Path

from factory.explain.trace import trace_documents
from factory.lake import names
from factory.lake.names import TableName
from factory.lake.schemas.clusters import CLUSTERS
from factory.lake.schemas.filters import FILTERED
from factory.lake.tables import Lake
from factory.settings import Settings
from tests.explain.lakes import documents, publish


def publish_verdicts(lake: Lake, dataset: str, *upstream: TableName) -> None:
    row = {"doc_id": "a", "kept": True, "rejections": [], "without_value": []}
    publish(lake, names.filtered(dataset), FILTERED, [row], *upstream)


def test_a_variant_has_the_cluster_of_its_base_only_if_its_verdicts_were_made_from_it(tmp_path: Path) -> None:
    lake = Lake(Settings(home=tmp_path))
    raw, clusters = names.raw("web"), names.clusters("web")
    documents(lake, "web", "a")
    publish(lake, clusters, CLUSTERS, [{"doc_id": "a", "cell": 2, "cluster": 7, "distance": 0.1}], raw)
    publish_verdicts(lake, "web", raw, clusters)
    publish_verdicts(lake, "web__same", raw, clusters)
    publish_verdicts(lake, "web__plain", raw)
    [trace] = trace_documents(lake, ["a"])
    assert trace.cluster == "cluster 7 of cell 2"
    assert {name: variant.cluster for name, variant in trace.variants.items()} == {
        "web__same": "cluster 7 of cell 2",
        "web__plain": "",
    }
