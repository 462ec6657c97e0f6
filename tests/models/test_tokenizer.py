"""The trained tokenizer has the size asked for, and the same sample gives the same bytes."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from factory.errors import ConfigurationError
from factory.models.tokenizer import END_OF_TEXT, train
from spark_udfs.models.tokenizer import load, n_tokens

_TRAIN = """
import hashlib, sys
from pathlib import Path
from factory.models.tokenizer import train
texts = [p.read_text() for p in sorted(Path(sys.argv[1]).rglob("*.py"))]
print(hashlib.sha256(train(iter(texts), 4_000).encode()).hexdigest())
"""


def fingerprint_elsewhere(folder: Path, **environment: str) -> str:
    """The hash of a tokenizer trained on a folder's files in a process of its own."""
    command = [sys.executable, "-c", _TRAIN, str(folder)]
    done = subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, check=True, timeout=600
    )
    return done.stdout.strip()


def test_a_sample_gives_the_same_bytes_with_any_threads() -> None:
    folder = Path(__file__).parents[2] / "factory"
    one = fingerprint_elsewhere(folder, RAYON_NUM_THREADS="1", PYTHONHASHSEED="1")
    other = fingerprint_elsewhere(
        folder, RAYON_NUM_THREADS="4", TOKENIZERS_PARALLELISM="true", PYTHONHASHSEED="2"
    )
    assert one == other
    assert len(one) == len(hashlib.sha256().hexdigest())


def test_the_order_of_the_sample_does_not_matter() -> None:
    texts = ["def f(x):\n    return x", "for x in range(3):\n    print(x)", "x = x + 1"] * 9
    assert train(iter(texts), 300) == train(iter(sorted(texts)), 300)


def test_the_vocabulary_has_bytes_special_tokens_and_merges() -> None:
    tokenizer = train(iter(["banana bandana " * 50]), 260, ["<|begin|>", END_OF_TEXT])
    assert n_tokens(tokenizer) == 260
    assert [load(tokenizer).token_to_id(token) for token in ("<|begin|>", END_OF_TEXT)] == [0, 1]
    assert n_tokens(train(iter([]), 16_384)) == 257  # nothing to merge


def test_a_vocabulary_without_room_for_a_merge_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="Use at most 1048576"):
        train(iter(["text"]), vocabulary=1 << 40)
    with pytest.raises(ConfigurationError, match="Use at least 258"):
        train(iter(["a"]), 257)
