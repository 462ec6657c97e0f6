"""The tables of models."""

from __future__ import annotations

import pyarrow as pa

from factory.lake.schemas.base import required, table

TOKENIZER = table(
    required("name", pa.string(), "name of the tokenizer"),
    required("n_tokens", pa.int64(), "tokens in its vocabulary"),
    required("tokenizer", pa.string(), "the content of a Hugging Face tokenizer.json"),
    key=("name",),
    chart="models.tokenizer",
)
