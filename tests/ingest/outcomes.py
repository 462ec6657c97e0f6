"""What became of the inputs of a reader: rows, and the outcome of each key."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame

from factory.ingest.readers import Ingested


def rows(frame: DataFrame) -> list[dict[str, Any]]:
    return sorted((row.asDict(recursive=True) for row in frame.collect()), key=lambda row: row["doc_id"])


def outcome(ingested: Ingested) -> dict[str, str]:
    """What became of each key: a document's text or a rejection's reason and location."""
    outcomes = {row["key"]: row["text"] for row in rows(ingested.documents)}
    for row in rows(ingested.rejected):
        assert row["key"] not in outcomes
        outcomes[row["key"]] = f"{row['reason']} at {row['location']}"
    return outcomes
