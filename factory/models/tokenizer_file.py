"""An existing tokenizer, read from its `tokenizer.json` into a table of one row."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from tokenizers import Tokenizer

from factory.errors import ConfigurationError
from factory.lake.schemas.models import TOKENIZER
from factory.models.tokenizer import image_token_id, token_id
from spark_udfs.models.text_encoder import text_encoder
from spark_udfs.models.tokenizer import n_tokens


def tokenizer_of_file(
    spark: SparkSession, name: str, path: Path, required: Sequence[str], image: str | None = None
) -> DataFrame:
    """The row of `models.<name>`: the tokenizer of a file, as `read_tokenizer` reads it."""
    text = read_tokenizer(path, required, image)
    row = {"name": name, "n_tokens": n_tokens(text), "tokenizer": text, "partition": None}
    return spark.createDataFrame(pa.Table.from_pylist([row], schema=TOKENIZER.columns))


def read_tokenizer(path: Path, required: Sequence[str], image: str | None = None) -> str:
    """The content of a Hugging Face `tokenizer.json`.

    Raises ConfigurationError for a file that cannot be read or is not a tokenizer, and for a tokenizer
    without one of the tokens `required` or the token `image` of pictures, or that yields one of them for
    ordinary text.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(
            f"The tokenizer {path} cannot be read ({error.strerror}). Name a `tokenizer.json`."
        ) from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(
            f"The tokenizer {path} is not UTF-8 (byte {error.start}). Name a `tokenizer.json`."
        ) from error
    try:
        size = Tokenizer.from_str(text).get_vocab_size(with_added_tokens=True)
    except Exception as error:  # the library has no exception of its own
        said = str(error).rstrip(".")
        raise ConfigurationError(
            f"{path} is not a Hugging Face `tokenizer.json` ({said}). Save one with `save_pretrained`."
        ) from error
    if not size:
        raise ConfigurationError(f"The tokenizer {path} has no tokens. Name another.")
    of_image = () if image is None else (image_token_id(text, image),)
    text_encoder(text, (*(token_id(text, token) for token in required), *of_image))
    return text
