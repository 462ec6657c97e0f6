"""The link that tokenizes documents and packs their tokens into training sequences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import dagster as dg
from pyspark.sql import DataFrame

from factory.errors import ConfigurationError
from factory.lake import names
from factory.lake.files.layout import odd_pages
from factory.lake.identity import tokenizer_id
from factory.lake.schemas.packing import (
    N_DOCUMENTS,
    N_SHARDS,
    N_TOKENS,
    PACKED,
    PLACEMENTS,
    SEQUENCE_LENGTH,
    TOKEN_BYTES,
    TOKENIZED,
    TOKENIZER_ID,
    VALIDATION,
    VOCABULARY_SIZE,
)
from factory.lake.tables import Published
from factory.orchestration.chain.link import Chain, staying
from factory.orchestration.groups import packed_group
from factory.orchestration.table.checks import aggregate, holds, layout
from factory.orchestration.table.declaration import Tables
from factory.packing.pack import PackConfig, pack, placements, totals
from factory.packing.tokenize import TokenizeConfig, tokenize
from factory.packing.validation import training_part, validation_part
from spark_udfs.models.tokenizer import token_bytes

_CHECKS = (
    aggregate(
        "ordinals_are_dense",
        "coalesce(max(ordinal) + 1, 0) - count(1)",
        "Ordinals count from 0 to n-1 without a gap.",
        "ordinal",
    ),
    holds(
        "segments_fill_the_row",
        "n_tokens = aggregate(segments, 0L, (sum, s) -> sum + s.length)",
        "n_tokens",
        "segments",
        description="The lengths of the segments of a sequence add up to its tokens.",
    ),
    layout("pages_of_equal_rows", odd_pages, "Pages of every column end at the same rows."),
)


@dataclass(frozen=True)
class _Part:
    """A part of a dataset's documents, packed under a name; `select` chooses them by a share."""

    noun: str
    name: str
    select: Callable[[DataFrame, DataFrame, float], DataFrame]


@dataclass(frozen=True)
class Packing:
    """Tokenize by the tokenizer of a name, with the tokens of `around` around each document; then pack.

    The dependencies that an earlier link found keep dependent files in one sequence. A share `validation` of
    the repositories, and of the documents without one, is packed into a table of its own.
    """

    tokenizer: str
    config: PackConfig = field(default_factory=PackConfig)
    around: TokenizeConfig = field(default_factory=TokenizeConfig)
    validation: float | None = None

    def __post_init__(self) -> None:
        if self.validation is not None and not 0 < self.validation < 1:
            raise ConfigurationError(
                f"`validation` is {self.validation}, which is not a share of the documents. Use a number "
                "between 0 and 1, such as 0.01."
            )

    def extend(self, chain: Chain) -> Chain:
        parts = [_Part("training", chain.dataset, training_part)]
        if self.validation is not None:
            parts.append(_Part("validation", names.validation(chain.dataset), validation_part))
        chain = replace(chain, graph_group=packed_group(chain.dataset))
        return chain.adding(self._tokens(chain), *(self._sequences(chain, part) for part in parts))

    def _tokens(self, chain: Chain) -> dg.AssetsDefinition:
        @chain.table_asset(
            namespace="tokenized",
            name=chain.dataset,
            schema=TOKENIZED,
            description=f"The tokens of every document of `{chain.dataset}`, by "
            f"`{names.model(self.tokenizer)}`.",
            upstream={**chain.upstream, "tokenizer": names.model(self.tokenizer)},
            config=self.around,
        )
        def tokens(documents: DataFrame, tokenizer: DataFrame, **verdicts: DataFrame) -> Tables:
            model = tokenizer.first()
            assert model is not None
            return Tables(
                tokenize(staying(documents, verdicts), model.tokenizer, self.around),
                properties={TOKEN_BYTES: str(token_bytes(model.n_tokens))},
                said={TOKENIZER_ID: tokenizer_id(model.tokenizer)},
            )

        return tokens

    def _sequences(self, chain: Chain, part: _Part) -> dg.AssetsDefinition:
        dataset, share = chain.dataset, self.validation
        further = {name: table for name, table in chain.further.items() if name == "dependencies"}
        if share is not None:
            further["documents"] = chain.documents

        @chain.table_asset(
            namespace="packed",
            name=part.name,
            schema=PACKED,
            description=f"The {part.noun} sequences of `{dataset}`: documents packed best-fit, with runs of "
            "a repository's order kept together.",
            side_tables={"placements": PLACEMENTS},
            upstream={
                "tokenized": names.tokenized(dataset),
                "tokenizer": names.model(self.tokenizer),
                **further,
            },
            config=self.config if share is None else {**dict(self.config), "validation": share},
            checks=_CHECKS,
        )
        def sequences(  # type: ignore[no-untyped-def]
            context, tokenized: DataFrame, tokenizer: DataFrame, **upstream: DataFrame
        ) -> Tables:
            model = tokenizer.first()
            assert model is not None
            identity = tokenizer_id(model.tokenizer)
            all_tokens = context.resources.lake.pin(names.tokenized(dataset))
            require_tokens_of(all_tokens, self.tokenizer, identity)
            tokens = tokenized if share is None else part.select(tokenized, upstream["documents"], share)
            n_documents, n_tokens = totals(tokens)
            config = self.config.model_copy(update={"token_bytes": token_bytes(model.n_tokens)})
            config = config.resolved(n_documents, n_tokens)
            return Tables(
                pack(tokens, upstream.get("dependencies"), config),
                {"placements": placements},
                properties={
                    TOKEN_BYTES: str(config.token_bytes),
                    SEQUENCE_LENGTH: str(config.sequence_length),
                    N_SHARDS: str(config.shards),
                },
                said={
                    TOKENIZER_ID: identity,
                    VOCABULARY_SIZE: str(model.n_tokens),
                    N_DOCUMENTS: str(n_documents),
                    N_TOKENS: str(n_tokens),
                    **({} if share is None else {VALIDATION: str(share)}),
                },
                note="" if share is None else f"{n_documents:,} of {all_tokens.rows:,} documents",
            )

        return sequences


def require_tokens_of(tokenized: Published, tokenizer: str, identity: str) -> None:
    """Raise ConfigurationError if another version of the tokenizer than this run's made the tokens."""
    maker = tokenized.properties.get(TOKENIZER_ID)
    if maker != identity:
        by = f"by tokenizer {maker[:12]}" if maker else "before tables recorded their tokenizer"
        raise ConfigurationError(
            f"{tokenized.table} was made {by}, and {names.model(tokenizer)} is {identity[:12]} now. "
            f"Materialize {tokenized.table} again, then the tables "
            "downstream."
        )
