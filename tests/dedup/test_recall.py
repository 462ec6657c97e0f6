"""What banding finds of sampled pairs, beside all pairs and the curve."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from pyspark.sql import DataFrame, SparkSession

from factory.dedup import recall as recall_module
from factory.dedup.banding import candidate_probability
from factory.dedup.config import DedupConfig
from factory.dedup.recall import RecallConfig, recall
from factory.dedup.signatures import SignatureConfig, signatures
from factory.dedup.vocabulary import vocabulary
from factory.lake import schemas
from factory.lake_spark.audit import spark_schema
from tests.dedup.bagged import located_bags
from tests.dedup.corpus import arrow, corpus, document, similarities

pytestmark = pytest.mark.spark

ROWS = corpus(40, seed=6)
CONFIG = DedupConfig(kind="code")
SAMPLED = CONFIG.part(RecallConfig)


@pytest.fixture(scope="module")
def signed(spark: SparkSession) -> tuple[DataFrame, DataFrame, DataFrame]:
    documents = spark.createDataFrame(arrow(ROWS)).localCheckpoint()
    bags = located_bags(documents)
    counted = vocabulary(bags).localCheckpoint()
    return signatures(documents, bags, counted, CONFIG.part(SignatureConfig)).localCheckpoint(), bags, counted


def test_a_sample_of_everything_has_every_pair_and_which_share_a_bucket(
    signed: tuple[DataFrame, DataFrame, DataFrame], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recall_module, "SAMPLED_DOCUMENTS", 1000)
    of = {row.doc_id: row.signature for row in signed[0].collect() if row.signature}
    rows, bands = CONFIG.banding

    def share_a_bucket(pair: tuple[str, str]) -> bool:
        cut = [
            {(band, bytes(of[name][band * rows : (band + 1) * rows])) for band in range(bands)}
            for name in pair
        ]
        return bool(cut[0] & cut[1])

    pairs, found, promised = Counter[float](), Counter[float](), Counter[float]()
    for pair, similarity in similarities(ROWS).items():
        if similarity >= 0.5 and set(pair) <= of.keys():
            step = min(math.floor(similarity * 20), 19) / 20
            pairs[step] += 1
            found[step] += share_a_bucket(pair)
            promised[step] += candidate_probability(similarity, CONFIG.banding)
    told = {row.similarity: row for row in recall(*signed, SAMPLED).collect()}
    assert sum(pairs.values()) > 100
    assert {step: row.pairs for step, row in told.items()} == pairs
    for step, row in told.items():
        assert row.pairs_found == found[step]
        assert row.recall == pytest.approx(found[step] / pairs[step])
        assert row.predicted == pytest.approx(promised[step] / pairs[step])


def test_a_sample_is_the_same_for_every_order_and_partitioning(
    signed: tuple[DataFrame, DataFrame, DataFrame], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recall_module, "SAMPLED_DOCUMENTS", 20)
    of, bags, counted = signed
    told = recall(of, bags, counted, SAMPLED)
    again = recall(of.orderBy(of.doc_id.desc()).repartition(3), bags.repartition(5), counted, SAMPLED)
    assert told.columns == schemas.RECALL.names
    assert sorted(told.collect()) == sorted(again.collect())
    assert 0 < sum(row.pairs for row in told.collect()) < 200


def test_documents_without_tokens_have_no_pairs(spark: SparkSession) -> None:
    documents = spark.createDataFrame(arrow([document("a", ""), document("b", "()")]))
    bags = located_bags(documents)
    counted = vocabulary(bags)
    signed = signatures(documents, bags, counted, CONFIG.part(SignatureConfig))
    assert recall(signed, bags, counted, SAMPLED).count() == 0
    nothing = spark.createDataFrame([], spark_schema(schemas.SIGNATURES))
    assert recall(nothing, bags, counted, SAMPLED).count() == 0
