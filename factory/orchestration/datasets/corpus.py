"""A corpus: the datasets that are run together, and the blend that the demo serves of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import dagster as dg


@dataclass(frozen=True)
class Corpus:
    """Assets, and by name the datasets (with variants) and dedup groups that they make.

    `title` says what it is, to stand behind "the pipeline on". `weights` are the rows a step of the demo's
    blend has of each dataset, `seed` decides their order, `pad` whether rows of unlike lengths may stand
    together. `paths` are the files and folders that datasets are read from, where they are read from any;
    `partitions` those of datasets that have some.
    """

    title: str
    assets: tuple[dg.AssetsDefinition, ...]
    datasets: tuple[str, ...]
    groups: tuple[str, ...]
    weights: Mapping[str, int]
    seed: int = 7
    pad: bool = False
    paths: Mapping[str, tuple[Path, ...]] = field(default_factory=dict)
    partitions: Mapping[str, dg.PartitionsDefinition[str]] = field(default_factory=dict)
