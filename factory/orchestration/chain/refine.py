"""The usual chain of a dataset, from raw documents to packed sequences, declared in one call.

    GROUP = dedup_group("web", ["web"], kind="prose")
    PLAIN = Round(rules=["gopher_quality"])
    LONG = Round(rules=["gopher_quality"], limits={"word_count": [200, 100_000]})
    WEB = refine("web", dedup_group=GROUP, rounds=[PLAIN], tokenizer="tokenizer")
    assets = [*GROUP.assets, *WEB, *variant(WEB, "long", rounds=[LONG]), tokenizer("tokenizer", ["web"])]

    raw -> signals -> filtered -> [dedup group] -> deduplicated -> [depsort] -> tokenized -> packed

A variant is a dataset of its own from `filtered` on: `filtered.web__long` to `packed.web__long`. A variant
that only changes the similarity threshold or the keep rule begins at `deduplicated`. Each asset body is one
call of a stage, so any part of this chain can also be declared by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import dagster as dg
from pyspark.sql import DataFrame

from factory.dedup.decisions import Keep, deduplicated
from factory.depsort.stage import dependencies, sorted_documents, symbols
from factory.errors import ConfigurationError
from factory.filters.rounds import Round
from factory.lake import names
from factory.lake.files.layout import odd_pages
from factory.lake.identity import tokenizer_id
from factory.lake.schemas.dedup import DEDUPLICATED
from factory.lake.schemas.depsort import DEPENDENCIES, SORTED, SYMBOLS
from factory.lake.schemas.models import TOKENIZER
from factory.lake.schemas.packing import (
    N_SHARDS,
    N_TOKENS,
    PACKED,
    PLACEMENTS,
    SEQUENCE_LENGTH,
    TOKEN_BYTES,
    TOKENIZED,
    TOKENIZER_ID,
    VOCABULARY_SIZE,
)
from factory.lake.tables import Published
from factory.lake_spark.documents import of_datasets
from factory.models.tokenizer import tokenizer_table
from factory.models.tokenizer_file import tokenizer_of_file
from factory.orchestration.asset.checks import aggregate, holds, layout
from factory.orchestration.asset.declaration import Tables
from factory.orchestration.asset.groups import MODELS, dataset_group
from factory.orchestration.asset.table_asset import table_asset
from factory.orchestration.chain.dedup_group import DedupGroup, dedup_group, dedup_variant
from factory.orchestration.chain.rounds import Measured, filter_assets
from factory.packing.pack import PackConfig, pack, placements, totals
from factory.packing.tokenize import TokenizeConfig, tokenize
from spark_udfs.models.tokenizer import token_bytes

Assets = list[dg.AssetsDefinition]

UNIQUE_POSITIONS = aggregate(
    "unique_positions",
    # A document without a repository counts by itself, and `count(DISTINCT ...)` ignores nulls.
    "count(1) - count(DISTINCT coalesce(repository, doc_id), coalesce(revision, ''), position)",
    "No two documents of a revision of a repository share a position.",
    "repository",
    "revision",
    "doc_id",
    "position",
)


@dataclass(frozen=True)
class Chain:
    """The declaration of a dataset, its assets, and the parts that its variants can share.

    Iterating gives the assets.
    """

    dataset: str
    dedup_group: DedupGroup
    tokenizer: str
    packing: PackConfig
    around: TokenizeConfig
    measured: tuple[Measured, ...] = ()
    assets: tuple[dg.AssetsDefinition, ...] = ()
    owners: tuple[str, ...] = ()
    partitions_def: dg.PartitionsDefinition[str] | None = None

    def __iter__(self) -> Iterator[dg.AssetsDefinition]:
        return iter(self.assets)

    def table_asset(self, **options: Any) -> Callable[..., dg.AssetsDefinition]:
        """`table_asset` in the group of the dataset, with its owners."""
        return table_asset(asset_group=dataset_group(self.dataset), owners=self.owners, **options)


def refine(
    dataset: str,
    *,
    dedup_group: DedupGroup,
    rounds: Sequence[Round],
    tokenizer: str,
    packing: PackConfig | None = None,
    around: TokenizeConfig | None = None,
    owners: Sequence[str] = (),
    partitions_def: dg.PartitionsDefinition[str] | None = None,
) -> Chain:
    """Every asset of `dataset` after `raw.<dataset>`, except those of its dedup group.

    Each of `rounds` filters what the earlier rounds kept. A code dataset is sorted by dependency before it is
    tokenized; the tokens of `around` enclose each document. With the `partitions_def` of `raw.<dataset>`,
    signals and verdicts are made partition by partition, because they need one document at a time; later
    tables compare documents, so they are made as a whole. `owners` are mail addresses and `team:name`s.
    Raises ConfigurationError for a rule, a name or a group that does not fit.
    """
    if names.VARIANT in dataset:
        raise ConfigurationError(
            f"`{dataset}` is the name of a variant. Declare it with variant(chain, ...), from the chain that "
            f"refine(`{names.base(dataset)}`, ...) gives."
        )
    packing, around = packing or PackConfig(), around or TokenizeConfig()
    declared = Chain(
        dataset,
        dedup_group,
        tokenizer,
        packing,
        around,
        owners=tuple(owners),
        partitions_def=partitions_def,
    )
    return _chain(declared, rounds)


def variant(
    of: Chain,
    name: str,
    *,
    rounds: Sequence[Round] | None = None,
    threshold: float | None = None,
    keep: Keep | None = None,
    dedup_group: DedupGroup | None = None,
    packing: PackConfig | None = None,
) -> Chain:
    """A variant of `of`, `<dataset>__<name>`, with other filters or another deduplication.

    With `rounds` it reads the same `raw` table, and the same signals if they cover its rules: a new limit
    reads no text. It then has a dedup group of its own, with the options of the first group. Without `rounds`
    it shares all verdicts and comparisons, and only the similarity `threshold` or the `keep` rule differs.
    Give `dedup_group` to compare variants of several datasets: a group of these variants, or the
    `dedup_variant` of the first group.
    """
    dataset = names.variant(of.dataset, name)
    if rounds is None and threshold is None and keep is None and dedup_group is None:
        raise ConfigurationError(
            f"`{dataset}` does not differ from `{of.dataset}`. Give the variant `rounds`, a `threshold` or "
            "`keep`."
        )
    for option, given in (("threshold", threshold), ("keep", keep)):
        if given is not None and dedup_group is not None:
            raise ConfigurationError(
                f"`{dataset}` has both a `{option}` and dedup group `{dedup_group.name}`, whose own is "
                f"{getattr(dedup_group.config, option)}. Leave one out."
            )
    own = dedup_group or _own_group(of, name, rounds, threshold, keep)
    chain = _chain(replace(of, dataset=dataset, dedup_group=own, packing=packing or of.packing), rounds)
    return chain if dedup_group else replace(chain, assets=(*own.assets, *chain.assets))


def _own_group(
    of: Chain, name: str, rounds: Sequence[Round] | None, threshold: float | None, keep: Keep | None
) -> DedupGroup:
    """The default group of a variant."""
    if rounds is None:
        return dedup_variant(of.dedup_group, name, threshold, keep)
    dataset = names.variant(of.dataset, name)
    given = {"threshold": threshold, "keep": keep}
    return dedup_group(
        dataset,
        [dataset],
        kind=of.dedup_group.kind,
        config=of.dedup_group.config.changed(
            **{option: it for option, it in given.items() if it is not None}
        ),
        repositories=of.dedup_group.repositories,
        owners=of.owners,
    )


def _chain(of: Chain, rounds: Sequence[Round] | None) -> Chain:
    """`of` with the assets of its dataset; without `rounds` it shares the verdicts of its base dataset."""
    names.dataset(of.dataset)
    if of.dataset not in of.dedup_group.datasets:
        raise ConfigurationError(
            f"Dedup group `{of.dedup_group.name}` does not hold `{of.dataset}`. It holds "
            f"{', '.join(of.dedup_group.datasets)}: name the dataset there, or give another group."
        )
    assets, measured = [_deduplicated(of)], of.measured
    if rounds is not None:
        if not rounds:
            raise ConfigurationError(f"`{of.dataset}` has no round of filters. Give one, if only Round().")
        filters = filter_assets(of.dataset, rounds, measured, of.owners, of.partitions_def)
        assets, measured = [*filters.assets, *assets], filters.measured
    if of.dedup_group.kind == "code":
        assets += _depsort(of)
    return replace(of, measured=measured, assets=(*assets, *_packing(of)))


def _deduplicated(of: Chain) -> dg.AssetsDefinition:
    @of.table_asset(
        namespace="deduplicated",
        name=of.dataset,
        schema=DEDUPLICATED,
        upstream={
            "documents": names.raw(of.dataset),
            "decisions": names.dedup(of.dedup_group.name, "decisions"),
        },
        description=f"The documents of `{of.dataset}` that passed the filters and were kept among their "
        f"duplicates in dedup group `{of.dedup_group.name}`.",
    )
    def kept(documents: DataFrame, decisions: DataFrame) -> DataFrame:
        return deduplicated(documents, decisions)

    return kept


def _depsort(of: Chain) -> Assets:
    dataset, documents_of = of.dataset, names.deduplicated(of.dataset)

    @of.table_asset(
        namespace="depsort",
        name=f"{dataset}_symbols",
        schema=SYMBOLS,
        upstream={"documents": documents_of},
        description=f"The definitions, references and imports of every file of `{dataset}`, and where they "
        "resolve.",
    )
    def file_symbols(documents: DataFrame) -> DataFrame:
        return symbols(documents)

    @of.table_asset(
        namespace="depsort",
        name=f"{dataset}_dependencies",
        schema=DEPENDENCIES,
        description=f"The dependencies between files of `{dataset}`, and whether the order satisfies each.",
        upstream={"documents": documents_of, "symbols": names.depsort(dataset, "symbols")},
    )
    def file_dependencies(documents: DataFrame, symbols: DataFrame) -> DataFrame:
        return dependencies(documents, symbols)

    @of.table_asset(
        namespace="sorted",
        name=dataset,
        schema=SORTED,
        description=f"The documents of `{dataset}` with their position in their repository, dependencies "
        "first.",
        upstream={"documents": documents_of, "dependencies": names.depsort(dataset, "dependencies")},
        checks=[UNIQUE_POSITIONS],
    )
    def in_dependency_order(documents: DataFrame, dependencies: DataFrame) -> DataFrame:
        return sorted_documents(documents, dependencies)

    return [file_symbols, file_dependencies, in_dependency_order]


def tokenizer(
    name: str,
    datasets: Sequence[str],
    *,
    vocabulary: int = 16_384,
    around: TokenizeConfig | None = None,
    lasting: bool = True,
) -> dg.AssetsDefinition:
    """Declare a byte-level BPE tokenizer trained on a sample of the deduplicated `datasets`.

    The tokens of `around`, which `refine` puts around documents, are its special tokens. A `lasting`
    tokenizer, whose change would change every packed table, is trained again only for another vocabulary
    or other special tokens, or by a run that selects it without any of `datasets`.
    """
    special = (around or TokenizeConfig()).tokens

    @table_asset(
        namespace="models",
        name=name,
        asset_group=MODELS,
        schema=TOKENIZER,
        upstream={dataset: names.deduplicated(dataset) for dataset in datasets},
        description="A byte-level BPE tokenizer, trained on a sample of "
        f"{', '.join(f'`{dataset}`' for dataset in datasets)}.",
        config={"vocabulary": vocabulary, "special": special},
        lasting=lasting,
    )
    def trained(**upstream: DataFrame) -> DataFrame:
        return tokenizer_table(of_datasets(upstream), name, vocabulary, special_tokens=special)

    return trained


def tokenizer_from(path: Path, name: str, *, around: TokenizeConfig | None = None) -> dg.AssetsDefinition:
    """Declare the tokenizer of a Hugging Face `tokenizer.json`, which has the tokens of `around`."""

    @table_asset(
        namespace="models",
        name=name,
        asset_group=MODELS,
        schema=TOKENIZER,
        description=f"The tokenizer of the file `{path.name}`.",
    )
    def given(pyspark) -> DataFrame:  # type: ignore[no-untyped-def]
        return tokenizer_of_file(pyspark.spark_session, name, path, (around or TokenizeConfig()).tokens)

    return given


def _packing(of: Chain) -> Assets:
    dataset, config = of.dataset, of.packing
    is_code = of.dedup_group.kind == "code"
    documents_of = names.sorted_table(dataset) if is_code else names.deduplicated(dataset)
    dependencies_of = {"dependencies": names.depsort(dataset, "dependencies")} if is_code else {}

    @of.table_asset(
        namespace="tokenized",
        name=dataset,
        schema=TOKENIZED,
        description=f"The tokens of every document of `{dataset}`, by `{names.model(of.tokenizer)}`.",
        upstream={"documents": documents_of, "tokenizer": names.model(of.tokenizer)},
        config=of.around,
    )
    def tokens(documents: DataFrame, tokenizer: DataFrame) -> Tables:
        trained = tokenizer.first()
        assert trained is not None
        return Tables(
            tokenize(documents, trained.tokenizer, of.around),
            properties={TOKEN_BYTES: str(token_bytes(trained.n_tokens))},
            said={TOKENIZER_ID: tokenizer_id(trained.tokenizer)},
        )

    @of.table_asset(
        namespace="packed",
        name=dataset,
        schema=PACKED,
        description=f"The training sequences of `{dataset}`: documents packed best-fit, with runs of a "
        "repository's order kept together.",
        side_tables={"placements": PLACEMENTS},
        upstream={
            "tokenized": names.tokenized(dataset),
            "tokenizer": names.model(of.tokenizer),
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
            layout("pages_of_equal_rows", odd_pages, "Pages of every column end at the same rows."),
        ],
    )
    def sequences(  # type: ignore[no-untyped-def]
        context, tokenized: DataFrame, tokenizer: DataFrame, **upstream: DataFrame
    ) -> Tables:
        trained = tokenizer.first()
        assert trained is not None
        identity = tokenizer_id(trained.tokenizer)
        require_tokens_of(context.resources.lake.pin(names.tokenized(dataset)), of.tokenizer, identity)
        n_documents, n_tokens = totals(tokenized)
        chosen = config.model_copy(update={"token_bytes": token_bytes(trained.n_tokens)})
        chosen = chosen.resolved(n_documents, n_tokens)
        return Tables(
            pack(tokenized, upstream.get("dependencies"), chosen),
            {"placements": placements},
            properties={
                TOKEN_BYTES: str(chosen.token_bytes),
                SEQUENCE_LENGTH: str(chosen.sequence_length),
                N_SHARDS: str(chosen.shards),
            },
            said={
                TOKENIZER_ID: identity,
                VOCABULARY_SIZE: str(trained.n_tokens),
                N_TOKENS: str(n_tokens),
            },
        )

    return [tokens, sequences]


def require_tokens_of(tokenized: Published, tokenizer: str, identity: str) -> None:
    """Raise ConfigurationError if another version of the tokenizer than this run's made the tokens."""
    made_by = tokenized.properties.get(TOKENIZER_ID)
    if made_by != identity:
        by = f"by tokenizer {made_by[:12]}" if made_by else "before tables recorded their tokenizer"
        raise ConfigurationError(
            f"{tokenized.table} was made {by}, and {names.model(tokenizer)} is {identity[:12]} now. "
            f"Materialize {tokenized.table} again, then the tables "
            "downstream."
        )
