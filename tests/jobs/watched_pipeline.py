"""A code location for a real daemon: a dataset partitioned by folder, and assets without tables.

The folder is `WATCHED_FOLDER` in the environment.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import dagster as dg
from pyspark.sql import DataFrame

from factory.ingest.readers import Ingested
from factory.lake.schemas.dedup import COMPONENTS
from factory.lake.schemas.ingest import RAW, REJECTED
from factory.orchestration.host.definitions import definitions
from factory.orchestration.table.table_asset import table_asset
from factory.settings import settings
from jobs.sensors import new_input
from jobs.watched import Watched
from spark_udfs.ingest.address import place_of

FOLDER = Path(os.environ["WATCHED_FOLDER"])
FOLDERS = dg.DynamicPartitionsDefinition(name="folders")


@table_asset(
    namespace="raw",
    asset_group="test",
    schema=RAW,
    side_tables={"rejected": REJECTED},
    partitions_def=FOLDERS,
)
def letters(context, ingests, partition: str) -> Ingested:  # type: ignore[no-untyped-def]
    """The files of a folder, once the test releases them."""
    while (FOLDER.parent / "hold").exists():
        time.sleep(0.1)
    return ingests.files(FOLDER / partition)


@table_asset(namespace="dedup", asset_group="test", schema=COMPONENTS)
def sizes(raw_letters: DataFrame) -> DataFrame:
    """The number of bytes of each document."""
    return raw_letters.selectExpr("doc_id", "string(n_bytes) component")


@dg.asset
def step() -> None:
    """Nothing, in a run of its own."""


defs = definitions(
    [letters, sizes],
    settings(),
    jobs=[dg.define_asset_job("wait_in_line", selection=[step])],
    sensors=[new_input([letters, sizes], [Watched("letters", (place_of(FOLDER),), FOLDERS)], every_s=1)],
)
defs = dg.Definitions.merge(defs, dg.Definitions(assets=[step]))
