"""The readers on the session's Spark."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from factory.ingest.readers import Ingests


@pytest.fixture
def ingests(spark: SparkSession) -> Any:
    readers = Ingests(spark)
    yield readers
    readers.release()
