"""Bags, token counts and the idf table."""

from __future__ import annotations

import unicodedata
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.dedup.minhash.corpus import counted
from factory import _native
from spark_udfs.dedup.bags import count_tokens, make_bags, merge_counts, pack_frequencies
from tests.dedup.bagged import idf_table

TEXTS = ["def run(x):\n    return x  # runs", "x = x + 1", "", None, "Größe = 3.5e-1 # Größe"]

COUNTED = pa.schema(
    [
        pa.field("token", pa.int64(), nullable=False),
        pa.field("document_frequency", pa.int64(), nullable=False),
        pa.field("term_frequency", pa.int64(), nullable=False),
        pa.field("text", pa.string()),
    ]
)


def words(batches: list[pa.RecordBatch]) -> dict[str, tuple[int, int]]:
    """(document_frequency, term_frequency) of each token, from (part, counts)."""
    parts = pa.Table.from_batches(batches).sort_by("part").to_batches()
    rows = pa.Table.from_batches(list(merge_counts(parts, text_documents=1)), COUNTED).to_pylist()
    assert len({row["token"] for row in rows}) == len(rows)
    return {row["text"]: (row["document_frequency"], row["term_frequency"]) for row in rows}


def texts(values: list[str | None], copies: int = 1) -> pa.RecordBatch:
    numbers = pa.array([copies] * len(values), pa.int64())
    return pa.RecordBatch.from_pydict({"copies": numbers, "text": pa.array(values, pa.string())})


def counted_parts(batches: list[pa.RecordBatch], kind: str = "code") -> list[pa.RecordBatch]:
    """(part, counts) of the rows (copies, text)."""
    return list(count_tokens(make_bags(batches, kind, max_distinct=100, text_bytes=64)))


def test_tokens_are_counted_by_document_and_by_occurrence() -> None:
    once = dict.fromkeys(("def", "run", "return", "runs", "1", "3.5e-1"), (1, 1))
    assert words(counted_parts([texts(TEXTS)])) == once | {"x": (2, 4), "Größe": (1, 2)}


def test_a_text_counts_for_each_of_its_copies() -> None:
    twice = words(counted_parts([texts(["a b a"], copies=2), texts(["b"])]))
    assert twice == {"a": (2, 4), "b": (3, 3)}


def test_frequent_tokens_alone_have_their_text() -> None:
    counted = pa.Table.from_batches(counted_parts([texts(["a b", "b"])]))
    rows = pa.Table.from_batches(merge_counts(counted.sort_by("part").to_batches(), text_documents=2))
    assert {row["text"]: row["document_frequency"] for row in rows.to_pylist()} == {None: 1, "b": 2}


def test_prose_is_lower_cased_and_code_is_not() -> None:
    prose = words(counted_parts([texts(["The the-THE_the"])], "prose"))
    code = words(counted_parts([texts(["The the-THE_the"])]))
    assert prose == {"the": (1, 2), "the_the": (1, 1)}
    assert code == {"The": (1, 1), "the": (1, 1), "THE_the": (1, 1)}


def test_shingles_are_words_in_a_row_and_a_short_text_is_one() -> None:
    counted = words(counted_parts([texts(["a = (b, c)", "a.b.d", "C"])], "code-2grams"))
    assert counted == {"a b": (2, 2), "b c": (1, 1), "b d": (1, 1), "C": (1, 1)}


@given(
    st.lists(st.lists(st.sampled_from(["a", "b", "Äb", "c9", "東"]), max_size=9), max_size=6),
    st.integers(1, 6),
)
def test_counts_do_not_depend_on_how_texts_come_in_batches(documents: list[list[str]], cut: int) -> None:
    joined = [" ".join(document) for document in documents]
    parts = [texts(joined[at : at + cut]) for at in range(0, len(joined), cut)]
    counted = words(counted_parts(parts))
    occurrences = Counter(token for document in documents for token in document)
    in_documents = Counter(token for document in documents for token in set(document))
    assert counted == {token: (in_documents[token], occurrences[token]) for token in occurrences}


