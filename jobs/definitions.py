"""What Dagster loads: every asset of the corpus, the job of the whole line, a schedule and a sensor."""

from __future__ import annotations

import dagster as dg

from assets.corpus import corpus
from factory.orchestration.line import definitions
from factory.settings import settings
from jobs.schedules import nightly
from jobs.sensors import Watched, new_input

CORPUS = corpus(settings())

WATCHED = [Watched(dataset, paths) for dataset, paths in CORPUS.paths.items()]

line = dg.define_asset_job(
    "line", selection=dg.AssetSelection.all(), description="The whole line, source to sequence."
)

defs = definitions(
    CORPUS.assets,
    settings(),
    jobs=[line],
    schedules=[nightly(CORPUS.assets)],
    sensors=[new_input(CORPUS.assets, WATCHED)],
)
