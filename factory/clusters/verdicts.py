"""A verdict on each cluster by its losses: VERDICTS.

A high loss after the proxy continued on half of a cluster means noise, and the cluster is discarded. A low
one means templates or repetition, and it is downsampled. High and low are relative to the clusters of its
language.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from factory.errors import ConfigurationError
from factory.frozen_model import FrozenModel
from factory.lake.schemas.clusters import VERDICTS
from spark_udfs.clusters.verdicts import ADDED, ClusterVerdict, Judge, Scales, logarithms


class VerdictLimits(FrozenModel):
    """Where noise and repetition begin, and the share of a repetitive cluster that stays."""

    noise: float = Field(
        default=5.5,
        gt=0,
        allow_inf_nan=False,
        description="robust deviations above the median loss beyond which it is discarded",
    )
    easy: float = Field(
        default=3.0,
        gt=0,
        description="deviations below the median loss beyond which it is downsampled",
    )
    rate: float = Field(
        default=0.25, ge=0, le=1, description="share of the documents that stay of a downsampled cluster"
    )


def judge(losses: pa.Table, limits: VerdictLimits, by_hand: Mapping[int, ClusterVerdict]) -> Judge:
    """Return the judge of clusters (cluster, language, loss, loss_after); losses are null for too small ones.

    `by_hand` overrules verdicts. Raises ConfigurationError for a cluster in it that does not exist.
    """
    unknown = sorted(set(by_hand) - set(losses["cluster"].to_pylist()))
    if unknown:
        raise ConfigurationError(
            f"The verdicts overrule cluster {unknown[0]}, and there is no such cluster. Clusters: "
            f"{pc.min(losses['cluster'])} to {pc.max(losses['cluster'])}."
        )
    languages = np.array(losses["language"].to_pylist(), dtype=object)
    before, after = (losses[name].to_numpy().astype(np.float64) for name in ("loss", "loss_after"))
    return Judge(
        before=Scales.from_losses(languages, before),
        after=Scales.from_losses(languages, after),
        log_after=Scales.from_losses(languages, logarithms(after)),
        noise=limits.noise,
        easy=limits.easy,
        rate=limits.rate,
        by_hand=dict(by_hand),
    )


def verdicts(losses: DataFrame, limits: VerdictLimits, by_hand: Mapping[int, ClusterVerdict]) -> DataFrame:
    """The rows of LOSSES with their verdicts: VERDICTS.

    Runs a job when called, to read the losses. Raises ConfigurationError for a cluster of `by_hand` that does
    not exist.
    """
    numbers = losses.select("cluster", "language", "loss", "loss_after").toArrow()
    schema = StructType([*losses.schema.fields, *from_arrow_schema(ADDED).fields])
    return losses.mapInArrow(judge(numbers, limits, by_hand).verdicts, schema).select(*VERDICTS.names)