def test_bags_are_added_to_the_columns_of_their_texts() -> None:
    [made] = make_bags([texts(TEXTS, copies=3)], "code", max_distinct=100, text_bytes=64)
    assert made.schema.names == ["copies", "n_tokens", "bag", "token_texts"]
    assert made["n_tokens"].to_pylist() == [6, 3, 0, 0, 3]
    distinct = [len(it) // 9 for it in made["bag"].to_pylist()]  # and four bytes for their number
    assert distinct == [5, 2, 0, 0, 2]


@pytest.mark.parametrize("column", ["bag", "token_texts"])
def test_an_invalid_bag_is_refused(column: str) -> None:
    [made] = make_bags([texts(["a b"])], "code", max_distinct=100, text_bytes=64)
    cut = pa.array([made[column][0].as_py()[:-1]])
    with pytest.raises(ValueError, match=r"Invalid (packed bag|token texts) of \d+ bytes"):
        _native.TokenCounter().add(made.set_column(made.schema.names.index(column), column, cut))


def test_a_bag_has_the_same_tokens_in_strings_of_either_width() -> None:
    narrow, wide = (
        _native.BagMaker("code", 100, 64).make(pa.array(TEXTS, width))
        for width in (pa.string(), pa.large_string())
    )
    assert narrow.equals(wide)
    assert narrow["n_tokens"].to_pylist() == [6, 3, 0, 0, 3]


def test_a_bag_of_many_tokens_is_bounded_and_still_similar() -> None:
    many = " ".join(f"t{number}" for number in range(5000))
    texts = pa.array([many, many + " one more"])
    first, second = (set(tokens.tolist()) for tokens, _ in counted(texts, max_distinct=100))
    assert len(first) == len(second) == 100
    assert len(first & second) >= 98
    assert _native.BagMaker("code", 100, 64).make(texts)["n_tokens"].to_pylist() == [5000, 5002]


def test_an_unknown_kind_or_type_is_an_error_that_names_it() -> None:
    with pytest.raises(ValueError, match="Unknown kind of text `verse`"):
        _native.BagMaker("verse", 10, 64)
    with pytest.raises(ValueError, match="Int64"):
        _native.BagMaker("code", 10, 64).make(pa.array([1]))


def vocabulary(frequencies: dict[int, int], n_documents: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {
            "token": pa.array(list(frequencies), pa.int64()),
            "document_frequency": pa.array(list(frequencies.values()), pa.int64()),
            "n_documents": pa.array([n_documents] * len(frequencies), pa.int64()),
        }
    )


@settings(deadline=None)
@given(
    st.dictionaries(st.integers(-(2**63), 2**63 - 1), st.integers(1, 900), min_size=1, max_size=30),
    st.integers(1, 5),
)
def test_the_idf_table_is_the_same_however_tokens_are_split(frequencies: dict[int, int], cut: int) -> None:
    tokens = list(frequencies)
    pieces = [
        vocabulary({token: frequencies[token] for token in tokens[at : at + cut]}, 900)
        for at in range(0, len(tokens), cut)
    ]
    builder = _native.IdfBuilder()
    for half in (pieces[::2], pieces[1::2]):
        for row in (row for batch in pack_frequencies(iter(half)) for row in batch.to_pylist()):
            numbers = [np.frombuffer(row[name], "<i8") for name in ("tokens", "document_frequencies")]
            builder.add(*map(pa.array, numbers))
            assert row["n_documents"] == 900
    assert builder.finish(900) == idf_table(frequencies, 900)


def test_no_tokens_make_no_part_of_a_table() -> None:
    assert list(pack_frequencies([])) == []
    assert list(pack_frequencies([vocabulary({}, 5)])) == []


ACCENTS = "Größe, café, 각하, Việt"
FORMS = {
    "decomposed": (unicodedata.normalize("NFD", ACCENTS), ACCENTS),
    "soft hyphens": ("co\u00adope\u00adra\u00adtion", "cooperation"),
    "joiners": ("wo\u200drd \u200cs", "word s"),
    "zero-width spaces": ("ภาษา\u200bไทย", "ภาษาไทย"),
    "full width": ("ｔｗｏ\u3000ｗｏｒｄｓ", "two words"),
    "apostrophes": ("don\u2019t d\u2018or", "don't d'or"),
    "byte order mark": ("\ufeffword", "word"),
}


@pytest.mark.parametrize("kind", ["prose", "code", "cl100k_base", "prose-5grams"])
@pytest.mark.parametrize("form", FORMS)
def test_a_text_in_another_form_has_the_same_bag(form: str, kind: str) -> None:
    other, text = FORMS[form]
    [(tokens, counts), (expected, expected_counts)] = counted(pa.array([other, text]), kind=kind)
    assert tokens.tolist() == expected.tolist()
    assert counts.tolist() == expected_counts.tolist()


def test_prose_is_folded_in_case_and_code_is_not() -> None:
    text = "STRASSE straße ΣΟΦΟΣ σοφος"
    assert _native.lexer_tokens(text, "prose") == ["strasse", "strasse", "σοφοσ", "σοφοσ"]
    assert _native.lexer_tokens(text, "code") == text.split()
