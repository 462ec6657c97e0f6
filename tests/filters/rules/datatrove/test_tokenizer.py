"""Words and sentences equal spaCy's recorded ones; remembering chunks changes no word."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factory.filters.rules.datatrove import tokenizer
from factory.filters.rules.datatrove.chunks import Chunks
from factory.filters.rules.datatrove.tokenizer import Tokenizer, english, tables
from tests.conftest import ROOT

STRINGS = json.loads((ROOT / "tests/filters/rules/datatrove/answers.json").read_text())["strings"]
EXCEPTIONS = sorted(tables()["exceptions"])
pieces = st.sampled_from([*EXCEPTIONS, *"'.,:;()-/*=8x ", "  ", "\n", "...", "http://a.b.org/x", "20km", "é"])
texts = st.lists(pieces, max_size=20).map("".join)


def test_words_and_sentences_are_those_of_spacy() -> None:
    for string in STRINGS:
        assert english().words(string["text"]) == string["words"], string["text"]
        assert english().n_sentences(string["text"]) == string["sentences"], string["text"]


@pytest.mark.parametrize(
    "text,words",
    [
        ("", []),
        (" \n\t", []),
        (
            "I don't, (he's) 20km/h.",
            ["I", "do", "n't", ",", "(", "he", "'s", ")", "20", "km/h", "."],
        ),
        ("see http://a.b.org/x, a@b.org!", ["see", "http://a.b.org/x", ",", "a@b.org", "!"]),
        ("well-known and/or 1,000 U.S.", ["well", "-", "known", "and/or", "1,000", "U.S."]),
        ("(:)) x", ["(", ":))", "x"]),
        ("." * 31 + "x" + "." * 33 + "'", ["." * 31, "x", "." * 33, "'"]),
        ("'" + "." * 32 + "x" + "." * 40, ["'", "." * 32, "x", "." * 40]),
        ("IS_ALPHA of IS_ALPHA", ["of"]),
    ],
)
def test_a_text_is_cut_into_words(text: str, words: list[str]) -> None:
    assert english().words(text) == words


@settings(deadline=None, max_examples=30)
@given(before=texts, text=texts)
def test_no_word_depends_on_the_texts_before(before: str, text: str) -> None:
    english().words(before)
    assert english().words(text) == Tokenizer(tables()).words(text)


@settings(deadline=None)
@given(text=texts)
def test_words_hold_every_character_but_spaces(text: str) -> None:
    assert "".join(english().words(text)) == "".join(text.split())


@settings(deadline=None)
@given(text=texts)
def test_a_text_cut_by_chunks_is_as_if_cut_as_a_whole(text: str) -> None:
    words = english().words(text)
    assert words == [token for token in english()._tokens(text) if not token.isspace()]


def test_chunks_are_forgotten_before_they_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenizer, "MOST_REMEMBERED", 100)
    own = Tokenizer(tables())
    for number in range(1_000):
        assert own.words(f"word{number} don't (x)") == [f"word{number}", "do", "n't", "(", "x", ")"]
        assert own._remembered <= 100 + len("word999") + len("don't(x)")


@pytest.mark.timeout(120)  # spaCy takes hours
@pytest.mark.parametrize(
    "chunk",
    [
        "*" * 300_000,
        "(" * 300_000,
        "." * 300_000,
        ("." * 40 + "'") * 8_000,
        "a:" * 100_000 + "@.",
        "x" * 10**6,
    ],
)
def test_a_long_chunk_is_cut_in_linear_time(chunk: str) -> None:
    assert "".join(Chunks(tables()).cut(chunk)) == chunk
