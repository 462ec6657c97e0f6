"""Documents that join a group: signed alone, and decided as if the whole group had been signed."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from factory.dedup.buckets import BucketConfig, buckets
from factory.dedup.components import components
from factory.dedup.config import DedupConfig
from factory.dedup.decisions import DecisionConfig, decisions
from factory.dedup.edges import EdgeConfig, edges
from factory.dedup.signatures import SignatureConfig, signatures
from factory.dedup.vocabulary import vocabulary
from factory.errors import ConfigurationError
from tests.dedup.bagged import located_bags
from tests.dedup.corpus import arrow, corpus

CONFIG = DedupConfig(kind="code")
SIGNED = CONFIG.part(SignatureConfig)
ROWS = corpus(24, seed=4)
FIRST = [row for number, row in enumerate(ROWS) if number % 3]  # the others hold copies of them and new texts

pytestmark = pytest.mark.spark


class Group:
    """Documents, the vocabulary of the first of them, and these signed with it."""

    def __init__(self, spark: SparkSession) -> None:
        self.first, self.all = (spark.createDataFrame(arrow(rows)).cache() for rows in (FIRST, ROWS))
        self.first_bags, self.all_bags = (located_bags(it) for it in (self.first, self.all))
        self.vocabulary = vocabulary(self.first_bags).localCheckpoint()
        self.before = signatures(self.first, self.first_bags, self.vocabulary, SIGNED).localCheckpoint()

    def signed(self, before: DataFrame | None) -> DataFrame:
        return signatures(self.all, self.all_bags, self.vocabulary, SIGNED, before).localCheckpoint()

    def decided(self, signed: DataFrame) -> list[dict[str, object]]:
        found = buckets(signed, CONFIG.part(BucketConfig), SIGNED.version())
        joined = edges(
            found, signed, self.all_bags, self.all, self.vocabulary, CONFIG.part(EdgeConfig), SIGNED.version()
        ).localCheckpoint()
        labelled = components(joined, signed, CONFIG.threshold)
        return rows(decisions(self.all, signed, joined, labelled, CONFIG.part(DecisionConfig)))


def rows(frame: DataFrame) -> list[dict[str, object]]:
    return sorted(frame.toArrow().to_pylist(), key=lambda row: str(row["doc_id"]))


@pytest.fixture(scope="module")
def group(spark: SparkSession) -> Group:
    return Group(spark)


def test_a_grown_group_equals_a_group_signed_whole(group: Group) -> None:
    grown, whole = group.signed(group.before), group.signed(None)
    assert rows(grown) == rows(whole)
    assert grown.count() > group.before.count()
    decided = group.decided(grown)
    assert decided == group.decided(whole)
    assert {row["reason"] for row in decided} == {"kept", "exact_copy", "similar", "no_tokens"}


def test_known_texts_are_not_signed_again(group: Group) -> None:
    marked = group.before.withColumn("n_distinct", F.lit(-1).cast("long"))  # nothing that signing could give
    known = {row["content_hash"] for row in FIRST}
    grown = rows(group.signed(marked))
    assert {row["content_hash"] for row in grown if row["n_distinct"] == -1} == known
    assert len(grown) > len(known)


def test_documents_that_have_left_leave_no_signature(group: Group) -> None:
    everything = group.signed(None)
    left = signatures(group.first, group.first_bags, group.vocabulary, SIGNED, everything)
    assert rows(left) == rows(group.before)


def test_texts_of_partitions_are_found_wherever_they_lie(group: Group) -> None:
    parted = group.all.withColumn(
        "partition", F.when(F.col("doc_id") < "5", "early").when(F.col("doc_id") < "a", "late")
    )
    late = parted.where("partition = 'late'")
    known = signatures(late, located_bags(late), group.vocabulary, SIGNED).localCheckpoint()
    grown = signatures(parted, group.all_bags, group.vocabulary, SIGNED, known)
    assert rows(grown) == rows(signatures(parted, group.all_bags, group.vocabulary, SIGNED))


def test_signatures_of_another_version_are_made_again(group: Group) -> None:
    other = group.before.withColumn("version", F.lit("other")).withColumn(
        "n_distinct", F.lit(-1).cast("long")
    )
    assert rows(group.signed(other)) == rows(group.signed(None))


def test_signatures_are_not_compared_by_another_vocabulary(group: Group) -> None:
    counted_anew = vocabulary(group.all_bags)
    found = buckets(group.before, CONFIG.part(BucketConfig), SIGNED.version())
    with pytest.raises(ConfigurationError, match="its settings and vocabulary ask for `lpmh-256x8-"):
        edges(
            found,
            group.before,
            group.first_bags,
            group.first,
            counted_anew,
            CONFIG.part(EdgeConfig),
            SIGNED.version(),
        )
