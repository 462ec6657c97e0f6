"""Documents that join a group: signed alone, and decided as if the whole group had been signed."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from factory.dedup.config import DedupConfig
from factory.dedup.signatures import signatures
from factory.dedup.vocabulary import vocabulary
from factory.errors import ConfigurationError
from tests.dedup.bagged import located_bags
from tests.dedup.corpus import arrow, corpus
from tests.dedup.group import Group, Rows
from tests.dedup.group import rows as sorted_rows

CONFIG = DedupConfig(kind="code")
ROWS = corpus(24, seed=4)
FIRST = [row for number, row in enumerate(ROWS) if number % 3]  # the others hold copies of them and new texts

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def first(spark: SparkSession) -> Group:
    return Group(spark.createDataFrame(arrow(FIRST)).cache(), CONFIG)


@pytest.fixture(scope="module")
def whole(spark: SparkSession, first: Group) -> Group:
    """All documents, to be signed with the vocabulary of the first."""
    return Group(spark.createDataFrame(arrow(ROWS)).cache(), CONFIG, vocabulary=first.vocabulary)


def rows(frame: DataFrame) -> Rows:
    return sorted_rows(frame, "doc_id")


def test_a_grown_group_equals_a_group_signed_whole(first: Group, whole: Group) -> None:
    signed = whole.signed(first.signatures)
    assert rows(signed) == rows(whole.signatures)
    assert signed.count() > first.signatures.count()
    grown = Group(whole.documents, CONFIG, bags=whole.bags, vocabulary=whole.vocabulary, signatures=signed)
    decided = rows(grown.decisions)
    assert decided == rows(whole.decisions)
    assert {row["reason"] for row in decided} == {"kept", "exact_copy", "similar", "no_tokens"}


def test_known_texts_are_not_signed_again(first: Group, whole: Group) -> None:
    grown = rows(whole.signed(marked(first.signatures)))
    known = {row["content_hash"] for row in FIRST}
    assert {row["content_hash"] for row in grown if row["n_distinct"] == -1} == known
    assert len(grown) > len(known)


def marked(signed: DataFrame) -> DataFrame:
    """Signatures with a count that signing cannot give."""
    return signed.withColumn("n_distinct", F.lit(-1).cast("long"))


def test_documents_that_have_left_leave_no_signature(first: Group, whole: Group) -> None:
    assert rows(first.signed(whole.signatures)) == rows(first.signatures)


def test_texts_of_partitions_are_found_wherever_they_lie(whole: Group) -> None:
    partition = F.when(F.col("doc_id") < "5", "early").when(F.col("doc_id") < "a", "late")
    parted = whole.documents.withColumn("partition", partition)
    late = parted.where("partition = 'late'")
    known = signatures(late, located_bags(late), whole.vocabulary, whole.signing).localCheckpoint()
    group = Group(parted, CONFIG, bags=whole.bags, vocabulary=whole.vocabulary)
    assert rows(group.signed(known)) == rows(group.signatures)


def test_signatures_of_another_version_are_made_again(first: Group, whole: Group) -> None:
    other = marked(first.signatures).withColumn("version", F.lit("other"))
    assert rows(whole.signed(other)) == rows(whole.signatures)


def test_signatures_are_not_compared_by_another_vocabulary(first: Group, whole: Group) -> None:
    recounted = vocabulary(whole.bags)
    group = Group(first.documents, CONFIG, bags=first.bags, vocabulary=recounted, signatures=first.signatures)
    with pytest.raises(ConfigurationError, match="its settings and vocabulary ask for `lpmh-256x8-"):
        _ = group.edges
