"""Ids and hashes are what the published digits say, and frame what they hash."""

from __future__ import annotations

from hashlib import blake2b

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factory.lake.identity import content_hash, doc_id

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


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
