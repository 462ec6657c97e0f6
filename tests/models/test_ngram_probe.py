"""The native probe of n-grams equals its readable definition, and finds what was planted."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factory import _native
from factory.models.ngram_probe import ngrams, probe

texts = st.lists(st.sampled_from(["a", "B", "c,", "été", "日本", "\n", "d_e"]), max_size=12).map(" ".join)


@settings(max_examples=200, deadline=None)
@given(text=texts, item=texts, n=st.integers(1, 5))
def test_the_native_probe_is_the_definition(text: str, item: str, n: int) -> None:
    [hashes] = _native.token_ngrams(pa.array([item]), n)
    assert hashes.as_py() == [ngram.hash for ngram in ngrams(item, n)]
    [places] = _native.NgramProbe(hashes.values, n).places(pa.array([text])).to_pylist()
    utf8 = text.encode()
    native = [
        (place["hash"], len(utf8[: place["begin"]].decode()), len(utf8[: place["end"]].decode()))
        for place in places
    ]
    assert native == [(ngram.hash, ngram.begin, ngram.end) for ngram in probe(text, hashes.as_py(), n)]


def test_a_planted_passage_is_found_in_any_case_and_punctuation() -> None:
    item = "Which planet of the solar system has the most moons"
    text = "Intro words here. WHICH planet, of the solar system, has the most moons? End."
    [hashes] = _native.token_ngrams(pa.array([item]), 8)
    [places] = _native.NgramProbe(hashes.values, 8).places(pa.array([text])).to_pylist()
    assert len(places) == 3
    assert (
        text[places[0]["begin"] : places[-1]["end"]]
        == "WHICH planet, of the solar system, has the most moons"
    )


def test_a_missing_text_and_wrong_arguments() -> None:
    probe_of_none = _native.NgramProbe(pa.array([], pa.uint64()), 3)
    assert probe_of_none.places(pa.array([None, ""], pa.string())).to_pylist() == [None, []]
    with pytest.raises(ValueError, match="Use 1 to 1000"):
        _native.token_ngrams(pa.array(["a"]), 0)
    with pytest.raises(ValueError, match="no uint64"):
        _native.NgramProbe(pa.array([1]), 3)
