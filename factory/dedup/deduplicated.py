"""The documents that stay."""

from __future__ import annotations

from pyspark.sql import DataFrame

from factory.lake.schemas import DEDUPLICATED


def deduplicated(documents: DataFrame, decisions: DataFrame) -> DataFrame:
    """The rows of `documents` that were kept: DEDUPLICATED, which is RAW.

    `documents` may be one dataset of the group or all of them; decisions of others are passed over.
    """
    kept = decisions.where("kept").select("doc_id")
    return documents.join(kept, "doc_id", "left_semi").select(DEDUPLICATED.names)
