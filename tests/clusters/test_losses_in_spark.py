"""The proxy, the losses and the verdicts of clusters in Spark: the same in any partitioning."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from factory.clusters.losses import losses
from factory.clusters.proxy import MOST_TRAINED, proxy_table
from factory.clusters.verdicts import VerdictLimits, verdicts
from factory.errors import NotFound
from factory.lake.schemas.clusters import LOSSES, PROXY, VERDICTS
from factory.models.arrow_stream import arrow_stream_of
from factory.models.sampling import unit_interval
from spark_udfs.clusters.losses import DOCUMENTS, cluster_losses, load
from tests.clusters import planted_texts

pytestmark = pytest.mark.spark

KINDS = ("english",) * 8 + ("german", "template", "noise")
SIZES = (150, *(60,) * 10, 10)


def rows() -> list[tuple[str, str, int, str | None]]:
    """(doc_id, text, cluster, language); the last cluster is small, and one document has no text."""
    documents_with_text = [
        (f"{cluster}-{number}", text, cluster, "de" if kind == "german" else "en")
        for cluster, (kind, size) in enumerate(zip((*KINDS, "english"), SIZES, strict=True))
        for number, text in enumerate(planted_texts.texts(kind, cluster, size))
    ]
    return [*documents_with_text, ("empty", "", 11, None)]


@pytest.fixture(scope="module")
def documents(spark: SparkSession) -> DataFrame:
    schema = "doc_id string, text string, cluster int, language string"
    return spark.createDataFrame(rows(), schema)


def tables_of(documents: DataFrame, n_tasks: int) -> tuple[pa.Table, pa.Table, pa.Table]:
    parts = documents.repartition(n_tasks)
    clusters = parts.selectExpr("doc_id", "0 AS cell", "cluster")
    texts = parts.select("doc_id", "text", "language")
    proxy = proxy_table(texts, "raw.planted")
    losses_rows = losses(clusters, texts, None, proxy, 3.0)
    verdicts_of = verdicts(losses_rows, VerdictLimits(), {1: "downsample"})
    return proxy.toArrow(), losses_rows.toArrow().sort_by("cluster"), verdicts_of.toArrow().sort_by("cluster")


def test_planted_clusters_get_their_verdicts_in_any_partitioning(documents: DataFrame) -> None:
    tables = tables_of(documents, 1)
    for single, eight, schema in zip(tables, tables_of(documents, 8), (PROXY, LOSSES, VERDICTS), strict=True):
        assert single.equals(eight)
        assert single.column_names == schema.names
    proxy, losses_table, verdicts_of = tables
    assert dict(zip(range(12), verdicts_of["verdict"].to_pylist(), strict=True)) == {
        **dict.fromkeys((0, *range(2, 9)), "keep"),
        1: "downsample",
        9: "downsample",
        10: "discard",
        11: "too_small",
    }
    assert losses_table["n_documents"].to_pylist() == [*SIZES[:-1], 11]
    assert losses_table["language"].to_pylist()[7:10] == ["en", "de", "en"]
    assert "gauge" in losses_table["terms"][9].as_py()
    units = {
        row.doc_id: row.unit for row in documents.select("doc_id", unit_interval().alias("unit")).collect()
    }
    [below] = proxy["trained_below"].to_pylist()
    assert 0 < below <= MOST_TRAINED
    training = [key for key, unit in units.items() if unit < below and key != "empty"]
    assert proxy["n_documents"].to_pylist() == [len(training)]
    by_hash = sorted((units[key], key, text) for key, text, cluster, _ in rows() if cluster == 0)
    sample = [(key, text) for unit, key, text in by_hash if unit >= below][:DOCUMENTS]
    assert losses_table["examples"][0].as_py() == [key for key, _ in sample[:20]]
    assert losses_table["n_sampled"][0].as_py() == DOCUMENTS
    direct = cluster_losses(pa.array([text for _, text in sample]), load(arrow_stream_of(proxy)), 3.0)
    assert losses_table["loss_after"][0].as_py() == pytest.approx(direct.after)


def test_a_cluster_that_only_trained_the_proxy_has_a_row(documents: DataFrame) -> None:
    tiny = documents.where("cluster = 11").cache()
    parts = tiny.select("doc_id", "text", "language")
    proxy = proxy_table(parts, "raw.planted")
    below = proxy.toArrow()["trained_below"][0].as_py()
    alone = tiny.where(unit_interval() < below).selectExpr("doc_id", "0 AS cell", "cluster")
    assert alone.count() > 0
    [row] = losses(alone, parts, None, proxy).toArrow().to_pylist()
    assert (row["n_sampled"], row["n_families"], row["terms"], row["examples"]) == (0, 0, [], [])
    assert (row["loss"], row["loss_after"]) == (None, None)


def test_a_proxy_of_another_table_leaves_every_document_to_be_scored(documents: DataFrame) -> None:
    [row] = proxy_table(documents, "raw.other", own=False).toArrow().to_pylist()
    assert (row["trained_below"], row["n_documents"]) == (0.0, len(rows()) - 1)


def test_documents_without_text_make_no_proxy(documents: DataFrame) -> None:
    with pytest.raises(NotFound, match=r"No document of raw\.planted has text"):
        proxy_table(documents.where("doc_id = 'empty'"), "raw.planted")
