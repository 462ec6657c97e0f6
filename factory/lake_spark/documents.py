"""Joins text back to tables that carry only ids and verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def kept_documents(documents: DataFrame, verdicts: DataFrame) -> DataFrame:
    """The rows of `documents` whose verdict is `kept`; verdicts are small beside text."""
    kept = verdicts.where("kept").select("doc_id")
    return documents.join(kept, "doc_id", "left_semi")


def of_datasets(documents: Mapping[str, DataFrame]) -> DataFrame:
    """The rows of several datasets under each other, with their dataset in column `dataset`."""
    frames = [frame.withColumn("dataset", F.lit(dataset)) for dataset, frame in documents.items()]
    return reduce(DataFrame.unionByName, frames)
