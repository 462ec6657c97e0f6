"""Embedders as tables: fitted on a sample by hash, and the same vectors for any partitioning."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from factory.errors import ConfigurationError, NotFound
from factory.lake.schemas.clusters import EMBEDDER, VECTORS
from factory.lake.schemas.ingest import RAW
from factory.models import embedders
from factory.models.embedders import embedder_table, parse_embedder, vectors
from factory.models.lsa import bfloat16, fit_projection
from factory.models.sampling import unit_interval
from tests.models.test_embedder_workers import onnx_file
from tests.models.test_onnx_model import dictionary

TEXTS = {
    "a": "the ship left the harbor in a storm",
    "b": "the captain of the ship saw a storm",
    "c": "flour and water make a dough",
    "d": "the oven bakes a dough of flour",
    "e": "?!",
    "f": None,
}


OWN = """
SCALE = 2

def scaled(number):
    return SCALE * number

class Lengths:
    dimensions = 2

    def embed(self, texts):
        return [[scaled(len(text.split())), len(text)] for text in texts]
"""


def raw(
    spark: SparkSession,
    texts: Mapping[str, str | None],
    metadata: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
) -> DataFrame:
    rows = [
        {"doc_id": doc_id, "source": "s", "key": doc_id, "text": text, "content_hash": doc_id}
        | {"n_bytes": len((text or "").encode()), "media_type": "text/plain"}
        | {"metadata": [*metadata.get(doc_id, {}).items()], "partition": None}
        for doc_id, text in texts.items()
    ]
    return spark.createDataFrame(pa.Table.from_pylist(rows, schema=RAW.columns))


def by_id(table: DataFrame) -> dict[str, bytes | None]:
    return {row.doc_id: row.vector and bytes(row.vector) for row in table.collect()}


@pytest.mark.spark
def test_documents_in_any_order_and_partitioning_have_the_same_vectors(spark: SparkSession) -> None:
    documents = raw(spark, TEXTS)
    spec = parse_embedder("lsa", Path())
    embedder = embedder_table(documents, spec, 3)
    [row] = embedder.toArrow().select(EMBEDDER.names).to_pylist()
    assert (row["kind"], row["dimensions"], row["n_documents"]) == ("lsa", 3, 5)
    again = embedder_table(documents.orderBy("doc_id", ascending=False).repartition(3), spec, 3)
    assert again.toArrow().to_pylist() == [row]
    rows = vectors(documents.coalesce(1), embedder)
    assert rows.columns == VECTORS.names
    vectors_by_id = by_id(rows)
    assert vectors_by_id == by_id(vectors(documents.repartition(4), again))
    assert vectors_by_id.keys() == TEXTS.keys()
    assert [doc_id for doc_id, vector in vectors_by_id.items() if vector is None] == ["e", "f"]
    a, b, c = (np.frombuffer(vectors_by_id[doc_id] or b"", "<f4") for doc_id in "abc")
    assert a @ b > a @ c
    assert json.loads(row["parameters"]) == {"bits": 16}


@pytest.mark.spark
def test_the_sample_is_the_least_hashes_within_documents_and_characters(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {f"d{number}": f"document {number} " + "wörd " * number for number in range(200)}
    documents = raw(spark, texts)
    by_hash = [row.doc_id for row in documents.orderBy(unit_interval(), "doc_id").collect()]
    spec = parse_embedder("lsa", Path())
    sizes = np.cumsum([min(len(texts[doc_id]), 300) for doc_id in by_hash])
    for n_documents, n_characters in ((60, 10**9), (10**9, 9_000)):
        monkeypatch.setattr(embedders, "FITTED_DOCUMENTS", n_documents)
        monkeypatch.setattr(embedders, "FITTED_CHARACTERS", n_characters)
        monkeypatch.setattr(embedders, "FITTED_OF_A_DOCUMENT", 300)
        [row] = embedder_table(documents, spec, 8).collect()
        most = min(n_documents, int((sizes <= n_characters).sum()))
        assert 0.7 * most < row.n_documents <= most
        sample = pa.array([texts[doc_id][:300] for doc_id in by_hash[: row.n_documents]])
        assert bytes(row.content) == bfloat16(fit_projection(sample, 8)).tobytes()
    with pytest.raises(NotFound, match="keep no document with text to fit the embedder on"):
        embedder_table(raw(spark, {"f": None}), spec)


@pytest.mark.spark
def test_vectors_come_from_metadata_and_from_a_class_in_a_file(spark: SparkSession, tmp_path: Path) -> None:
    numbers = {"a": {"v": "[3, 4]"}, "b": {"v": "[0, 0]"}, "c": {"other": "1"}}
    documents = raw(spark, TEXTS, numbers)
    column = parse_embedder("column:metadata.v", tmp_path)
    vectors_by_id = by_id(vectors(documents, embedder_table(documents, column)))
    assert np.frombuffer(vectors_by_id["a"] or b"", "<f4") == pytest.approx([0.6, 0.8])
    assert {doc_id for doc_id, vector in vectors_by_id.items() if vector is None} == {*"bcdef"}
    with pytest.raises(ConfigurationError, match="gives 2 numbers, not 3"):
        embedder_table(documents, column, 3)
    with pytest.raises(NotFound, match=r"No document has the field `metadata\.w`"):
        embedder_table(documents, parse_embedder("column:metadata.w", tmp_path))
    with pytest.raises(ConfigurationError, match=r"`metadata\.other` of document c is not a JSON list"):
        embedder_table(documents, parse_embedder("column:metadata.other", tmp_path))

    (tmp_path / "own.py").write_text(OWN)
    own = parse_embedder("own.py:Lengths", tmp_path)
    embedder = embedder_table(documents, own)
    vectors_by_id = by_id(vectors(documents, embedder, own))
    assert [doc_id for doc_id, vector in vectors_by_id.items() if vector is None] == ["f"]
    counts = np.array([2 * 8, len(TEXTS["a"] or "")])
    assert np.frombuffer(vectors_by_id["a"] or b"", "<f4") == pytest.approx(counts / np.linalg.norm(counts))
    with pytest.raises(ConfigurationError, match="its files are not named"):
        vectors(documents, embedder)
    (tmp_path / "own.py").write_text(OWN + "\n# changed\n")
    with pytest.raises(ConfigurationError, match="have changed since its table was made"):
        vectors(documents, embedder, own)


@pytest.mark.spark
def test_an_onnx_model_is_kept_in_the_table(spark: SparkSession, tmp_path: Path) -> None:
    documents = raw(spark, TEXTS)
    spec = parse_embedder(f"onnx:{onnx_file(tmp_path / 'm.onnx').name}", tmp_path)
    embedder = embedder_table(documents, spec, 3).localCheckpoint()
    (tmp_path / "m.onnx").unlink()
    vectors_by_id = by_id(vectors(documents, embedder))
    assert [doc_id for doc_id, vector in vectors_by_id.items() if vector is None] == ["e", "f"]
    assert len(vectors_by_id["a"] or b"") == 12


@pytest.mark.spark
def test_a_model_without_vectors_and_an_incomplete_class_are_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    documents = raw(spark, TEXTS)
    dictionary(tmp_path / "scores.onnx", {"good": 0.9})
    with pytest.raises(ConfigurationError, match=r"scores.onnx has the shape \(1,\) for one text"):
        embedder_table(documents, parse_embedder("onnx:scores.onnx", tmp_path))
    (tmp_path / "own.py").write_text(OWN.replace("dimensions = 2", "dimensions = None"))
    with pytest.raises(ConfigurationError, match=r"`own.py:Lengths` has no `dimensions`"):
        embedder_table(documents, parse_embedder("own.py:Lengths", tmp_path))
    (tmp_path / "own.py").write_text(OWN.replace("dimensions = 2", "def __init__(self, size): ..."))
    with pytest.raises(ConfigurationError, match=r"cannot be made .TypeError: .* missing 1 required"):
        embedder_table(documents, parse_embedder("own.py:Lengths", tmp_path))
    (tmp_path / "sentences").mkdir()
    with pytest.raises(ConfigurationError, match=r"pip install 'corpus-factory\[sentence-transformers\]'"):
        embedder_table(documents, parse_embedder("sentence_transformers:sentences", tmp_path))
