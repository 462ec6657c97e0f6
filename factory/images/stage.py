"""The facts of pictures: each picture of raw documents measured and decoded once."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from factory.lake.schemas.images import IMAGE_FACTS, IMAGES
from spark_udfs.images import facts as udf


def image_facts(documents: DataFrame) -> DataFrame:
    """Return IMAGE_FACTS, a row per picture of `documents`, which are raw documents with `images`."""
    pictures = documents.select("doc_id", "partition", IMAGES)
    return pictures.mapInArrow(udf.image_facts, from_arrow_schema(IMAGE_FACTS.columns))
