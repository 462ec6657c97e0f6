"""What Dagster loads: every asset of the factory, and the job that runs the whole line."""

from __future__ import annotations

import dagster as dg

from assets import models
from assets.code import python_installation
from assets.natural_language import python_documentation
from factory.orchestration.line import definitions
from factory.settings import settings

ASSETS = [*python_installation.ASSETS, *python_documentation.ASSETS, *models.ASSETS]

line = dg.define_asset_job(
    "line", selection=dg.AssetSelection.all(), description="The whole line, source to sequence."
)

defs = definitions(ASSETS, settings(), jobs=[line])
