"""The tokens of every document, `tokenized.<dataset>`.

Each document is encoded once; packing, counting and sampling read these tokens. The tokens that begin or end
a document belong to it and count in its length.
"""

from __future__ import annotations

from functools import partial

from pydantic import Field
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from factory.frozen_model import FrozenModel
from factory.lake.schemas.base import REPOSITORY
from factory.lake.schemas.packing import TOKENIZED
from factory.models.tokenizer import END_OF_TEXT, image_token_id, token_id
from spark_udfs.models.text_encoder import text_encoder
from spark_udfs.packing.tokenize import control_tokens, tokenize_batches


class TokenizeConfig(FrozenModel):
    """The tokens around every document of a dataset."""

    begin: str | None = Field(default=None, description="token before each document")
    end: str | None = Field(default=END_OF_TEXT, description="token after each document")

    @property
    def tokens(self) -> tuple[str, ...]:
        """The configured tokens, each once."""
        return tuple(dict.fromkeys(token for token in (self.begin, self.end) if token is not None))


def tokenize(
    documents: DataFrame, tokenizer: str, config: TokenizeConfig | None = None, image: str | None = None
) -> DataFrame:
    """Return rows of `TOKENIZED` for documents of (doc_id, text) and a `tokenizer.json`.

    Documents with a `position` keep it, their repository and its revision. A document without a position or
    repository counts as a repository of its own. `image` is the token for each placeholder of a picture;
    without it, a placeholder is text. Raises ConfigurationError if the tokenizer lacks a token of `config` or
    `image`, or yields it for ordinary text.
    """
    config = config or TokenizeConfig()
    begin, end = (
        None if token is None else token_id(tokenizer, token) for token in (config.begin, config.end)
    )
    of_image = None if image is None else image_token_id(tokenizer, image)
    text_encoder(tokenizer, control_tokens(begin, end, of_image))
    encode = partial(tokenize_batches, tokenizer=tokenizer, begin=begin, end=end, image=of_image)
    return _placed(documents).mapInArrow(encode, from_arrow_schema(TOKENIZED.columns))


def _placed(documents: DataFrame) -> DataFrame:
    ordered = {*REPOSITORY, "position"} <= set(documents.columns)
    partitioned = "partition" in documents.columns
    return documents.select(
        "doc_id",
        (F.coalesce("repository", "doc_id") if ordered else F.col("doc_id")).alias("repository"),
        (F.col("position") if ordered else F.lit(0)).cast("long").alias("position"),
        (F.col("revision") if ordered else F.lit(None)).cast("string").alias("revision"),
        "text",
        (F.col("partition") if partitioned else F.lit(None)).cast("string").alias("partition"),
    )
