"""The native tokens, hashes and features equal their readable definition on every text."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from factory import _native
from factory.models import hashing

texts = st.one_of(
    st.lists(
        st.sampled_from(["a", "Go", "été", "ẞ", "İx", "日本", "ไทย", "_", " ", ",", "9", "\n", "Ǆ"])
    ).map("".join),
    st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=40),
)


@settings(max_examples=300, deadline=None)
@given(text=texts)
@example("")
@example("The the THE")
def test_native_tokens_are_those_of_the_definition(text: str) -> None:
    utf8 = text.encode()
    native = [
        (hash_, utf8[:begin].decode(), utf8[:end].decode())
        for hash_, begin, end in _native.token_hashes(text)
    ]
    assert native == [(token.hash, text[: token.begin], text[: token.end]) for token in hashing.tokens(text)]


@settings(max_examples=200, deadline=None)
@given(text=texts, bits=st.sampled_from([1, 4, 18, 28]))
def test_native_features_are_those_of_the_definition(text: str, bits: int) -> None:
    [buckets] = _native.hashed_features(pa.array([text]), bits).to_pylist()
    assert len(buckets) == len(set(buckets))
    assert set(buckets) == hashing.features(text, bits)
    ngrams = _native.hashed_ngrams(text, bits)
    assert [bucket for bucket, _, _ in ngrams] == buckets
    for bucket, begin, end in ngrams:
        spelling = text.encode()[begin:end].decode()
        hashes = [token.hash for token in hashing.tokens(spelling)]
        assert len(hashes) in (1, 2)
        assert bucket == (hashes[0] if len(hashes) == 1 else hashing.pair(*hashes)) >> (64 - bits)


def test_words_are_one_token_and_ideographs_each() -> None:
    assert [token.word for token in hashing.tokens("Don't_go 日本、É!")] == ["don", "t_go", "日", "本", "é"]


def test_a_missing_text_has_no_features_and_wrong_arguments_are_refused() -> None:
    assert _native.hashed_features(pa.array([None, ""], pa.string()), 4).to_pylist() == [None, []]
    with pytest.raises(ValueError, match=r"Use 2\^1 to 2\^28"):
        _native.hashed_features(pa.array(["a"]), 29)
    with pytest.raises(ValueError, match="Cast them to string"):
        _native.hashed_features(pa.array([1]), 4)
