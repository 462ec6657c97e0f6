"""The options of clusters in a round: how they are cut, and how they are judged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from factory.frozen_model import FrozenModel
from spark_udfs.clusters.verdicts import ClusterVerdict

CHECKPOINT = "transformers:"  # begins the name of a proxy that is a checkpoint


class ClusterOptions(FrozenModel):
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
        default=3,
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
    noise: float = Field(
        default=5.5,
        gt=0,
        allow_inf_nan=False,
        description="robust deviations above the median loss beyond which it is discarded",
    )
    easy: float = Field(
        default=3, gt=0, description="robust deviations below the median loss beyond which it is downsampled"
    )
    rate: Annotated[float, Field(ge=0, le=1)] = Field(
        default=0.25, description="share of the documents that stay of a downsampled cluster"
    )
    verdicts: Mapping[int, ClusterVerdict] = Field(
        default={}, description="verdicts by hand, by number of the cluster: `keep`, `downsample`, `discard`"
    )

    @property
    def has_checkpoint(self) -> bool:
        """Whether the proxy is a checkpoint, not n-grams that a table trains."""
        return self.proxy is not None and self.proxy.startswith(CHECKPOINT)

    @property
    def judging(self) -> frozenset[str]:
        """The fields that decide verdicts alone."""
        return frozenset({"noise", "easy", "rate", "verdicts"})

    def cut_alike(self, other: ClusterOptions) -> bool:
        """Whether `other` cuts and scores the same clusters; their verdicts may differ."""
        cut = set(ClusterOptions.model_fields) - self.judging
        return self.model_dump(include=cut) == other.model_dump(include=cut)
