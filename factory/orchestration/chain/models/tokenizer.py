"""The assets of tokenizers: one trained on a corpus, and one read from a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import dagster as dg
from pyspark.sql import DataFrame

from factory.lake import names
from factory.lake.schemas.models import TOKENIZER
from factory.models.tokenizer import tokenizer_table
from factory.models.tokenizer_file import tokenizer_of_file
from factory.orchestration.chain.link import Chain
from factory.orchestration.chain.texts import Member, Texts
from factory.orchestration.groups import MODELS, TOKENIZERS
from factory.orchestration.table.table_asset import table_asset
from factory.packing.tokenize import TokenizeConfig


def tokenizer(
    name: str,
    datasets: Sequence[str | Chain],
    *,
    vocabulary: int = 16_384,
    around: TokenizeConfig | None = None,
    image: str | None = None,
    lasting: bool = True,
) -> dg.AssetsDefinition:
    """Declare a byte-level BPE tokenizer trained on a sample of the deduplicated `datasets`.

    A dataset is a name, or the chain of links before `Packing`. The tokens of `around`, which `refine` puts
    around documents, are its special tokens, and so is the token `image` of pictures, if a dataset has any.
    A new tokenizer changes every packed table, so a `lasting` one is trained again only for another
    vocabulary or other special tokens, or by a run that selects it without any of `datasets`.
    """
    special = (around or TokenizeConfig()).tokens
    texts = Texts(tuple(map(_member, datasets)))

    @table_asset(
        namespace="models",
        name=name,
        asset_group=MODELS,
        schema=TOKENIZER,
        upstream=texts.tables,
        description="A byte-level BPE tokenizer, trained on a sample of "
        f"{', '.join(f'`{dataset}`' for dataset in texts.datasets)}.",
        config={"vocabulary": vocabulary, "special": _special(special, image)},
        lasting=lasting,
    )
    def trained(**upstream: DataFrame) -> DataFrame:
        return tokenizer_table(
            texts.documents(upstream), name, vocabulary, special_tokens=special, image=image
        )

    return _among_tokenizers(trained)


def tokenizer_from(
    path: Path, name: str, *, around: TokenizeConfig | None = None, image: str | None = None
) -> dg.AssetsDefinition:
    """Declare the tokenizer of a Hugging Face `tokenizer.json`, which has the tokens of `around`.

    If a dataset has pictures, it has their token `image` too.
    """
    special = (around or TokenizeConfig()).tokens

    @table_asset(
        namespace="models",
        name=name,
        asset_group=MODELS,
        schema=TOKENIZER,
        description=f"The tokenizer of the file `{path.name}`.",
        config={"special": _special(special, image)},
        files=lambda _: [path],
    )
    def from_file(pyspark) -> DataFrame:  # type: ignore[no-untyped-def]
        return tokenizer_of_file(pyspark.spark_session, name, path, special, image)

    return _among_tokenizers(from_file)


def _special(special: Sequence[str], image: str | None) -> tuple[str, ...]:
    return tuple(special) if image is None else (*special, image)


def _among_tokenizers(asset: dg.AssetsDefinition) -> dg.AssetsDefinition:
    """The asset in the graph's group of tokenizers, behind the filters that read other models."""
    return asset.map_asset_specs(lambda spec: spec.replace_attributes(group_name=TOKENIZERS))


def _member(dataset: str | Chain) -> Member:
    if isinstance(dataset, Chain):
        return Member.at_end_of(dataset)
    return Member(dataset, names.deduplicated(dataset))
