"""The usual chain of a dataset, from raw documents to packed sequences, declared in one call.

    GROUP = dedup_group("code", ["python_code"], kind="code")
    assets = [
        *GROUP.assets,
        *refine("python_code", group=GROUP, rules=["code"], group_name="code", tokenizer="tokenizer"),
        tokenizer("tokenizer", ["python_code"]),
    ]

    raw -> signals -> filtered -> [dedup group] -> deduplicated -> [depsort] -> tokenized -> packed

Each asset body is one call of a stage, so whatever this chain does can be declared by hand as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import dagster as dg
from pyspark.sql import DataFrame

from factory.dedup.buckets import buckets
from factory.dedup.components import components
from factory.dedup.config import DedupConfig
from factory.dedup.decisions import decisions, deduplicated
from factory.dedup.edges import edges
from factory.dedup.signatures import signatures
from factory.dedup.vocabulary import vocabulary
from factory.depsort.stage import dependencies, in_order, symbols
from factory.filters.rule import Limit, Rule
from factory.filters.sets import rules as rules_of
from factory.filters.stage import decide, measure
from factory.lake import names, schemas
from factory.lake_spark.documents import kept_documents, of_datasets
from factory.orchestration import charts
from factory.orchestration.checks import aggregate, holds
from factory.orchestration.publication import Tables
from factory.orchestration.table_asset import table_asset
from factory.packing.pack import PackConfig, pack, placements, resolve
from factory.packing.tokenize import tokenize
from factory.packing.tokenizer import token_bytes, tokenizer_table

Kind = Literal["prose", "code"]
Assets = list[dg.AssetsDefinition]


@dataclass(frozen=True)
class DedupGroup:
    """Datasets that are deduplicated together, and the assets that do it."""

    name: str
    kind: Kind
    datasets: tuple[str, ...]
    assets: tuple[dg.AssetsDefinition, ...]


def refine(
    dataset: str,
    *,
    group: DedupGroup,
    rules: Sequence[str],
    group_name: str,
    tokenizer: str,
    limits: Mapping[str, Limit] | None = None,
    packing: PackConfig | None = None,
) -> Assets:
    """Every asset of `dataset` after `raw.<dataset>`, but for those of its dedup group.

    `rules` are names of rule sets, `limits` replace thresholds of single rules. A code dataset is sorted
    by dependency before it is tokenized.
    """
    chosen = rules_of(rules, limits)
    assets = _filters(dataset, chosen, group_name)
    assets.append(_deduplicated(dataset, group, group_name))
    if group.kind == "code":
        assets += _depsort(dataset, group_name)
    return assets + _packing(dataset, group.kind, group_name, tokenizer, packing or PackConfig())


def _filters(dataset: str, chosen: Sequence[Rule], group_name: str) -> Assets:
    @table_asset(
        namespace="signals",
        name=dataset,
        group_name=group_name,
        schema=schemas.signals_schema([rule.name for rule in chosen]),
        upstream={"documents": names.raw(dataset)},
        config={"rules": [rule.name for rule in chosen]},
    )
    def signals(documents: DataFrame) -> DataFrame:
        """Every measured value of every document."""
        return measure(documents, chosen)

    @table_asset(
        namespace="filtered",
        name=dataset,
        group_name=group_name,
        schema=schemas.FILTERED,
        upstream={"signals": names.signals(dataset)},
        config={rule.name: repr(rule.limit) for rule in chosen},
        checks=[holds("a_verdict_has_its_reasons", "kept = (size(rejections) = 0)", "kept", "rejections")],
        chart=charts.rejections,
    )
    def filtered(signals: DataFrame) -> DataFrame:
        """Every document with its verdict and every rule it fails."""
        return decide(signals, chosen)

    return [signals, filtered]


def dedup_group(
    name: str, datasets: Sequence[str], *, kind: Kind, config: DedupConfig | None = None
) -> DedupGroup:
    """Declare that `datasets` are deduplicated together, once; `refine` refers to the group."""
    chosen = config or DedupConfig(kind=kind)
    raw_and_verdicts = {f"raw_{dataset}": names.raw(dataset) for dataset in datasets} | {
        f"filtered_{dataset}": names.filtered(dataset) for dataset in datasets
    }

    def documents(upstream: Mapping[str, DataFrame]) -> DataFrame:
        return of_datasets(
            {
                dataset: kept_documents(upstream[f"raw_{dataset}"], upstream[f"filtered_{dataset}"])
                for dataset in datasets
            }
        )

    def declare(part: str, schema: schemas.TableSchema, *parts: str, text: bool = False, **options):  # type: ignore[no-untyped-def]
        upstream = {of: names.dedup(name, of) for of in parts} | (raw_and_verdicts if text else {})
        return table_asset(
            namespace="dedup",
            name=f"{name}_{part}",
            group_name=kind if kind == "code" else "natural_language",
            schema=schema,
            upstream=upstream,
            config=chosen,
            **options,
        )

    @declare("vocabulary", schemas.VOCABULARY, text=True)
    def group_vocabulary(**upstream: DataFrame) -> DataFrame:
        """Every token with its term and document frequency."""
        return vocabulary(documents(upstream), chosen)

    @declare("signatures", schemas.SIGNATURES, "vocabulary", text=True)
    def group_signatures(vocabulary: DataFrame, **upstream: DataFrame) -> DataFrame:
        """The weighted MinHash signature of every distinct text."""
        return signatures(documents(upstream), vocabulary, chosen)

    @declare("buckets", schemas.BUCKETS, "signatures")
    def group_buckets(signatures: DataFrame) -> DataFrame:
        """The bucket of every signature in every band."""
        return buckets(signatures, chosen)

    @declare(
        "edges",
        schemas.EDGES,
        "buckets",
        "signatures",
        "vocabulary",
        text=True,
        chart=charts.similarities,
        checks=[holds("every_edge_is_similar", f"similarity >= {chosen.threshold}", "similarity")],
    )
    def group_edges(
        buckets: DataFrame, signatures: DataFrame, vocabulary: DataFrame, **upstream: DataFrame
    ) -> DataFrame:
        """The pairs of documents whose exact similarity reaches the threshold."""
        return edges(buckets, signatures, documents(upstream), vocabulary, chosen)

    @declare("components", schemas.COMPONENTS, "edges", "signatures", chart=charts.component_sizes)
    def group_components(edges: DataFrame, signatures: DataFrame) -> DataFrame:
        """The connected component of every document."""
        return components(edges, signatures, chosen)

    @declare(
        "decisions",
        schemas.DECISIONS,
        "signatures",
        "edges",
        "components",
        text=True,
        chart=charts.reasons,
        checks=[
            holds(
                "a_removed_document_names_a_kept_one", "kept = (duplicate_of IS NULL)", "kept", "duplicate_of"
            )
        ],
    )
    def group_decisions(
        signatures: DataFrame, edges: DataFrame, components: DataFrame, **upstream: DataFrame
    ) -> DataFrame:
        """Which documents stay and which kept one each removed document resembles."""
        return decisions(documents(upstream), signatures, edges, components, chosen)

    assets = (
        group_vocabulary,
        group_signatures,
        group_buckets,
        group_edges,
        group_components,
        group_decisions,
    )
    return DedupGroup(name, kind, tuple(datasets), assets)


def _deduplicated(dataset: str, group: DedupGroup, group_name: str) -> dg.AssetsDefinition:
    @table_asset(
        namespace="deduplicated",
        name=dataset,
        group_name=group_name,
        schema=schemas.DEDUPLICATED,
        upstream={"documents": names.raw(dataset), "decisions": names.dedup(group.name, "decisions")},
        chart=charts.lengths,
    )
    def kept(documents: DataFrame, decisions: DataFrame) -> DataFrame:
        """The documents that passed the filters and were kept among their duplicates."""
        return deduplicated(documents, decisions)

    return kept


def _depsort(dataset: str, group_name: str) -> Assets:
    documents_of = names.deduplicated(dataset)

    @table_asset(
        namespace="depsort",
        name=f"{dataset}_symbols",
        group_name=group_name,
        schema=schemas.SYMBOLS,
        upstream={"documents": documents_of},
    )
    def file_symbols(documents: DataFrame) -> DataFrame:
        """What every file defines, refers to and imports, and where that resolves."""
        return symbols(documents)

    @table_asset(
        namespace="depsort",
        name=f"{dataset}_dependencies",
        group_name=group_name,
        schema=schemas.DEPENDENCIES,
        upstream={"documents": documents_of, "symbols": names.depsort(dataset, "symbols")},
        chart=charts.satisfied,
    )
    def file_dependencies(documents: DataFrame, symbols: DataFrame) -> DataFrame:
        """Which file depends on which, and whether the order satisfies it."""
        return dependencies(documents, symbols)

    @table_asset(
        namespace="sorted",
        name=dataset,
        group_name=group_name,
        schema=schemas.SORTED,
        upstream={"documents": documents_of, "dependencies": names.depsort(dataset, "dependencies")},
        checks=[
            aggregate(
                "places_are_dense",
                "count(1) - count(DISTINCT repository, place)",
                "No two documents of a repository share a place.",
                "repository",
                "place",
            )
        ],
    )
    def in_dependency_order(documents: DataFrame, dependencies: DataFrame) -> DataFrame:
        """The documents with their place in their repository, dependencies first."""
        return in_order(documents, dependencies)

    return [file_symbols, file_dependencies, in_dependency_order]


def tokenizer(
    name: str, datasets: Sequence[str], *, group_name: str = "models", vocabulary: int = 16_384
) -> dg.AssetsDefinition:
    """Declare a byte-level BPE tokenizer trained on a sample of the deduplicated `datasets`."""

    @table_asset(
        namespace="models",
        name=name,
        group_name=group_name,
        schema=schemas.TOKENIZER,
        upstream={dataset: names.deduplicated(dataset) for dataset in datasets},
        config={"vocabulary": vocabulary},
    )
    def trained(**upstream: DataFrame) -> DataFrame:
        """A byte-level BPE tokenizer trained on the corpus."""
        return tokenizer_table(of_datasets(upstream), name, vocabulary)

    return trained


def _packing(dataset: str, kind: Kind, group_name: str, tokenizer: str, config: PackConfig) -> Assets:
    documents_of = names.in_order(dataset) if kind == "code" else names.deduplicated(dataset)
    dependencies_of = {"dependencies": names.depsort(dataset, "dependencies")} if kind == "code" else {}

    @table_asset(
        namespace="tokenized",
        name=dataset,
        group_name=group_name,
        schema=schemas.TOKENIZED,
        upstream={"documents": documents_of, "tokenizer": names.model(tokenizer)},
    )
    def tokens(documents: DataFrame, tokenizer: DataFrame) -> Tables:
        """The tokens of every document."""
        trained = tokenizer.first()
        assert trained is not None
        return Tables(
            tokenize(documents, trained.tokenizer),
            properties={schemas.TOKEN_BYTES: str(token_bytes(trained.n_tokens))},
        )

    @table_asset(
        namespace="packed",
        name=dataset,
        group_name=group_name,
        schema=schemas.PACKED,
        beside={"placements": schemas.PLACEMENTS},
        upstream={
            "tokenized": names.tokenized(dataset),
            "tokenizer": names.model(tokenizer),
            **dependencies_of,
        },
        config=config,
        checks=[
            aggregate(
                "ordinals_are_dense",
                "coalesce(max(ordinal) + 1, 0) - count(1)",
                "Ordinals are 0 .. n-1.",
                "ordinal",
            ),
            holds(
                "segments_fill_the_row",
                "n_tokens = aggregate(segments, 0L, (sum, s) -> sum + s.length)",
                "n_tokens",
                "segments",
            ),
        ],
        chart=charts.fill,
    )
    def sequences(tokenized: DataFrame, tokenizer: DataFrame, **upstream: DataFrame) -> Tables:
        """Training sequences: the documents packed best-fit, runs of a repository's order kept together."""
        trained = tokenizer.first()
        assert trained is not None
        chosen = resolve(tokenized, config.model_copy(update={"token_bytes": token_bytes(trained.n_tokens)}))
        return Tables(
            pack(tokenized, upstream.get("dependencies"), chosen),
            {"placements": placements},
            properties={
                schemas.TOKEN_BYTES: str(chosen.token_bytes),
                schemas.SEQUENCE_LENGTH: str(chosen.sequence_length),
                schemas.N_BUCKETS: str(chosen.buckets),
            },
        )

    return [tokens, sequences]
