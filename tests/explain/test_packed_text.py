"""Packed rows as text: every piece is the text of its document, with the tokens around it."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from factory.explain.packed_text import pieces_of_row
from factory.models.tokenizer import END_OF_TEXT, train
from tests.packing.pictures import picture


@cache
def tokenizer() -> Tokenizer:
    return Tokenizer.from_str(train(iter(["The quick brown fox, na\xefvely, jumps over \u96ea."]), 300))


@pytest.mark.parametrize("token_bytes", [2, 4])
@given(texts=st.lists(st.text(max_size=40), max_size=5))
def test_every_piece_is_the_text_of_its_document(token_bytes: int, texts: list[str]) -> None:
    end = tokenizer().token_to_id(END_OF_TEXT)
    tokens = [[*tokenizer().encode(text).ids, end] for text in texts]
    segments = [
        {"doc_id": f"d{number}", "doc_offset": 0, "length": len(part)} for number, part in enumerate(tokens)
    ]
    row = {
        "tokens": np.array([one for part in tokens for one in part], f"<u{token_bytes}").tobytes(),
        "segments": segments,
    }
    pieces = pieces_of_row(row, tokenizer(), token_bytes, {"d0": "web / a"})
    assert [piece.text for piece in pieces] == [f"{text}{END_OF_TEXT}" for text in texts]
    assert [piece.name for piece in pieces] == ["web / a", *[None] * 4][: len(texts)]


def test_a_picture_stands_in_the_place_of_its_token() -> None:
    end, image = tokenizer().token_to_id(END_OF_TEXT), 1
    text = tokenizer().encode("fox").ids
    row = {
        "tokens": np.array([*text, end, image, *text, image, end], "<u2").tobytes(),
        "segments": [
            {"doc_id": "d0", "doc_offset": 0, "length": len(text) + 1},
            {"doc_id": "d1", "doc_offset": 0, "length": len(text) + 3},
        ],
        "images": [
            {"position": len(text) + 1 + place, **picture(name, 40)}
            for place, name in [(0, "a.png"), (len(text) + 1, "b.png")]
        ],
    }
    first, second = pieces_of_row(row, tokenizer(), 2)
    assert first.text == f"fox{END_OF_TEXT}"
    assert second.text == (
        "[picture 0: 28 x 14 image/png, 40 bytes, a.png]fox"
        f"[picture 1: 28 x 14 image/png, 40 bytes, b.png]{END_OF_TEXT}"
    )
