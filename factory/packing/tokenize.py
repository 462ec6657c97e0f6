"""The tokens of every document, `tokenized.<dataset>`.

Each document is encoded once; packing, counting and sampling read these tokens. The tokens that begin or end
a document belong to it and count in its length.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from factory.lake.schemas import REPOSITORY, TOKENIZED
from factory.models.tokenizer import END_OF_TEXT, token_id
from spark_udfs.packing.tokenize import tokenize_batches


class TokenizeConfig(BaseModel):
    """The tokens around every document of a dataset."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    begin: str | None = Field(default=None, description="token before each document")
    end: str | None = Field(default=END_OF_TEXT, description="token after each document")

    @property
    def tokens(self) -> tuple[str, ...]:
        """The tokens given, each once."""
        return tuple(dict.fromkeys(token for token in (self.begin, self.end) if token is not None))


def tokenize(documents: DataFrame, tokenizer: str, config: TokenizeConfig | None = None) -> DataFrame:
    """Return rows of `TOKENIZED` for documents of (doc_id, text) and a `tokenizer.json`.

    Documents with a `position` keep it, their repository and its revision; all others, and those of no
    repository, are repositories of their own. Raises ConfigurationError if the tokenizer lacks a token of
    `config`.
    """
    config = config or TokenizeConfig()
    begin, end = (
        None if token is None else token_id(tokenizer, token) for token in (config.begin, config.end)
    )

    def tokens_of(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return tokenize_batches(batches, tokenizer, begin, end)

    return _placed(documents).mapInArrow(tokens_of, from_arrow_schema(TOKENIZED.columns))


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
