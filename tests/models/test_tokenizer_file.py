"""A tokenizer from a file: its vocabulary and special tokens, and refused files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tokenizers import Tokenizer, models, pre_tokenizers

from factory.errors import ConfigurationError
from factory.models.tokenizer_file import read_tokenizer, tokenizer_of_file
from factory.packing.tokenize import TokenizeConfig, tokenize

AROUND = TokenizeConfig(begin="<s>", end="</s>")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A tokenizer of whole words, as somebody's library saves it."""
    made = Tokenizer(models.WordLevel({"<s>": 0, "</s>": 1, "?": 2, "a": 3, "b": 4}, unk_token="?"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made.enable_truncation(1)
    made.save(str(tmp_path / "tokenizer.json"))
    return tmp_path / "tokenizer.json"


@pytest.mark.spark
def test_documents_are_tokenized_between_the_tokens_of_the_file(spark: SparkSession, path: Path) -> None:
    (row,) = tokenizer_of_file(spark, "mine", path, AROUND.tokens).collect()
    assert (row.name, row.n_tokens, row.tokenizer) == ("mine", 5, path.read_text())
    documents = spark.createDataFrame([("d", "a b c", None)], "doc_id string, text string, partition string")
    (found,) = tokenize(documents, row.tokenizer, AROUND).collect()
    assert list(memoryview(found.tokens).cast("H")) == [0, 3, 4, 2, 1]


def test_a_missing_token_is_named(path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"no token `<\|endoftext\|>`. Name one of its tokens"):
        read_tokenizer(path, TokenizeConfig().tokens)


def test_a_token_around_documents_that_texts_need_is_refused(path: Path) -> None:
    content = json.loads(path.read_text())
    content["pre_tokenizer"] = {
        "type": "Split",
        "pattern": {"String": ""},
        "behavior": "Isolated",
        "invert": False,
    }
    path.write_text(json.dumps(content))
    with pytest.raises(
        ConfigurationError, match="has `a` as a special token or around documents, but ordinary"
    ):
        read_tokenizer(path, ("a",))


@pytest.mark.parametrize(
    "content, error",
    [
        (None, "cannot be read (No such file or directory). Name a `tokenizer.json`."),
        (b"\xff", "is not UTF-8 (byte 0)."),
        (b"{}", "is not a Hugging Face `tokenizer.json` ("),
        (b"", "is not a Hugging Face `tokenizer.json` ("),
        (b'{"version": "1.0", "added_tokens": [], "model": {"type": "BPE", "vocab": {}, "merges": []}}', ""),
    ],
)
def test_a_file_that_is_not_a_tokenizer_is_refused(tmp_path: Path, content: bytes | None, error: str) -> None:
    path = tmp_path / "tokenizer.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigurationError) as caught:
        read_tokenizer(path, AROUND.tokens)
    assert str(path) in str(caught.value)
    assert error in str(caught.value)
