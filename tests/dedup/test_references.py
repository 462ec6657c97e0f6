"""Documents that a group compares with and does not decide on, on real files with every kind of duplicate."""

from __future__ import annotations

from collections import defaultdict

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from factory.dedup.config import DedupConfig
from factory.dedup.priority import REFERENCE
from factory.lake.schemas.dedup import DECISIONS
from tests.dedup.corpus import arrow, corpus
from tests.dedup.group import Group, rows
from tests.frames import assert_declared

CONFIG = DedupConfig(kind="code")
ROWS = corpus(30, seed=5)

pytestmark = pytest.mark.spark


def test_what_resembles_a_reference_leaves_and_every_reference_stays(spark: SparkSession) -> None:
    documents = spark.createDataFrame(arrow(ROWS)).withColumn(REFERENCE, F.col("doc_id") < "8")
    group = Group(documents, CONFIG)
    assert_declared(group.decisions, DECISIONS)
    decisions = {row["doc_id"]: row for row in rows(group.decisions, "doc_id")}
    references = {doc_id for doc_id in decisions if str(doc_id) < "8"}
    assert len(decisions) == len(ROWS)
    assert {decisions[doc_id]["reason"] for doc_id in references} == {REFERENCE}
    assert all(decisions[doc_id]["kept"] for doc_id in references)
    remaining = {doc_id for doc_id, row in decisions.items() if row["kept"]}

    text_of = {row["doc_id"]: row["content_hash"] for row in ROWS}
    documents_of = defaultdict(set)
    for doc_id, text in text_of.items():
        documents_of[text].add(doc_id)
    similar = defaultdict(set)
    for row in rows(group.edges, "left", "right"):
        if float(str(row["similarity"])) >= CONFIG.threshold:
            ends = [documents_of[text_of[row[end]]] for end in ("left", "right")]
            for near, far in (ends, ends[::-1]):
                for doc_id in near:
                    similar[doc_id] |= far
    n_for_references = 0
    for doc_id in decisions.keys() - references:
        twins = documents_of[text_of[doc_id]] - {doc_id}
        neighbors = similar[doc_id] | twins
        assert (doc_id in remaining) == (not neighbors & remaining)
        if neighbors & references:
            n_for_references += 1
            assert decisions[doc_id]["kept_document"] in remaining
    assert n_for_references > 10
    # A pair of similar references stays, so the rule is not that of the other documents.
    assert any(similar[doc_id] & references for doc_id in references)
