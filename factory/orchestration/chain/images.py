"""The link that decodes the pictures of a dataset, for rules that judge them; the chain does not change."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame

from factory.images.stage import image_facts
from factory.lake import names
from factory.lake.schemas.images import IMAGE_FACTS
from factory.orchestration.chain.link import Chain
from factory.spark.session import IMAGE_ROWS_PER_BATCH


@dataclass(frozen=True)
class ImageFacts:
    """Measure and decode every picture of the raw documents."""

    def extend(self, chain: Chain) -> Chain:
        table = names.images(chain.dataset)

        @chain.table_asset(
            namespace=table.namespace,
            name=table.name,
            schema=IMAGE_FACTS,
            upstream={"documents": chain.documents},
            description=f"The pictures of `{chain.documents}`, a row each, and whether they decode.",
            partitions_def=chain.partitions_def,
            rows_per_batch=IMAGE_ROWS_PER_BATCH,
        )
        def facts(documents: DataFrame) -> DataFrame:
            return image_facts(documents)

        return chain.adding(facts)
