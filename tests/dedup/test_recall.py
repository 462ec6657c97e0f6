"""The recall of banding on sampled pairs, against all pairs and the curve."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from pyspark.sql import DataFrame, SparkSession

from factory.dedup import recall as recall_module
from factory.dedup.banding import candidate_probability
from factory.dedup.config import DedupConfig
from factory.dedup.recall import RecallConfig, recall
from factory.lake.schemas.dedup import RECALL, SIGNATURES
from factory.lake_spark.audit import spark_schema
from tests.dedup.corpus import arrow, corpus, document, similarities
from tests.dedup.group import Group

pytestmark = pytest.mark.spark

ROWS = corpus(40, seed=6)
CONFIG = DedupConfig(kind="code")
SAMPLED = CONFIG.part(RecallConfig)


@pytest.fixture(scope="module")
def group(spark: SparkSession) -> Group:
    return Group(spark.createDataFrame(arrow(ROWS)).localCheckpoint(), CONFIG)


def recalled(group: Group) -> DataFrame:
    return recall(group.signatures, group.bags, group.vocabulary, SAMPLED)


def test_a_sample_of_everything_counts_pairs_and_shared_buckets(
    group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recall_module, "SAMPLED_DOCUMENTS", 1000)
    signed = {row.doc_id: row.signature for row in group.signatures.collect() if row.signature}
    rows, bands = CONFIG.banding

    def share_a_bucket(pair: tuple[str, str]) -> bool:
        cut = [
            {(band, bytes(signed[name][band * rows : (band + 1) * rows])) for band in range(bands)}
            for name in pair
        ]
        return bool(cut[0] & cut[1])

    pairs, found, promised = Counter[float](), Counter[float](), Counter[float]()
    for pair, similarity in similarities(ROWS).items():
        if similarity >= 0.5 and set(pair) <= signed.keys():
            step = min(math.floor(similarity * 20), 19) / 20
            pairs[step] += 1
            found[step] += share_a_bucket(pair)
            promised[step] += candidate_probability(similarity, CONFIG.banding)
    steps = {row.similarity: row for row in recalled(group).collect()}
    assert sum(pairs.values()) > 100
    assert {step: row.pairs for step, row in steps.items()} == pairs
    for step, row in steps.items():
        assert row.pairs_found == found[step]
        assert row.recall == pytest.approx(found[step] / pairs[step])
        assert row.predicted == pytest.approx(promised[step] / pairs[step])


def test_a_sample_is_the_same_for_every_order_and_partitioning(
    group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recall_module, "SAMPLED_DOCUMENTS", 20)
    signed, found = group.signatures, recalled(group)
    shuffled = signed.orderBy(signed.doc_id.desc()).repartition(3)
    again = recall(shuffled, group.bags.repartition(5), group.vocabulary, SAMPLED)
    assert found.columns == RECALL.names
    assert sorted(found.collect()) == sorted(again.collect())
    assert 0 < sum(row.pairs for row in found.collect()) < 200


def test_documents_without_tokens_have_no_pairs(spark: SparkSession) -> None:
    documents = spark.createDataFrame(arrow([document("a", ""), document("b", "()")]))
    group = Group(documents, CONFIG)
    assert recalled(group).count() == 0
    nothing = spark.createDataFrame([], spark_schema(SIGNATURES))
    assert recall(nothing, group.bags, group.vocabulary, SAMPLED).count() == 0
