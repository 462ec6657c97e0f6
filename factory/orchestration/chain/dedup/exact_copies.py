"""The link that drops exact copies of a dataset, with decisions of its own and no group to compare with."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyspark.sql import DataFrame

from factory.dedup.decisions import deduplicated
from factory.dedup.exact_copies import exact_copies
from factory.lake import names
from factory.lake.schemas.dedup import DECISIONS, DEDUPLICATED
from factory.orchestration.chain.link import Chain, staying
from factory.orchestration.groups import comparison_group, packed_group


@dataclass(frozen=True)
class ExactCopies:
    """Keep one of the documents that are equal: captions and pictures, or texts."""

    def extend(self, chain: Chain) -> Chain:
        dataset = chain.dataset
        chain = replace(chain, graph_group=comparison_group(dataset))
        decisions_table = names.dedup(dataset, "decisions")

        @chain.table_asset(
            namespace=decisions_table.namespace,
            name=decisions_table.name,
            schema=DECISIONS,
            upstream=chain.upstream,
            description=f"Which documents of `{dataset}` stay: of exact copies the first by key.",
        )
        def decisions(documents: DataFrame, **verdicts: DataFrame) -> DataFrame:
            return exact_copies(staying(documents, verdicts), dataset)

        @chain.table_asset(
            namespace="deduplicated",
            name=dataset,
            schema=DEDUPLICATED,
            upstream={"documents": chain.documents, "decisions": decisions_table},
            description=f"The documents of `{dataset}` that passed the filters, without exact copies. Their "
            f"pictures stay in `{chain.documents}`.",
        )
        def without_copies(documents: DataFrame, decisions: DataFrame) -> DataFrame:
            return deduplicated(documents, decisions)

        return chain.adding(
            decisions,
            without_copies,
            documents=names.deduplicated(dataset),
            verdicts=None,
            graph_group=packed_group(dataset),
        )
