"""The tokens of a document, and the text that they decode to."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factory.models.tokenizer import END_OF_TEXT, train
from spark_udfs.models.tokenizer import load, n_tokens, token_bytes
from spark_udfs.packing.tokenize import decode, encode, tokenize_batches

TOKENIZER = train(iter(["def f(x):\n    return x + 1\n", "the cat sat on the mat"] * 20), 300)
END = load(TOKENIZER).token_to_id(END_OF_TEXT)


@given(st.text())
def test_any_text_comes_back(text: str) -> None:
    (tokens,) = encode([text], TOKENIZER, None, END)
    assert tokens[-1] == END
    assert decode(tokens.tobytes(), TOKENIZER, None, END) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        END_OF_TEXT,
        f"a{END_OF_TEXT}",
        f"{END_OF_TEXT}\n{END_OF_TEXT}",
        "\x00\r\n\t ",
        " a",
        "Ġ",
        "👩‍👩‍👧 ̈é",
        "a" * 70_000,
    ],
)
def test_a_text_that_spells_a_special_token_never_yields_it(text: str) -> None:
    (tokens,) = encode([text], TOKENIZER, END, END)
    assert END not in tokens[1:-1]
    assert decode(tokens.tobytes(), TOKENIZER, END, END) == text


def test_the_width_of_a_token_follows_from_the_vocabulary() -> None:
    assert [token_bytes(n) for n in (1, 65_536, 65_537)] == [2, 2, 4]
    assert encode(["a"], TOKENIZER, None, None)[0].dtype == np.dtype("<u2")


def test_a_vocabulary_with_gaps_is_as_large_as_its_largest_token() -> None:
    sparse = json.loads(TOKENIZER)
    sparse["model"]["vocab"]["xyzzy"] = 70_000
    assert n_tokens(json.dumps(sparse)) == 70_001
    assert encode(["a"], json.dumps(sparse), None, None)[0].dtype == np.dtype("<u4")


def test_a_tokenizer_that_truncates_and_pads_loses_no_token() -> None:
    shipped = json.loads(TOKENIZER)
    shipped["truncation"] = {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0}
    shipped["padding"] = {
        "strategy": {"Fixed": 9}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0,
        "pad_type_id": 0, "pad_token": END_OF_TEXT,
    }  # fmt: skip
    text = "return the cat"
    by_shipped, plain = (
        encode([text], tokenizer_text, None, None)[0] for tokenizer_text in (json.dumps(shipped), TOKENIZER)
    )
    assert by_shipped.tolist() == plain.tolist()


def test_the_tokens_of_a_text_do_not_depend_on_its_batch() -> None:
    texts = [f"def f{i}(x): return {i}" for i in range(50)]
    together = encode(texts, TOKENIZER, None, END)
    assert [t.tolist() for t in together] == [encode([x], TOKENIZER, None, END)[0].tolist() for x in texts]


def test_a_null_text_has_no_tokens_and_an_empty_one_special_ones() -> None:
    batch = pa.RecordBatch.from_pydict(
        {
            "doc_id": ["a", "b", "c"],
            "repository": ["r", "r", "r"],
            "revision": pa.array(["1", "1", None], pa.string()),
            "position": [0, 1, 2],
            "text": pa.array([None, "", "café"], pa.string()),
            "partition": pa.array([None, None, "p"], pa.string()),
        }
    )
    (rows,) = tokenize_batches(iter([batch]), TOKENIZER, None, END)
    assert rows.column("n_tokens").to_pylist()[:2] == [0, 1]
    assert rows.column("tokens").to_pylist()[:2] == [b"", END.to_bytes(2, "little")]
    assert decode(rows.column("tokens")[2].as_py(), TOKENIZER, None, END) == "café"
    assert rows.column("n_bytes").to_pylist() == [None, 0, 5]
    assert rows.column("partition").to_pylist() == [None, None, "p"]
    assert rows.column("revision").to_pylist() == ["1", "1", None]
