"""The tables of clusters, between two rounds of filters.

    documents -> embedder -> vectors -> coarse -> fine -> clusters -> losses -> verdicts
                                                       documents -> proxy --^

The cells are an asset by themselves: people see their distribution before the fine clusters are cut.
Everything that decides lasts: embedder, centroids, proxy and losses stay when documents are added, and new
documents take the verdict of their cluster. `clusters.<dataset>_cells` says how far the distribution has
moved since. A run that selects `clusters.<dataset>_coarse` cuts the cells again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import dagster as dg
from pyspark.sql import DataFrame

from factory.clusters.assignment import assigned, cells_now
from factory.clusters.checkpoint import Checkpoint, checkpoint_table
from factory.clusters.coarse import coarse_table
from factory.clusters.embedding import EmbedderSpec, embedder_table, vectors
from factory.clusters.fine import fine_table
from factory.clusters.losses import losses
from factory.clusters.options import ClusterOptions
from factory.clusters.proxy import proxy_table
from factory.clusters.verdicts import verdicts
from factory.errors import ConfigurationError
from factory.filters.documents_table import documents_table
from factory.filters.rule import Rule
from factory.filters.rules.clustered import ClusterNoise, ClusterRepetition
from factory.lake import names
from factory.lake.names import TableName
from factory.lake.schemas import clusters as schemas
from factory.orchestration.chain.filters_preparation import Preparation, Prepared
from factory.orchestration.chain.link import Chain, staying
from factory.orchestration.host.resources import LakeRun
from spark_udfs.filters.language_id import labels


@dataclass(frozen=True)
class Clustering(Preparation):
    """Clusters with verdicts of a dataset's documents, for the two rules that read them.

    Prose has detected languages, code (`kind`) the languages of its files. `checkpoint` is the proxy, unless
    a table trains it.
    """

    options: ClusterOptions
    embedder: EmbedderSpec
    kind: str = "prose"
    checkpoint: Checkpoint | None = None

    def shares(self, base: Preparation, *, same_documents: bool) -> bool:  # noqa: ARG002
        if not isinstance(base, Clustering):
            return False
        same_models = (self.embedder, self.checkpoint) == (base.embedder, base.checkpoint)
        return self.options.cut_alike(base.options) and same_models

    def rules(self, dataset: str, base: Prepared | None) -> Sequence[Rule]:
        clusters = base.dataset if base else dataset
        verdicts_of = clusters if base and base.preparation == self else dataset
        return ClusterNoise(clusters, verdicts_of), ClusterRepetition(clusters, verdicts_of)

    def tables(self, dataset: str, base: Prepared | None) -> Mapping[str, TableName]:
        return {"clusters": names.clusters(base.dataset if base else dataset)}

    def extend(self, chain: Chain, base: Prepared | None) -> Chain:
        if base is None:
            chain = chain.adding(*self._cut(chain), self._proxy(chain), self._losses(chain))
            return chain.adding(self._verdicts(chain, chain.dataset))
        return chain if base.preparation == self else chain.adding(self._verdicts(chain, base.dataset))

    def _cut(self, chain: Chain) -> Sequence[dg.AssetsDefinition]:
        """The embedder, the vectors, and both levels of clusters."""
        options, spec = self.options, self.embedder
        of_dataset = {part: names.clusters(chain.dataset, part) for part in ("embedder", "vectors", "coarse")}
        embedder_name, vectors_name, coarse_name = of_dataset.values()
        fine_name = names.clusters(chain.dataset, "fine")

        @_asset(
            chain,
            "embedder",
            schema=schemas.EMBEDDER,
            upstream=chain.upstream,
            config={"embedder": options.embedder, "dimensions": options.dimensions},
            files=(lambda _: list(spec.files)) if spec.path else None,
            description=f"The embedder `{options.embedder}`, which turns texts of `{chain.documents}` into "
            "vectors.",
            lasting=spec.path is None,
        )
        def embedder(documents: DataFrame, **earlier: DataFrame) -> DataFrame:
            return embedder_table(staying(documents, earlier), spec, options.dimensions)

        @_asset(
            chain,
            "vectors",
            schema=schemas.VECTORS,
            upstream={**chain.upstream, "embedder": embedder_name},
            description="The vector of every document.",
            partitions_def=chain.partitions_def,
        )
        def of_documents(documents: DataFrame, embedder: DataFrame, **earlier: DataFrame) -> DataFrame:
            return vectors(staying(documents, earlier), embedder, spec)

        @_asset(
            chain,
            "coarse",
            schema=schemas.COARSE,
            upstream={**chain.upstream, "vectors": vectors_name, "embedder": embedder_name},
            config={"cells": options.cells},
            description="The coarse clusters, with their words and some of their documents. "
            f"`factory sample {coarse_name} --cell 0` shows those of a cell.",
            lasting=True,
            until=[embedder_name],
        )
        def coarse(
            documents: DataFrame,
            vectors: DataFrame,
            embedder: DataFrame,  # noqa: ARG001 (vectors of another embedder are other cells)
            **earlier: DataFrame,
        ) -> DataFrame:
            return coarse_table(vectors, staying(documents, earlier), options.cells)

        @_asset(
            chain,
            "fine",
            schema=schemas.FINE,
            upstream={"vectors": vectors_name, "coarse": coarse_name},
            config={"clusters": options.clusters},
            description="The clusters inside each cell.",
            lasting=True,
            until=[coarse_name],
        )
        def fine(vectors: DataFrame, coarse: DataFrame) -> DataFrame:
            return fine_table(vectors, coarse, options.clusters)

        @_asset(
            chain,
            "",
            schema=schemas.CLUSTERS,
            upstream={"vectors": vectors_name, "coarse": coarse_name, "fine": fine_name},
            description="The cell and the cluster of every document.",
            partitions_def=chain.partitions_def,
        )
        def clusters(vectors: DataFrame, coarse: DataFrame, fine: DataFrame) -> DataFrame:
            return assigned(vectors, coarse, fine)

        @_asset(
            chain,
            "cells",
            schema=schemas.CELLS,
            upstream={"clusters": names.clusters(chain.dataset), "coarse": coarse_name},
            description="The documents of each cell now, and when the cells were cut.",
        )
        def cells(clusters: DataFrame, coarse: DataFrame) -> DataFrame:
            return cells_now(clusters, coarse)

        return embedder, of_documents, coarse, fine, clusters, cells

    def _proxy(self, chain: Chain) -> dg.AssetsDefinition:
        """The proxy model: a checkpoint, or n-grams of a table."""
        checkpoint, proxy_of = self.checkpoint, self.options.proxy
        if checkpoint is not None:

            @_asset(
                chain,
                "proxy",
                schema=schemas.PROXY,
                config={"source": checkpoint.reference, "learning rate": checkpoint.learning_rate},
                files=lambda _: list(checkpoint.files),
                description=f"The model that reads the clusters, `{checkpoint.reference}`.",
            )
            def proxy_of_files(pyspark) -> DataFrame:  # type: ignore[no-untyped-def]
                return checkpoint_table(pyspark.spark_session, checkpoint)

            return proxy_of_files
        source = chain.documents if proxy_of is None else documents_table(proxy_of)

        @_asset(
            chain,
            "proxy",
            schema=schemas.PROXY,
            upstream=chain.upstream if proxy_of is None else {"documents": source},
            config={"source": str(source)},
            description=f"The model that reads the clusters, trained on a sample of `{source}`.",
            lasting=True,
        )
        def proxy(documents: DataFrame, **earlier: DataFrame) -> DataFrame:
            return proxy_table(staying(documents, earlier), str(source), own=source == chain.documents)

        return proxy

    def _losses(self, chain: Chain) -> dg.AssetsDefinition:
        """The losses of the clusters by the proxy model."""
        options, checkpoint = self.options, self.checkpoint
        languages = None if self.kind == "code" else labels
        fine_name, proxy_name = (names.clusters(chain.dataset, part) for part in ("fine", "proxy"))

        @_asset(
            chain,
            "losses",
            schema=schemas.LOSSES,
            upstream={
                **chain.upstream,
                "clusters": names.clusters(chain.dataset),
                "fine": fine_name,
                "proxy": proxy_name,
            },
            config={"weight": options.weight, "kind": self.kind},
            description="What the proxy loses on each cluster, before and after it has read half of it.",
            lasting=True,
            until=[fine_name, proxy_name],
        )
        def of_clusters(  # type: ignore[no-untyped-def]
            context,
            documents: DataFrame,
            clusters: DataFrame,
            fine: DataFrame,  # noqa: ARG001 (clusters that are cut again are judged again)
            proxy: DataFrame,
            **earlier: DataFrame,
        ) -> DataFrame:
            require_cut(context.resources.lake, names.clusters(chain.dataset), fine_name)
            kept_texts = staying(documents, earlier)
            return losses(clusters, kept_texts, languages, proxy, options.weight, checkpoint)

        return of_clusters

    def _verdicts(self, chain: Chain, dataset: str) -> dg.AssetsDefinition:
        """The verdicts by the losses of the clusters of `dataset`."""
        options = self.options

        @_asset(
            chain,
            "verdicts",
            schema=schemas.VERDICTS,
            upstream={"losses": names.clusters(dataset, "losses")},
            config={
                "noise": options.noise,
                "easy": options.easy,
                "rate": options.rate,
                "verdicts": {f"verdict on {n}": verdict for n, verdict in sorted(options.verdicts.items())},
            },
            description="The verdict on each cluster: keep, downsample, discard, or too small to judge.",
        )
        def of_losses(losses: DataFrame) -> DataFrame:
            return verdicts(losses, options, options.verdicts)

        return of_losses


def require_cut(run: LakeRun, clusters: TableName, fine: TableName) -> None:
    """Raise ConfigurationError if documents have clusters of an earlier cut than `fine`."""
    centers = run.pin(fine)
    for lineage in (run.pin(clusters).lineage, *run.lake.partitions(clusters).lineage.values()):
        snapshot_id = lineage.upstream[str(fine)]
        if snapshot_id == centers.snapshot_id:
            continue
        if run.lake.published_at(fine, snapshot_id).lineage.content != centers.lineage.content:
            raise ConfigurationError(
                f"{clusters} has the documents of clusters that {fine} does not have any more. Materialize "
                f"{clusters} again, then the tables downstream."
            )


def _asset(chain: Chain, part: str, **options: Any) -> Any:
    """`table_asset` for a table of clusters of the chain's dataset."""
    table = names.clusters(chain.dataset, part)
    return chain.table_asset(namespace=table.namespace, name=table.name, **options)
