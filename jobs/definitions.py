"""Dagster's entry point: the assets of the corpus, the job `pipeline`, a schedule and a sensor."""

from __future__ import annotations

import dagster as dg

from assets.corpus import corpus
from factory.garbage import collect_as_usual
from factory.orchestration.datasets.blend_asset import blend_asset
from factory.orchestration.host.definitions import definitions
from factory.settings import settings
from jobs.schedules import nightly
from jobs.sensors import new_input
from jobs.watched import Watched

CORPUS = corpus(settings())

WATCHED = [Watched(dataset, paths, CORPUS.partitions.get(dataset)) for dataset, paths in CORPUS.paths.items()]

# A job has one partitions definition at most, so partitioned assets are left to backfills and the CLI.
pipeline = dg.define_asset_job(
    "pipeline",
    selection=dg.AssetSelection.assets(*(asset for asset in CORPUS.assets if asset.partitions_def is None)),
    description="Makes every table again, from source to sequence, except partitioned tables, which a "
    "backfill or `factory materialize` makes.",
)

defs = definitions(
    CORPUS.assets,
    settings(),
    jobs=[pipeline],
    schedules=[nightly(CORPUS.assets, WATCHED)],
    sensors=[new_input(CORPUS.assets, WATCHED)],
    external=[blend_asset(CORPUS)],
)

collect_as_usual()
