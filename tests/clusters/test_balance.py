"""A dataset balanced in Spark: categories, rates, decisions, and the distributions."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from factory.clusters.balance import balance_table
from factory.clusters.balance_options import NamedShares
from factory.clusters.categories import categories
from factory.clusters.distribution import distribution
from factory.errors import ConfigurationError
from factory.filters.rules.balanced import BalanceRate
from factory.lake.schemas.clusters import BALANCE, CATEGORIES, CLUSTERS, DISTRIBUTION
from factory.lake.schemas.ingest import FACTS, RAW
from tests.frames import assert_declared, shuffle_partitions

pytestmark = pytest.mark.spark

N_DOCUMENTS = 3_000
OVER = ["metadata.topic"]
STAYS = "balance_rate IS NULL OR balance <= balance_rate"


def raw(spark: SparkSession, rows: list[dict[str, Any]]) -> DataFrame:
    plain = {"source": "s", "key": "k", "content_hash": "h", "n_bytes": 1, "media_type": "text/plain"}
    complete = [dict.fromkeys(RAW.names) | plain | row for row in rows]
    return spark.createDataFrame(pa.Table.from_pylist(complete, schema=RAW.columns))


def heavy_tailed_topics(spark: SparkSession, n_documents: int = N_DOCUMENTS, first: int = 0) -> DataFrame:
    """Documents of which half have topic 0, a quarter topic 1, ...; the topic 9 has none."""
    numbers = np.arange(first, first + n_documents)
    topics = [min(8, int(number + 1 & -(number + 1)).bit_length() - 1) for number in numbers]
    return raw(
        spark,
        [
            {"doc_id": f"d{number}", "metadata": [("topic", str(topic))], "n_bytes": 1 << topic}
            for number, topic in zip(numbers.tolist(), topics, strict=True)
        ],
    )


def test_every_kind_of_field_gives_categories(spark: SparkSession) -> None:
    documents = raw(
        spark,
        [
            {"doc_id": "a", "n_bytes": 4096, "license": "MIT", "metadata": [("topic", "web x forum")]},
            {"doc_id": "b", "n_bytes": 8191, "stars": 3, "created_at": datetime(2020, 1, 1, tzinfo=UTC)},
            {"doc_id": "c", "n_bytes": 0},
            {"doc_id": "d", "n_bytes": (1 << 53) - 1},
        ],
    )
    clusters = [("a", 3, 17, 0.1, None), ("b", -1, -1, None, None), ("c", 0, 2, 0.2, None)]
    facts = [{"doc_id": "b", "facts": [("rank", "7")], "partition": None}]
    tables = {
        "clusters": spark.createDataFrame(
            clusters, "doc_id string, cell int, cluster int, distance double, p string"
        ),
        "facts": spark.createDataFrame(pa.Table.from_pylist(facts, schema=FACTS.columns)),
        "kind": spark.createDataFrame([("a", "essay"), ("d", None)], "doc_id string, kind string"),
    }
    assert {"cell", "cluster"} <= set(CLUSTERS.names)

    def cells(*over: str) -> list[str]:
        frame = categories(documents, over, tables)
        assert frame.columns == CATEGORIES.names
        return [row.category for row in frame.orderBy("doc_id").collect()]

    assert cells("length") == ["4096", "4096", "0", str(1 << 52)]
    assert cells("cell", "cluster") == ["3 x 17", "-1 x -1", "0 x 2", "none x none"]
    assert cells("facts.rank", "kind") == ["none x essay", "7 x none", "none x none", "none x none"]
    assert cells("license", "stars") == ["MIT x none", "none x 3", "none x none", "none x none"]
    assert cells("metadata.topic")[0] == "web x forum"
    assert cells("metadata.topic", "length")[0] == "web × forum x 4096"


def draws(cells: DataFrame, rates: DataFrame) -> DataFrame:
    """The draw of each document and the rate of its category, as the rule reads them."""
    return BalanceRate("web").values(cells, {"categories": cells, "rates": rates})


def test_a_dataset_becomes_uniform_and_new_documents_meet_its_rates(spark: SparkSession) -> None:
    documents = heavy_tailed_topics(spark)
    cells = categories(documents, ["metadata.topic"], {})
    table = balance_table(cells, OVER, "uniform", 0.25)
    assert_declared(table, BALANCE)
    rows = {row.category: row for row in table.collect()}
    assert [rows[str(topic)].n_documents for topic in range(9)] == [1500, 750, 375, 188, 94, 47, 23, 12, 11]
    assert {row.target for row in rows.values()} == {rows["0"].target}
    assert [cell for cell in rows if rows[cell].rate == 1.0] == ["4", "5", "6", "7", "8"]
    assert rows["8"].n_missing == np.ceil(rows["8"].target) - 11
    assert rows["0"].n_missing == 0

    def staying_ids(table: DataFrame, cells: DataFrame) -> set[str]:
        return {row.doc_id for row in draws(cells, table).where(STAYS).collect()}

    with shuffle_partitions(spark, 3):
        assert balance_table(cells.repartition(7), OVER, "uniform", 0.25).collect() == table.collect()
    large = staying_ids(table, cells)
    by_cell = draws(cells, table).where(STAYS).groupBy("category").count().collect()
    for cell, n_documents in by_cell:
        assert abs(n_documents - min(rows[cell].target, rows[cell].n_documents)) <= 1
    assert staying_ids(balance_table(cells, OVER, "uniform", 749), cells) <= large
    assert staying_ids(balance_table(cells, OVER, "uniform", 400), cells) < large
    later = heavy_tailed_topics(spark, 500, N_DOCUMENTS).unionByName(
        raw(spark, [{"doc_id": "new", "metadata": []}])
    )
    all_cells = categories(documents.unionByName(later), ["metadata.topic"], {})
    assert staying_ids(table, all_cells) & {f"d{number}" for number in range(N_DOCUMENTS)} == large
    [new] = draws(all_cells, table).where("balance_rate IS NULL").collect()
    assert (new.doc_id, new.category) == ("new", "none")


def test_a_size_or_share_that_the_documents_cannot_have_is_refused(spark: SparkSession) -> None:
    cells = categories(heavy_tailed_topics(spark, 20), ["metadata.topic"], {})
    with pytest.raises(ConfigurationError, match="is 21 documents, but the round has 20"):
        balance_table(cells, OVER, "uniform", 21)
    with pytest.raises(
        ConfigurationError, match=r"category with a share in `balance`: `9`\. Use one of `0`, `1`"
    ):
        balance_table(cells, OVER, NamedShares({"9": 0.5}), 0.5)
    assert balance_table(cells.where("false"), OVER, "uniform", 0.5).count() == 0


def test_the_distribution_of_every_field_and_of_their_combination_is_counted(spark: SparkSession) -> None:
    documents = heavy_tailed_topics(spark, 7)  # topics 0 1 0 2 0 1 0
    ids = [f"d{number}" for number in range(7)]
    rows_of_ids = [[(doc_id,) for doc_id in subset] for subset in (ids[1:], ids[1:4])]
    over = ["metadata.topic", "length"]
    frames = [spark.createDataFrame(rows, "doc_id string") for rows in rows_of_ids]
    counts = distribution(documents, over, {}, *frames)
    assert_declared(counts, DISTRIBUTION)
    rows = {
        (row.over, row.category): (row.n_before, row.n_after, row.n_deduplicated) for row in counts.collect()
    }
    assert rows == {
        ("metadata.topic", "0"): (4, 3, 1),
        ("metadata.topic", "1"): (2, 2, 1),
        ("metadata.topic", "2"): (1, 1, 1),
        ("length", "1"): (4, 3, 1),
        ("length", "2"): (2, 2, 1),
        ("length", "4"): (1, 1, 1),
        ("metadata.topic x length", "0 x 1"): (4, 3, 1),
        ("metadata.topic x length", "1 x 2"): (2, 2, 1),
        ("metadata.topic x length", "2 x 4"): (1, 1, 1),
    }
    by_length = distribution(documents, ["length"], {}, *frames)
    assert {row.over for row in by_length.collect()} == {"length"}
