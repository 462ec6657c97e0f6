"""The tables of a dedup group, each made from those before it when a test first asks for it."""

from __future__ import annotations

from functools import cached_property

from pyspark.sql import DataFrame

from factory.dedup.buckets import BucketConfig, buckets
from factory.dedup.components import components
from factory.dedup.config import DedupConfig
from factory.dedup.decisions import DecisionConfig, decisions
from factory.dedup.edges import EdgeConfig, SimilarityGraph, edges
from factory.dedup.signatures import SignatureConfig, signatures
from factory.dedup.vocabulary import vocabulary
from tests.dedup.bagged import located_bags

Rows = list[dict[str, object]]


class Group:
    """Documents and the tables made from them; each is computed once, as separate assets would."""

    def __init__(self, documents: DataFrame, config: DedupConfig, **given: DataFrame) -> None:
        """`given` are tables by name, taken as they are instead of made."""
        self.documents, self.config = documents, config
        self.signing = config.part(SignatureConfig)
        vars(self).update(given)

    @cached_property
    def bags(self) -> DataFrame:
        return located_bags(self.documents, self.config.lexer)

    @cached_property
    def vocabulary(self) -> DataFrame:
        return vocabulary(self.bags).localCheckpoint()

    @cached_property
    def signatures(self) -> DataFrame:
        return self.signed()

    def signed(self, previous: DataFrame | None = None) -> DataFrame:
        """The signatures, those of `previous` taken over."""
        made = signatures(self.documents, self.bags, self.vocabulary, self.signing, previous)
        return made.localCheckpoint()

    @cached_property
    def buckets(self) -> DataFrame:
        config = self.config.part(BucketConfig)
        return buckets(self.signatures, config, self.signing.version()).localCheckpoint()

    @cached_property
    def edges(self) -> DataFrame:
        return self.compared.rows.localCheckpoint()

    @cached_property
    def compared(self) -> SimilarityGraph:
        return edges(
            self.buckets,
            self.signatures,
            self.bags,
            self.documents,
            self.vocabulary,
            self.config.part(EdgeConfig),
            self.signing.version(),
        )

    @cached_property
    def components(self) -> DataFrame:
        return components(self.edges, self.signatures, self.config.threshold).localCheckpoint()

    @cached_property
    def decisions(self) -> DataFrame:
        return self.decided(self.config)

    def decided(self, config: DedupConfig) -> DataFrame:
        """The decisions with the keep rule of another configuration."""
        rule = config.part(DecisionConfig)
        given = self.documents, self.signatures, self.edges, self.components
        return decisions(*given, rule).localCheckpoint()


def rows(frame: DataFrame, *key: str) -> Rows:
    """The rows of a frame, sorted by `key`."""
    return sorted(frame.toArrow().to_pylist(), key=lambda row: tuple(row[name] for name in key))
