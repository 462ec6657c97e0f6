"""A dataset that is made from another: its documents' texts, read again as a format."""

from __future__ import annotations

from functools import partial

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from factory.ingest.html_extra import require_html
from factory.ingest.readers import Ingested
from factory.lake.schemas.ingest import RAW, REJECTED
from spark_udfs.ingest.derived import READ, derive
from spark_udfs.ingest.registry import READERS
from spark_udfs.ingest.rows import SCAN


def read_again(documents: DataFrame, dataset: str, format: str, options: object = None) -> Ingested:
    """Return the documents of `dataset`, made from raw `documents` with their texts read as `format`.

    Each has the key of the document that it is made from, and its id in `metadata.derived_from`. Raises
    ConfigurationError if the extra that reads pages is missing.
    """
    if READERS[format].of_pages:
        require_html()
    function = partial(derive, dataset=dataset, format=format, options=options)
    scan = (
        documents.select(*READ)
        .mapInArrow(function, from_arrow_schema(SCAN))
        .persist(StorageLevel.MEMORY_AND_DISK)
    )
    is_document = F.col("reason").isNull()
    return Ingested(
        documents=scan.where(is_document).select(RAW.names),
        rejected=scan.where(~is_document).select(REJECTED.names),
        scan=scan,
        of_many_records=False,
    )
