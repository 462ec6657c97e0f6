"""The native counts and vectors of LSA equal their readable definition; near texts have near vectors."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from factory import _native
from factory.errors import NotFound
from factory.models import lsa

texts = st.one_of(
    st.lists(
        st.sampled_from(
            [
                "# ",
                "// ",
                "/*",
                "*/",
                "<!--",
                "-->",
                "--",
                "\n",
                " ",
                "\t",
                "licence",
                "SPDX",
                "a",
                "Été",
                "日本",
            ]
        )
    ).map("".join),
    st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=40),
)
TOPICS = {
    "sea": ["ship", "sails", "harbor", "wind", "captain", "waves", "anchor", "storm"],
    "bread": ["flour", "water", "yeast", "dough", "oven", "crust", "bake", "salt"],
}


def sample(n_each: int = 30, seed: int = 3) -> pa.Array:
    chance = np.random.default_rng(seed)
    return pa.array(
        [
            " ".join([*chance.choice(words, 20), "the", "and"])
            for words in TOPICS.values()
            for _ in range(n_each)
        ]
    )


def embed(projection: lsa.Floats, texts: pa.Array) -> lsa.Floats:
    bits = len(projection).bit_length() - 1
    numbers = _native.LsaModel(bits, lsa.bfloat16(projection).tobytes()).embed(texts).to_numpy()
    return numbers.reshape(len(texts), -1)


@settings(max_examples=300, deadline=None)
@given(text=texts, bits=st.sampled_from([1, 6, 16]))
@example("#!/bin/sh\n# Copyright 2020\n\n# Sorts.\nsort", 16)
@example("\ufeff<?php\n/* The license */ f();", 16)
@example("/*/ license", 16)
@example("-- licen\u017fe\na", 16)
def test_native_counts_are_those_of_the_definition(text: str, bits: int) -> None:
    table = _native.hashed_counts(pa.array([text]), bits)
    [buckets], [counts] = table["buckets"].to_pylist(), table["counts"].to_pylist()
    assert dict(zip(buckets, counts, strict=True)) == lsa.counts(text, bits)


@settings(max_examples=100, deadline=None)
@given(text=texts)
def test_native_vectors_are_those_of_the_definition(text: str) -> None:
    normals = np.random.default_rng(7).normal(size=(1 << 6, 5)).astype(np.float32)
    projection = lsa.from_bfloat16(lsa.bfloat16(normals))
    [native] = embed(projection, pa.array([text]))
    assert native == pytest.approx(lsa.vector(text, projection), abs=1e-5)


@pytest.mark.parametrize(
    "text, rest",
    [
        ("#!/usr/bin/python3\n\n# Copyright 2020\n# by us\n\nimport os", "\nimport os"),
        ("/* SPDX-License-Identifier: MIT */\n/* Sorts. */\nint a;", "\n/* Sorts. */\nint a;"),
        ("; The queue.\n\n; All under the MIT Licence\n(define a)", "(define a)"),
        ("# Introduction\n\nLicense fees rose.", "# Introduction\n\nLicense fees rose."),
        ("# Copyright 2020\n\n", "# Copyright 2020\n\n"),
    ],
)
def test_the_license_comment_at_the_head_is_cut_off(text: str, rest: str) -> None:
    assert lsa.without_license_comment(text) == rest


@given(
    numbers=st.lists(st.floats(-(2.0**100), 2.0**100, width=32), min_size=1),
)
def test_bfloat16_is_the_nearest_number_of_eight_bits(numbers: list[float]) -> None:
    floats = np.array(numbers, np.float32)
    nearest = lsa.from_bfloat16(lsa.bfloat16(floats))
    assert np.array_equal(lsa.bfloat16(nearest), lsa.bfloat16(floats))
    mantissas, _ = np.frexp(nearest)
    assert np.array_equal(mantissas * 256, np.round(mantissas * 256))
    assert (np.abs(nearest - floats) <= np.abs(floats) * 2.0**-8 + 1e-38).all()


def test_texts_of_one_topic_are_nearer_than_texts_of_two() -> None:
    vectors = embed(lsa.fit_projection(sample(), 8), sample(seed=4))
    cosines = vectors @ vectors.T
    assert cosines[:30, :30].min() > cosines[:30, 30:].max()
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1)


def test_a_text_without_a_known_token_has_a_vector_of_zeros() -> None:
    projection = lsa.fit_projection(sample(), 8)
    vectors = embed(projection, pa.array([None, "", "!?", "zebra", "a zebra on a ship"]))
    assert vectors.any(axis=1).tolist() == [False, False, False, False, True]


@pytest.mark.invariant("An embedder has the same weights for any number of cores.")
def test_any_number_of_threads_fits_the_same_projection() -> None:
    chance = np.random.default_rng(5)
    words = [f"word{number}" for number in range(3_000)]
    texts = pa.array([" ".join(chance.choice(words, 60)) for _ in range(400)])
    projections = []
    for n_threads in (1, 2):
        with threadpool_limits(limits=n_threads):
            projections.append(lsa.fit_projection(texts, 64).tobytes())
    assert projections[0] == projections[1]


@pytest.mark.parametrize("n_texts", [1, 3])
def test_few_texts_and_equal_texts_span_few_dimensions(n_texts: int) -> None:
    assert lsa.fit_projection(pa.array(["a few words"] * n_texts), 8).shape == (1 << lsa.BITS, 1)
    assert lsa.fit_projection(pa.array(["a", "b", "c d", "c d"]), 8).shape[1] == 3


def test_texts_without_a_word_are_refused() -> None:
    with pytest.raises(NotFound, match=r"None of the 2 documents .* has a word"):
        lsa.fit_projection(pa.array(["", "?!"]), 8)


def test_a_missing_text_has_no_counts_and_wrong_arguments_are_refused() -> None:
    assert _native.hashed_counts(pa.array([None, ""], pa.string()), 4)["counts"].to_pylist() == [None, []]
    with pytest.raises(ValueError, match=r"Use 2\^1 to 2\^24"):
        _native.hashed_counts(pa.array(["a"]), 25)
    with pytest.raises(ValueError, match="Cast them to string"):
        _native.LsaModel(1, bytes(4)).embed(pa.array([1]))
    with pytest.raises(ValueError, match=r"two for each dimension of each of 2\^1 buckets"):
        _native.LsaModel(1, bytes(9))
    with pytest.raises(ValueError, match="contains NaN"):
        _native.LsaModel(1, np.full(2, 0x7FC0, np.uint16).tobytes())
