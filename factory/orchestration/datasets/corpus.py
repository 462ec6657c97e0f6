"""A corpus: datasets that run together, and the blend that the demo serves of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import dagster as dg

from spark_udfs.ingest.place import Place


@dataclass(frozen=True)
class Corpus:
    """Assets with the names of their datasets (including variants) and dedup groups.

    `title` completes "the pipeline on ...". `weights` (rows per step by dataset), `seed` and `pad` configure
    the demo's blend. `paths` are the declared files and folders of datasets, with their links, `partitions`
    the partitions definitions of partitioned datasets.
    """

    title: str
    assets: tuple[dg.AssetsDefinition, ...]
    datasets: tuple[str, ...]
    groups: tuple[str, ...]
    weights: Mapping[str, int]
    seed: int = 7
    pad: bool = False
    paths: Mapping[str, tuple[Place, ...]] = field(default_factory=dict)
    partitions: Mapping[str, dg.PartitionsDefinition[str]] = field(default_factory=dict)
