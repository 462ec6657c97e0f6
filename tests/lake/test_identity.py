"""Ids and hashes equal the published digits and frame what they hash."""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factory.lake.identity import content_hash, doc_id, tokenizer_id

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


@pytest.mark.invariant("Published hashes never change.")
def test_published_ids_never_change() -> None:
    assert doc_id("numpy@2.4.6", "numpy/__init__.py") == "cb68a6c2388ad84a349c3d66e74f8b03"
    assert doc_id("", "") == "463be1d58a72e9618ea59884367c4358"


def test_a_content_hash_is_what_b2sum_prints() -> None:
    # printf 'hello\n' | b2sum -l 128
    assert content_hash("hello\n") == "ea41b4de6c03f13a95758b28dd75693e"


def test_an_id_hashes_both_parts_behind_their_lengths() -> None:
    framed = b"\x02\0\0\0\0\0\0\0" + "é".encode() + b"\x03\0\0\0\0\0\0\0" + b"key"
    assert doc_id("é", "key") == blake2b(framed, digest_size=16).hexdigest()


def test_the_border_between_source_and_key_counts() -> None:
    assert doc_id("ab", "c") != doc_id("a", "bc")


@given(TEXTS)
def test_a_text_and_its_utf8_bytes_have_one_hash(text: str) -> None:
    assert content_hash(text) == content_hash(text.encode())


@given(TEXTS, TEXTS, TEXTS, TEXTS)
def test_ids_are_equal_exactly_for_equal_pairs(a: str, b: str, c: str, d: str) -> None:
    assert (doc_id(a, b) == doc_id(c, d)) == ((a, b) == (c, d))


def test_half_a_surrogate_pair_has_no_hash() -> None:
    with pytest.raises(UnicodeEncodeError):
        content_hash("\ud800")


TOKENIZER: dict[str, Any] = {
    "version": "1.0",
    "truncation": None,
    "padding": None,
    "added_tokens": [{"id": 0, "content": "<|endoftext|>", "special": True}],
    "model": {"type": "BPE", "vocab": {"<|endoftext|>": 0, "a": 1, "b": 2, "ab": 3}, "merges": [["a", "b"]]},
}


def changed(**model: Any) -> str:
    return json.dumps(TOKENIZER | {"model": TOKENIZER["model"] | model})


@pytest.mark.invariant("Published hashes never change.")
def test_the_id_of_a_tokenizer_never_changes() -> None:
    assert tokenizer_id(json.dumps(TOKENIZER)) == "46744ccd385c54f929b23f52f9b63a6f"


@pytest.mark.parametrize(
    "equal",
    [
        json.dumps(TOKENIZER, indent=2, sort_keys=True),
        json.dumps(TOKENIZER | {"truncation": {"max_length": 512}, "padding": {"pad_id": 0}}),
        changed(merges=["a b"]),
        changed(vocab=dict(reversed(TOKENIZER["model"]["vocab"].items()))),
    ],
)
def test_tokenizers_with_the_same_tokens_have_one_id(equal: str) -> None:
    assert tokenizer_id(equal) == tokenizer_id(json.dumps(TOKENIZER))


@pytest.mark.parametrize(
    "other",
    [
        changed(vocab={"<|endoftext|>": 0, "a": 2, "b": 1, "ab": 3}),
        changed(merges=[["b", "a"]]),
        changed(merges=[]),
        json.dumps(TOKENIZER | {"normalizer": {"type": "Lowercase"}}),
    ],
)
def test_different_tokenizers_have_two_ids(other: str) -> None:
    assert tokenizer_id(other) != tokenizer_id(json.dumps(TOKENIZER))
