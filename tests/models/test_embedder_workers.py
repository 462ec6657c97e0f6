"""Embedders in workers: vectors of length one that depend on their text alone; others are refused."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from onnx import TensorProto, helper

from factory.errors import ConfigurationError
from factory.lake.schemas.clusters import VECTORS
from factory.models.hashing import features
from spark_udfs.models import embedders as udf
from spark_udfs.models.onnx_model import open_model
from tests.models.test_onnx_model import save

BITS = 4
WEIGHTS = np.random.default_rng(1).normal(size=(1 << BITS, 3)).astype(np.float32)


def onnx_file(path: Path) -> Path:
    """A model of hashed features; its output has three numbers a row."""
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 1 << BITS])]
    return save(path, [helper.make_node("MatMul", ["x", "w"], ["y"])], inputs, ((WEIGHTS, "w"),))


class Lengths:
    """Embeds a text as its number of words and of letters."""

    dimensions = 2

    def embed(self, texts: list[str]) -> Sequence[Sequence[float]]:
        return [[len(text.split()), len(text)] for text in texts]


def run(embedder: udf.Embedder, texts: list[str | None]) -> list[np.ndarray | None]:
    """The vectors of documents `0`, `1`, ... with these texts, in batches of two."""
    table = pa.table(
        {
            "doc_id": pa.array([str(number) for number in range(len(texts))]),
            "text": pa.array(texts, pa.string()),
            "partition": pa.nulls(len(texts), pa.string()),
        }
    )
    rows = pa.Table.from_batches(udf.embed(iter(table.to_batches(2)), lambda: embedder), VECTORS.columns)
    assert rows["doc_id"] == table["doc_id"]
    return [None if row is None else np.frombuffer(row, "<f4") for row in rows["vector"].to_pylist()]


def test_a_column_of_vectors_is_divided_by_their_lengths() -> None:
    rows = run(udf.ColumnEmbedder(2), ["[3, 4]", None, "[0.0, 0]", "[-1e-30, 0]"])
    assert rows[0] == pytest.approx([0.6, 0.8])
    assert rows[1:3] == [None, None]
    assert rows[3] == pytest.approx([-1, 0])


@pytest.mark.parametrize(
    "text, reason",
    [
        ("[1, 2, 3]", "it would have 3 numbers, and the embedder's have 2"),
        ("[1, NaN]", "a number is not finite"),
        ("[1e300, 0]", "a number is not finite"),
        (f"[{'1' * 400}, 0]", "a number is not finite"),
        ("[[1, 2]]", "Not a list of numbers"),
        ("word", "Expecting value"),
    ],
)
def test_a_refused_vector_names_its_document(text: str, reason: str) -> None:
    with pytest.raises(ConfigurationError, match=f"Document 2 has no vector: {reason}"):
        run(udf.ColumnEmbedder(2), ["[1, 2]", None, text])


def test_an_onnx_model_gives_the_vector_of_each_text_alone(tmp_path: Path) -> None:
    embedder = udf.OnnxEmbedder(open_model(onnx_file(tmp_path / "m.onnx").read_bytes()), 3)
    texts = ["the ship left", "a storm", "flour"]
    rows = run(embedder, [texts[0], None, *texts[1:]])
    assert rows[1] is None
    for text, vector in zip(texts, (rows[0], *rows[2:]), strict=True):
        total = WEIGHTS[sorted(features(text, BITS))].sum(axis=0)
        assert vector == pytest.approx(total / np.linalg.norm(total), abs=1e-5)
        [alone] = run(embedder, [text])
        assert np.array_equal(alone, vector)


def test_a_class_of_ones_own_sees_the_texts_that_are_there() -> None:
    rows = run(udf.PythonEmbedder("own.py:Lengths", Lengths()), [None, "a bc", None, "", "d"])
    assert [vector is None for vector in rows] == [True, False, True, True, False]
    assert rows[1] == pytest.approx(np.array([2, 4]) / np.sqrt(20))


@pytest.mark.parametrize(
    "embed, reason",
    [
        (lambda texts: [[1, 2]], "gives 1 vectors of 2 texts"),
        (lambda texts: texts[0] / 2, "fails with TypeError: unsupported operand"),
        (lambda texts: [[1, 2], [1]], "Document 1 has no vector: it would have 1 numbers"),
        (lambda texts: np.array([[1, np.inf], [1, 2]]), "Document 0 has no vector: a number is not finite"),
    ],
)
def test_a_class_of_ones_own_that_errs_is_refused(embed: object, reason: str) -> None:
    own = Lengths()
    own.embed = embed  # type: ignore[method-assign, assignment]
    with pytest.raises(ConfigurationError, match=reason):
        run(udf.PythonEmbedder("own.py:Lengths", own), ["a", "b"])


def test_a_kind_that_its_table_does_not_hold_is_refused() -> None:
    row = {"kind": "python", "dimensions": 2, "parameters": json.dumps({}), "content": None}
    table = pa.Table.from_pylist([row])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    with pytest.raises(ConfigurationError, match="`python` does not hold its model"):
        udf.load(sink.getvalue().to_pybytes())
