"""A tokenizer trained on the corpus, as a table of one row.

Byte-level BPE (Sennrich et al., 2016; Radford et al., 2019): its alphabet is the 256 bytes, so every text
can be encoded and decoding restores it. The driver trains it on a sample of the documents by hash of
`doc_id`: the same documents give the same sample in any order and partitioning, and the same sample gives
the same bytes with any number of threads (merges of equal count go by the pair).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from factory.errors import ConfigurationError, NotFound
from factory.lake.schemas.images import PLACEHOLDER
from factory.lake.schemas.models import TOKENIZER
from factory.models.sampling import unit_interval
from spark_udfs.models.tokenizer import load, n_tokens

END_OF_TEXT = "<|endoftext|>"
IMAGE = "<|image|>"  # stands for a picture among tokens
N_BYTES_VALUES = 256
SAMPLE_BYTES = 8_000_000
MOST_TOKENS = 1 << 20  # four times the largest in use; the trainer allocates all before it starts
SAMPLED_OF_A_DOCUMENT = 100_000  # characters: no single document should shape the vocabulary


def tokenizer_table(
    documents: DataFrame,
    name: str,
    vocabulary: int = 16_384,
    *,
    sample_bytes: int = SAMPLE_BYTES,
    special_tokens: Sequence[str] = (END_OF_TEXT,),
    image: str | None = None,
) -> DataFrame:
    """The row of `models.<name>`: a tokenizer trained on a sample of `documents` (doc_id, text).

    With `image`, the token of a picture, it is a special token too, and placeholders teach the tokenizer
    nothing. Collects the sample on the driver, because one machine trains.
    """
    sample = training_sample(documents, sample_bytes)
    if image is not None:
        sample = [text.replace(PLACEHOLDER, "") for text in sample]
        special_tokens = (*special_tokens, image)
    tokenizer = train(iter(sample), vocabulary, special_tokens)
    row = {"name": name, "n_tokens": n_tokens(tokenizer), "tokenizer": tokenizer, "partition": None}
    return documents.sparkSession.createDataFrame(pa.Table.from_pylist([row], schema=TOKENIZER.columns))


def token_id(tokenizer: str, token: str) -> int:
    """The number of `token`. Raises ConfigurationError if the tokenizer lacks it."""
    number = load(tokenizer).token_to_id(token)
    if number is None:
        raise ConfigurationError(
            f"The tokenizer has no token `{token}`. Name one of its tokens, or null for none."
        )
    return number


def image_token_id(tokenizer: str, token: str) -> int:
    """The number of the token of pictures. Raises ConfigurationError if the tokenizer lacks it."""
    number = load(tokenizer).token_to_id(token)
    if number is None:
        raise ConfigurationError(
            f"The tokenizer has no token `{token}` for pictures. Name the one that it has as `image` of the "
            "tokenizer, such as `<|image_pad|>`, or leave `file` out to train one."
        )
    return number


def train(
    texts: Iterator[str], vocabulary: int = 16_384, special_tokens: Sequence[str] = (END_OF_TEXT,)
) -> str:
    """The `tokenizer.json` of a byte-level BPE of at most `vocabulary` tokens, bytes and specials included.

    A small sample gives fewer tokens. Raises ConfigurationError for a vocabulary without room for a single
    merge, or above MOST_TOKENS.
    """
    if vocabulary > MOST_TOKENS:
        raise ConfigurationError(
            f"A vocabulary of {vocabulary} tokens is more than can be trained. Use at most {MOST_TOKENS}; "
            "16384 is the default."
        )
    least = N_BYTES_VALUES + len(special_tokens) + 1
    if vocabulary < least:
        raise ConfigurationError(
            f"A vocabulary of {vocabulary} tokens has no room beside {N_BYTES_VALUES} bytes and "
            f"{len(special_tokens)} special tokens. Use at least {least}; 16384 is the default."
        )
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=list(special_tokens),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer.to_str()


def training_sample(documents: DataFrame, n_bytes: int) -> list[str]:
    """Texts of at most `n_bytes` in all, from the documents with the least hashes, in order of hash.

    Runs two jobs: the total size decides which share of the documents is read.
    """
    texts = documents.where(F.col("text").isNotNull())
    size = F.col("n_bytes") if "n_bytes" in documents.columns else F.octet_length("text")
    total = texts.agg(F.sum(size).alias("total")).collect()[0].total
    if not total:
        raise NotFound("There is no text to train a tokenizer on. Check the filters of its datasets.")
    unit = unit_interval()
    rows = (
        texts.where(unit < n_bytes / total)
        .select(unit.alias("unit"), "doc_id", F.substring("text", 1, SAMPLED_OF_A_DOCUMENT).alias("text"))
        .orderBy("unit", "doc_id")
        .toArrow()
    )
    sample: list[str] = []
    left = n_bytes
    for text in rows.column("text").to_pylist():
        left -= len(text.encode())
        if left < 0:
            break
        sample.append(text)
    return sample
