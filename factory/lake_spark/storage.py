"""The options of a session for the files of its lake that are in a store."""

from __future__ import annotations

from pyspark.sql import SparkSession

from factory.lake.files.storage import STORAGE
from factory.settings import CATALOG_NAME


def storage_of(spark: SparkSession) -> dict[str, str]:
    """Return the options for opening the lake's files."""
    options = {name: spark.conf.get(f"spark.sql.catalog.{CATALOG_NAME}.{name}", None) for name in STORAGE}
    return {name: text for name, text in options.items() if text is not None}
