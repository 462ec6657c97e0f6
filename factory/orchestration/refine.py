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

import dagster as dg
from pyspark.sql import DataFrame

from factory.dedup.decisions import deduplicated
from factory.depsort.stage import dependencies, in_order, symbols
from factory.filters.rule import Limit, Rule
from factory.filters.sets import rules as rules_of
from factory.filters.stage import decide, measure
from factory.lake import names, schemas
from factory.lake_spark.documents import of_datasets
from factory.orchestration import charts
from factory.orchestration.checks import aggregate, holds
from factory.orchestration.dedup_group import DedupGroup, Kind, dedup_group
from factory.orchestration.publication import Tables
from factory.orchestration.table_asset import table_asset
from factory.packing.pack import PackConfig, pack, placements, resolve
from factory.packing.tokenize import tokenize
from factory.packing.tokenizer import token_bytes, tokenizer_table

Assets = list[dg.AssetsDefinition]

A_PLACE_EACH = aggregate(
    "a_place_each",
    # A document without a repository is alone, and `count(DISTINCT ...)` passes over nulls.
    "count(1) - count(DISTINCT coalesce(repository, doc_id), place)",
    "No two documents of a repository share a place.",
    "repository",
    "doc_id",
    "place",
)

__all__ = ["DedupGroup", "dedup_group", "refine", "tokenizer"]


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
        checks=[A_PLACE_EACH],
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
