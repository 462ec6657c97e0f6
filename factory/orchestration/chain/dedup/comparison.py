"""The assets that compare the documents of a dedup group, and the assets that report on the comparison."""

from __future__ import annotations

from dataclasses import replace

import dagster as dg
from pyspark.sql import DataFrame

from factory.dedup.bags import LARGE, bags
from factory.dedup.buckets import BucketConfig, buckets
from factory.dedup.config import DedupConfig
from factory.dedup.edges import EdgeConfig, edges
from factory.dedup.largest_buckets import LargestBucketsConfig, largest_buckets
from factory.dedup.recall import RecallConfig, recall
from factory.dedup.signatures import SignatureConfig, signatures
from factory.dedup.sweep import SweepConfig, sweep
from factory.dedup.vocabulary import vocabulary
from factory.lake import names
from factory.lake.schemas.dedup import (
    BAGS,
    BUCKETS,
    EDGES,
    LARGEST_BUCKETS,
    RECALL,
    SIGNATURES,
    SWEEP,
    VOCABULARY,
)
from factory.lake_spark.documents import located
from factory.orchestration.chain.dedup.parts import Declaring
from factory.orchestration.groups import comparison_group, diagnostics
from factory.orchestration.table.checks import alarm, holds, remark, remarks
from factory.orchestration.table.declaration import OnDemand, Tables
from factory.spark.session import ROWS_PER_ARROW_BATCH

REPORTED_TEXTS = 20_000
"""From as many distinct texts on, every run makes the tables that report on the comparison. Their cost hardly
grows with the corpus, so a small one would pay most for what it needs least."""

LARGE_BUCKETS, COMMON_WORDS = "large_buckets_are_compared", "common_words_weigh_enough"  # checks of edges


def comparison(declare: Declaring, config: DedupConfig) -> tuple[dg.AssetsDefinition, ...]:
    """The assets from bags to edges, then recall, largest buckets and sweep, which only people read."""
    texts = declare.texts
    on_demand = OnDemand(names.dedup(declare.group, "signatures"), REPORTED_TEXTS, "distinct text")
    report = replace(declare, graph_group=diagnostics(comparison_group(declare.group)))
    signing = config.part(SignatureConfig)
    bucketing = config.part(BucketConfig)
    comparing = config.part(EdgeConfig)
    largest = config.part(LargestBucketsConfig)
    sampling = config.part(RecallConfig)
    sweeping = config.part(SweepConfig)

    @declare("bags", BAGS, reads_texts=True, config={"lexer": config.lexer})
    def group_bags(previous: DataFrame | None, **upstream: DataFrame) -> DataFrame:
        """The bag of words of every distinct text."""
        return bags(texts.located(upstream), config.lexer, previous)

    @declare(
        "vocabulary",
        VOCABULARY,
        "bags",
        config={"lexer": config.lexer},  # the vocabulary is kept while its bags change a little
        growth=config.recount_growth,
        rows_per_batch=ROWS_PER_ARROW_BATCH,  # one part of the counts has 100 KB
    )
    def group_vocabulary(previous: DataFrame | None, bags: DataFrame) -> DataFrame:
        """Every token with its term and document frequency."""
        return vocabulary(located(bags, *LARGE), previous)

    @declare("signatures", SIGNATURES, "bags", "vocabulary", reads_texts=True, config=signing)
    def group_signatures(
        previous: DataFrame | None, bags: DataFrame, vocabulary: DataFrame, **upstream: DataFrame
    ) -> DataFrame:
        """The weighted MinHash signature of every distinct text."""
        return signatures(texts.documents(upstream), located(bags, *LARGE), vocabulary, signing, previous)

    @declare("buckets", BUCKETS, "signatures", config=bucketing)
    def group_buckets(signatures: DataFrame) -> DataFrame:
        """The bucket of every signature in every band."""
        return buckets(signatures, bucketing, signing.version())

    @report(
        "largest_buckets",
        LARGEST_BUCKETS,
        "buckets",
        reads_texts=True,
        config=largest,
        on_demand=on_demand,
    )
    def group_largest_buckets(buckets: DataFrame, **upstream: DataFrame) -> DataFrame:
        """The largest buckets, with the beginning of their best document."""
        return largest_buckets(texts.documents(upstream), buckets, largest)

    @declare(
        "edges",
        EDGES,
        "buckets",
        "signatures",
        "bags",
        "vocabulary",
        reads_texts=True,
        config=comparing,
        checks=[
            holds("every_edge_is_similar", f"similarity >= {config.thresholds[0]}", "similarity"),
            remark(
                LARGE_BUCKETS,
                "Each member of a large bucket resembles a leader, or is compared with all others.",
            ),
            remark(COMMON_WORDS, "Documents that share nearly all of their words are similar by weight too."),
        ],
    )
    def group_edges(
        buckets: DataFrame,
        signatures: DataFrame,
        bags: DataFrame,
        vocabulary: DataFrame,
        **upstream: DataFrame,
    ) -> Tables:
        """The pairs of documents whose exact similarity reaches the lowest threshold."""
        documents, bags = texts.documents(upstream), located(bags, *LARGE)
        graph = edges(buckets, signatures, bags, documents, vocabulary, comparing, signing.version())
        sentences = {LARGE_BUCKETS: graph.omissions.sentence(), COMMON_WORDS: graph.common_words.sentence()}
        return Tables(
            graph.rows, said=remarks(sentences), facts=graph.omissions.facts() | graph.common_words.facts()
        )

    @report(
        "recall",
        RECALL,
        "signatures",
        "bags",
        "vocabulary",
        config=sampling,
        on_demand=on_demand,
        checks=[
            alarm(
                "buckets_find_what_they_promise",
                "count_if(pairs >= 100 AND recall < predicted - 0.1)",
                "In steps of at least 100 sampled pairs, recall is at most 0.1 below its prediction.",
                "pairs",
                "recall",
                "predicted",
            )
        ],
    )
    def group_recall(signatures: DataFrame, bags: DataFrame, vocabulary: DataFrame) -> DataFrame:
        """The share of similar pairs that share a bucket, measured on a sample."""
        return recall(signatures, located(bags, *LARGE), vocabulary, sampling)

    @report(
        "sweep",
        SWEEP,
        "signatures",
        "edges",
        reads_texts=True,
        config=sweeping,
        on_demand=on_demand,
    )
    def group_sweep(signatures: DataFrame, edges: DataFrame, **upstream: DataFrame) -> DataFrame:
        """Documents kept at each threshold of the sweep."""
        return sweep(texts.documents(upstream), signatures, edges, sweeping)

    compared = (group_bags, group_vocabulary, group_signatures, group_buckets, group_edges)
    return (*compared, group_recall, group_largest_buckets, group_sweep)
