"""The link that tokenizes documents and makes rows of their tokens: packed sequences, or samples.

A chain with pictures has samples, a document a row, and their pictures in the column `images`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import dagster as dg
from pyspark.sql import DataFrame

from factory.errors import ConfigurationError, TableNotFound
from factory.frozen_model import FrozenModel
from factory.lake import names
from factory.lake.files.layout import odd_pages
from factory.lake.identity import tokenizer_id
from factory.lake.names import TableName
from factory.lake.schemas.images import IMAGE_TOKEN
from factory.lake.schemas.packing import (
    N_DOCUMENTS,
    N_SHARDS,
    N_TOKENS,
    PACKED,
    PLACEMENTS,
    SAMPLES,
    SEQUENCE_LENGTH,
    TOKEN_BYTES,
    TOKENIZED,
    TOKENIZER_ID,
    VALIDATION,
    VOCABULARY_SIZE,
)
from factory.lake.tables import Published
from factory.models.tokenizer import image_token_id
from factory.orchestration.chain.link import Chain, staying
from factory.orchestration.groups import packed_group
from factory.orchestration.host.resources import LakeRun
from factory.orchestration.table.checks import aggregate, holds, layout
from factory.orchestration.table.declaration import Tables
from factory.packing.pack import PackConfig, pack, placements, totals
from factory.packing.samples import (
    PACKED_WITH_IMAGES,
    SampleConfig,
    longest_row,
    samples,
    samples_with_images,
)
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


_TOKENS_OF_PICTURES = (  # in hexadecimal digits; the contents of pictures are not read
    "transform(images.position, place -> hex(substring(tokens, "
    "CAST(place * octet_length(tokens) / n_tokens AS INT) + 1, "
    "CAST(octet_length(tokens) / n_tokens AS INT))))"
)
_IMAGE_CHECKS = (
    aggregate(
        "pictures_have_their_token",
        f"CASE WHEN min(array_min({_TOKENS_OF_PICTURES})) <> max(array_max({_TOKENS_OF_PICTURES})) "
        "THEN 1 ELSE 0 END",
        "The positions of all pictures hold one and the same token.",
        *("images", "tokens", "n_tokens"),
    ),
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
    the repositories, and of the documents without one, is packed into a table of its own. `image` is the
    token of the pictures of a dataset that has them; its rows are samples.
    """

    tokenizer: str
    config: PackConfig | SampleConfig = field(default_factory=PackConfig)
    around: TokenizeConfig = field(default_factory=TokenizeConfig)
    validation: float | None = None
    image: str | None = None

    def __post_init__(self) -> None:
        if self.image is not None and isinstance(self.config, PackConfig):
            raise ConfigurationError(
                "Documents with pictures become samples, a document a row. Pack them by a `SampleConfig`."
            )
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
            config=self.around if self.image is None else {**dict(self.around), "image": self.image},
        )
        def tokens(documents: DataFrame, tokenizer: DataFrame, **verdicts: DataFrame) -> Tables:
            model = tokenizer.first()
            assert model is not None
            return Tables(
                tokenize(staying(documents, verdicts), model.tokenizer, self.around, self.image),
                properties={TOKEN_BYTES: str(token_bytes(model.n_tokens))},
                said={TOKENIZER_ID: tokenizer_id(model.tokenizer)},
            )

        return tokens

    def _sequences(self, chain: Chain, part: _Part) -> dg.AssetsDefinition:
        dataset, share = chain.dataset, self.validation
        further = {name: table for name, table in chain.further.items() if name == "dependencies"}
        if share is not None or self.image is not None:
            further["documents"] = chain.documents
        if self.image is not None:
            further["raw"] = names.raw(names.base(dataset))

        @chain.table_asset(
            namespace="packed",
            name=part.name,
            schema=PACKED if self.image is None else PACKED_WITH_IMAGES,
            description=self._description(dataset, part),
            side_tables={"placements": PLACEMENTS},
            upstream={
                "tokenized": names.tokenized(dataset),
                "tokenizer": names.model(self.tokenizer),
                **further,
            },
            config=self._identity(),
            checks=_CHECKS if self.image is None else (*_CHECKS, *_IMAGE_CHECKS),
        )
        def sequences(  # type: ignore[no-untyped-def]
            context, tokenized: DataFrame, tokenizer: DataFrame, **upstream: DataFrame
        ) -> Tables:
            model = tokenizer.first()
            assert model is not None
            identity = tokenizer_id(model.tokenizer)
            all_tokens = context.resources.lake.pin(names.tokenized(dataset))
            require_tokens_of(all_tokens, self.tokenizer, identity)
            if self.image is not None:
                require_documents_of(context.resources.lake, all_tokens, chain.documents)
            tokens = tokenized if share is None else part.select(tokenized, upstream["documents"], share)
            n_documents, n_tokens = totals(tokens)
            width = token_bytes(model.n_tokens)
            rows, properties = (
                _packed(tokens, upstream, self.config, width, n_documents, n_tokens)
                if isinstance(self.config, PackConfig)
                else self._samples(tokens, upstream, self.config, width, n_documents, model.tokenizer)
            )
            return Tables(
                rows,
                {"placements": placements},
                properties={TOKEN_BYTES: str(width), **properties},
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

    def _description(self, dataset: str, part: _Part) -> str:
        if isinstance(self.config, PackConfig):
            return (
                f"The {part.noun} sequences of `{dataset}`: documents packed best-fit, with runs of a "
                "repository's order kept together."
            )
        pictures = "" if self.image is None else ", with the pictures beside their tokens"
        return f"The {part.noun} samples of `{dataset}`: a row is one document{pictures}."

    def _identity(self) -> FrozenModel | dict[str, object]:
        """Return the options that decide the rows."""
        options: dict[str, object] = {} if isinstance(self.config, PackConfig) else {"samples": True}
        if self.validation is not None:
            options["validation"] = self.validation
        if self.image is not None:
            options["image"] = self.image
        return {**dict(self.config), **options} if options else self.config

    def _samples(
        self,
        tokens: DataFrame,
        upstream: Mapping[str, DataFrame],
        config: SampleConfig,
        width: int,
        n_documents: int,
        tokenizer: str,
    ) -> tuple[DataFrame, dict[str, str]]:
        """Return a row a document, and the properties of the table."""
        config = config.with_shards(n_documents)
        properties = {
            SEQUENCE_LENGTH: str(longest_row(tokens, config)),
            N_SHARDS: str(config.shards),
            SAMPLES: "true",
        }
        if self.image is None:
            return samples(tokens, config, width), properties
        image = image_token_id(tokenizer, self.image)
        rows = samples_with_images(tokens, upstream["documents"], upstream["raw"], config, width, image)
        return rows, {**properties, IMAGE_TOKEN: str(image)}


def _packed(
    tokens: DataFrame,
    upstream: Mapping[str, DataFrame],
    config: PackConfig,
    width: int,
    n_documents: int,
    n_tokens: int,
) -> tuple[DataFrame, dict[str, str]]:
    """Return the packed sequences, and the properties of the table."""
    config = config.model_copy(update={"token_bytes": width}).resolved(n_documents, n_tokens)
    properties = {SEQUENCE_LENGTH: str(config.sequence_length), N_SHARDS: str(config.shards)}
    return pack(tokens, upstream.get("dependencies"), config), properties


def require_documents_of(lake: LakeRun, tokens: Published, documents: TableName) -> None:
    """Raise ConfigurationError if other documents than this run's were tokenized.

    Pictures are joined to the tokens of their documents, and a document keeps its id when it changes.
    """
    now, then = lake.pin(documents), tokens.lineage.upstream.get(str(documents))
    if then == now.snapshot_id:
        return
    if then is None or _content_at(lake, documents, then) != now.lineage.content:
        raise ConfigurationError(
            f"{tokens.table} was made from other documents than {documents} has now, and pictures would "
            f"come to the wrong texts. Materialize {tokens.table} again, then the tables downstream."
        )


def _content_at(lake: LakeRun, table: TableName, snapshot_id: int) -> str | None:
    """Return the content of a table at a snapshot, None if it has expired."""
    try:
        return lake.lake.published_at(table, snapshot_id).lineage.content
    except TableNotFound:
        return None


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
