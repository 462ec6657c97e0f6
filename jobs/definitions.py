"""What Dagster loads: every asset of the corpus, and the job that runs the whole line."""

from __future__ import annotations

import dagster as dg

from assets.corpus import corpus
from factory.orchestration.line import definitions
from factory.settings import settings

CORPUS = corpus(settings())

line = dg.define_asset_job(
    "line", selection=dg.AssetSelection.all(), description="The whole line, source to sequence."
)

defs = definitions(CORPUS.assets, settings(), jobs=[line])
