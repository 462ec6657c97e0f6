"""The options of clusters in a round: how they are cut, and how they are judged."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field, ValidationInfo, field_validator

from factory.clusters.verdicts import VerdictLimits
from spark_udfs.clusters.assignment import UNKNOWN
from spark_udfs.clusters.verdicts import ClusterVerdict

WEIGHT = 3.0
"""How often the proxy reads half A: of n-grams, each of its counts is multiplied by it."""

CHECKPOINT = "transformers:"  # begins the name of a proxy that is a checkpoint


class ClusterOptions(VerdictLimits):
    """Clusters of the documents that the earlier rounds kept, with a verdict each."""

    embedder: str = Field(
        default="lsa",
        description="turns texts into vectors: `lsa`, `onnx:FILE`, `sentence_transformers:FOLDER`, "
        "`column:metadata.NAME` or `file.py:Name`",
    )
    dimensions: int | None = Field(
        default=None, ge=2, le=4_096, description="numbers of a vector of `lsa`; default: 128"
    )
    cells: int | None = Field(
        default=None,
        ge=1,
        le=100_000,
        description="coarse clusters; default: half the root of the documents",
    )
    clusters: int | None = Field(
        default=None, ge=1, description="fine clusters of all cells; by default one for 300 documents"
    )
    proxy: str | None = Field(
        default=None,
        description="table that the proxy model is trained on, or `transformers:FOLDER`; by default a sample "
        "of the documents",
    )
    weight: float = Field(
        default=WEIGHT,
        gt=0,
        allow_inf_nan=False,
        description="how often the proxy reads half A of a cluster",
    )
    learning_rate: float | None = Field(
        default=None,
        gt=0,
        allow_inf_nan=False,
        description="size of the steps that continue a checkpoint; default: 0.0003",
    )
    verdicts: Mapping[int, ClusterVerdict] = Field(
        default={}, description="verdicts by hand, by number of the cluster: `keep`, `downsample`, `discard`"
    )

    @field_validator("clusters")
    @classmethod
    def _check_clusters(cls, clusters: int | None, fields: ValidationInfo) -> int | None:
        cells = fields.data.get("cells")
        if clusters is not None and cells is not None and clusters < cells:
            raise ValueError(
                f"{clusters:,} clusters are too few for {cells:,} cells, which have at least one each. Give "
                f"at least {cells:,} clusters, or fewer cells."
            )
        return clusters

    @field_validator("verdicts")
    @classmethod
    def _check_verdicts(cls, verdicts: Mapping[int, ClusterVerdict]) -> Mapping[int, ClusterVerdict]:
        for cluster in verdicts:
            if cluster < UNKNOWN:
                raise ValueError(
                    f"No cluster has the number {cluster}. Clusters count from 0, and {UNKNOWN} holds the "
                    "documents without a known token."
                )
        return verdicts

    @property
    def has_checkpoint(self) -> bool:
        """Whether the proxy is a checkpoint, not n-grams that a table trains."""
        return self.proxy is not None and self.proxy.startswith(CHECKPOINT)

    @property
    def judging(self) -> frozenset[str]:
        """The fields that decide verdicts alone."""
        return frozenset({*VerdictLimits.model_fields, "verdicts"})

    def cut_alike(self, other: ClusterOptions) -> bool:
        """Whether `other` cuts and scores the same clusters; their verdicts may differ."""
        cut = set(ClusterOptions.model_fields) - self.judging
        return self.model_dump(include=cut) == other.model_dump(include=cut)
