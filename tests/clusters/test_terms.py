"""Words that set texts apart."""

from __future__ import annotations

import pyarrow as pa

from spark_udfs.clusters.terms import (
    ALL_TEXTS,
    N_BUCKETS,
    DocumentFrequency,
    terms_of_groups,
    texts_with_buckets,
    top_terms,
)

RIVERS = [f"the river rose{bridge}" for bridge in (" to a bridge", " to a bridge", *[""] * 4)]
BREAD = [f"the bread is done{zebras}" for zebras in (" zebra" * 9, *[""] * 5)]


def frequency(texts: list[str]) -> DocumentFrequency:
    [counts_of_task] = texts_with_buckets(iter([pa.record_batch({"text": texts})]))
    counts = dict(zip(counts_of_task["bucket"].to_pylist(), counts_of_task["n"].to_pylist(), strict=True))
    n_texts = counts.pop(ALL_TEXTS)
    dense = pa.array([counts.get(bucket, 0) for bucket in range(N_BUCKETS)]).to_numpy()
    return DocumentFrequency(n_texts, dense)


def test_a_word_of_many_texts_comes_before_one_that_a_text_repeats() -> None:
    of_all = frequency(RIVERS + BREAD)
    assert of_all.n_texts == 12
    assert top_terms(RIVERS, of_all) == ["river", "rose", "bridge", "to"]
    assert top_terms(BREAD, of_all) == ["zebra", "bread", "done", "is"]


def test_words_are_in_lower_case_and_equal_ones_in_the_order_of_the_alphabet() -> None:
    assert top_terms(["Éclair BANANA apple"], frequency(RIVERS)) == ["apple", "banana", "éclair"]


def test_numbers_and_lines_of_base64_are_no_terms() -> None:
    texts = [f"2024 {'aGVsbG8' * 20} word"]
    assert top_terms(texts, frequency(RIVERS)) == ["word"]


def test_chinese_terms_are_pairs_of_neighboring_characters() -> None:
    texts = ["河流上升", "河流, 上", "桥"]
    assert top_terms(texts, frequency(RIVERS))[0] == "河流"
    assert set(top_terms(texts, frequency(RIVERS))) == {"河流", "流上", "上升"}


def test_a_word_of_every_text_is_no_term_and_no_text_has_none() -> None:
    texts = ["same words", "same words"]
    assert top_terms(texts, frequency(texts)) == []
    assert top_terms([], frequency(RIVERS)) == []


def test_a_group_in_several_batches_has_one_row() -> None:
    texts, topics = RIVERS[:3] + BREAD[3:], [0, 0, 0, 1, 1, 1]
    batches = [
        pa.record_batch({"topic": pa.array(topics[begin:end], pa.int32()), "text": texts[begin:end]})
        for begin, end in ((0, 2), (2, 4), (4, 6))
    ]
    function = terms_of_groups(iter(batches), group="topic", document_frequency=frequency(texts))
    rows = pa.Table.from_batches(function).to_pylist()
    assert [row["topic"] for row in rows] == [0, 1]
    assert rows[0]["terms"] == top_terms(RIVERS[:3], frequency(texts))
    assert rows[1]["terms"] == top_terms(BREAD[3:], frequency(texts))
