"""Tokenizers, loaded in Spark's Python workers and on the driver.

A tokenizer is the text of a Hugging Face `tokenizer.json`. A worker loads it once, after the worker was
forked.
"""

from __future__ import annotations

import os
from functools import lru_cache

from tokenizers import Tokenizer


@lru_cache(maxsize=2)
def load(tokenizer: str) -> Tokenizer:
    """The tokenizer of a `tokenizer.json`: no truncation, no padding, special tokens read as plain text."""
    return tokenizer_for_text(tokenizer)


def tokenizer_for_text(content: str) -> Tokenizer:
    """Return the tokenizer of a `tokenizer.json`, as `load` does, without keeping it."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # its threads would compete with the other workers
    loaded = Tokenizer.from_str(content)
    loaded.no_truncation()
    loaded.no_padding()
    loaded.encode_special_tokens = True
    return loaded


@lru_cache(maxsize=2)
def n_tokens(tokenizer: str) -> int:
    """The size of the vocabulary: the largest token plus one."""
    return max(load(tokenizer).get_vocab(with_added_tokens=True).values()) + 1


def token_bytes(n_tokens: int) -> int:
    """The bytes per token in a table: 2 if a vocabulary of `n_tokens` fits, else 4."""
    return 2 if n_tokens <= 1 << 16 else 4
