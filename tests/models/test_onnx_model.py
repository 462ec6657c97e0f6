"""ONNX models as rules: of texts and of hashed features; other files are refused in a sentence."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pyarrow as pa
import pytest
from onnx import TensorProto, helper, numpy_helper
from pyspark.sql import SparkSession

from factory.errors import ConfigurationError
from factory.filters.limits import AtLeast
from factory.filters.rounds import Round
from factory.lake import names
from factory.lake.tables import Lake
from factory.models.hashing import features
from factory.models.onnx_model import onnx_table
from factory.orchestration.chain.models.onnx import onnx_model
from factory.settings import Settings
from spark_udfs.models import onnx_model as udf
from tests.orchestration.chain.test_signal_parts import TEXTS, filters, raw
from tests.orchestration.runs import run

BITS = 6


def save(path: Path, nodes: list, inputs: list, constants: tuple = ()) -> Path:
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(
        nodes, "g", inputs, [output], [numpy_helper.from_array(*pair) for pair in constants]
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


def linear(path: Path, width: int = 1 << BITS) -> Path:
    """Adds up the features of the first half of the buckets."""
    weights = np.repeat([1.0, 0.0], width // 2).astype(np.float32)[:, None]
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    return save(
        path, nodes, [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", width])], ((weights, "w"),)
    )


def dictionary(path: Path, scores: dict[str, float]) -> Path:
    """Gives each known text its score, another .25."""
    node = helper.make_node(
        "LabelEncoder",
        ["x"],
        ["y"],
        domain="ai.onnx.ml",
        keys_strings=list(scores),
        values_floats=list(scores.values()),
        default_float=0.25,
    )
    return save(path, [node], [helper.make_tensor_value_info("x", TensorProto.STRING, ["n"])])


def content(path: Path) -> bytes:
    [row] = onnx_table(path).to_pylist()
    return row["content"]


def test_a_model_takes_hashed_features(tmp_path: Path) -> None:
    texts = [f"the text number {number} has other words" for number in range(300)]
    column = udf.score(
        pa.array(texts), pa.array([*texts, None]), content=content(linear(tmp_path / "m.onnx")), name="s"
    )
    buckets = [features(text, BITS) for text in texts]
    expected = [sum(bucket < 1 << BITS - 1 for bucket in each) / np.sqrt(len(each)) for each in buckets]
    assert column["s"].to_pylist()[:-1] == pytest.approx(expected, rel=1e-5)
    assert column["s"].to_pylist()[-1] is None


def test_a_model_takes_texts(tmp_path: Path) -> None:
    model = content(dictionary(tmp_path / "m.onnx", {"good": 0.9, "odd": float("nan")}))
    column = udf.score(pa.array([]), pa.array(["good", None, "other", "odd"]), content=model, name="s")
    assert column["s"].to_pylist() == [pytest.approx(0.9), None, 0.25, None]


@pytest.mark.parametrize("width, message", [(100, r"float32 \(n, 2\^bits\)"), (1 << 17, "up to 16 bits")])
def test_other_shapes_are_refused(tmp_path: Path, width: int, message: str) -> None:
    with pytest.raises(
        ConfigurationError, match=f"m.onnx is no model that judges texts: it takes .*{message}"
    ):
        onnx_table(linear(tmp_path / "m.onnx", width))


def test_a_file_that_is_no_model_is_refused(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(b"\x80\x04pickle")
    with pytest.raises(ConfigurationError, match="onnxruntime refuses it"):
        onnx_table(tmp_path / "m.onnx")
    with pytest.raises(ConfigurationError, match="cannot be read"):
        onnx_table(tmp_path / "missing.onnx")


@pytest.mark.spark
def test_a_file_is_a_rule(spark: SparkSession, lake_settings: Settings, unique: str, tmp_path: Path) -> None:
    scores = {text: 0.9 for key, text in TEXTS.items() if key.startswith("essay")}
    model = onnx_model(f"{unique}_o", dictionary(tmp_path / "m.onnx", scores), limit=AtLeast(0.5))
    assert run(lake_settings, raw(unique), model.asset, *filters(unique, Round(rules=[model.rule]))).success
    rows = Lake(lake_settings).read(names.filtered(unique)).to_pylist()
    essays = {f"{key}@{unique}" for key in TEXTS if key.startswith("essay")}
    assert {row["doc_id"] for row in rows if row["kept"]} == essays
