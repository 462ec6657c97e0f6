"""Embedders of documents, and their vectors: EMBEDDER and VECTORS.

spec = parse_embedder("lsa", folder)
embedder = embedder_table(documents, spec, dimensions=128)   # fitted once, and lasting
vectors(documents, embedder, spec)                           # of these and of later documents
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.cloudpickle import register_pickle_by_value
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from factory.errors import ConfigurationError, NotFound
from factory.lake.schemas.clusters import EMBEDDER, VECTORS
from factory.models.arrow_stream import arrow_stream_of
from factory.models.embedder_spec import EmbedderSpec, class_of_file, parse_embedder
from factory.models.lsa import BITS, bfloat16, fit_projection, require_scikit_learn
from factory.models.onnx_model import onnx_table
from factory.models.sampling import unit_interval
from spark_udfs.models import embedders as udf
from spark_udfs.models.onnx_model import open_model

__all__ = ["EmbedderSpec", "parse_embedder", "embedder_table", "vectors"]

DIMENSIONS = 128  # of `lsa` unless given
FITTED_DOCUMENTS = 20_000
FITTED_CHARACTERS = 64_000_000
FITTED_OF_A_DOCUMENT = 1 << 14  # characters: more documents teach more than more of each


def embedder_table(documents: DataFrame, spec: EmbedderSpec, dimensions: int | None = None) -> DataFrame:
    """The row of EMBEDDER; only `lsa` is fitted, on a sample of `documents` (RAW) by hash, in two jobs.

    `lsa` has at most `dimensions`; every other kind has dimensions, and refuses another number. Raises
    NotFound for documents without a word or without a vector, ConfigurationError for a model that does not
    give vectors and for a missing package.
    """
    match spec.kind:
        case "lsa":
            columns = _lsa(documents, dimensions or DIMENSIONS)
        case "onnx":
            columns = _onnx(spec)
        case "column":
            columns = _column(documents, spec)
        case _:
            columns = _columns(_file_dimensions(spec), {"source": spec.source})
    if spec.kind != "lsa" and dimensions not in (None, columns["dimensions"]):
        raise ConfigurationError(
            f"The embedder `{spec.reference}` gives {columns['dimensions']} numbers, not {dimensions}. Leave "
            "`dimensions` out."
        )
    row = {"kind": spec.kind, **columns, "partition": None}
    return documents.sparkSession.createDataFrame(pa.Table.from_pylist([row], schema=EMBEDDER.columns))


def vectors(documents: DataFrame, embedder: DataFrame, spec: EmbedderSpec | None = None) -> DataFrame:
    """VECTORS of `documents` (RAW) by a table EMBEDDER, which is collected.

    The table does not hold the files of the kinds `sentence_transformers` and `python`: `spec` names them.
    Raises ConfigurationError if they have changed since the table was made; its rows raise it for a vector
    that is not finite or of another length.
    """
    table = embedder.select(EMBEDDER.names).toArrow()
    [row] = table.drop_columns("content").to_pylist()
    parameters = json.loads(row["parameters"])
    open_embedder: Callable[[], udf.Embedder] = partial(udf.load, arrow_stream_of(table))
    texts = F.col("text")
    if row["kind"] == "column":
        texts = F.col("metadata")[parameters["key"]]
    elif "source" in parameters:
        open_embedder = _unchanged(spec, row["kind"], parameters["source"])
    inputs = documents.select("doc_id", texts, "partition")
    schema = from_arrow_schema(VECTORS.columns)
    return inputs.mapInArrow(partial(udf.embed, open_embedder=open_embedder), schema)


def _columns(
    dimensions: int, parameters: dict[str, Any], content: bytes | None = None, n_documents: int = 0
) -> dict[str, Any]:
    return {
        "dimensions": dimensions,
        "parameters": json.dumps(parameters, sort_keys=True),
        "content": content,
        "n_documents": n_documents,
    }


def _lsa(documents: DataFrame, dimensions: int) -> dict[str, Any]:
    require_scikit_learn()
    texts = _fitting_sample(documents)
    projection = fit_projection(texts, dimensions)
    content = bfloat16(projection).tobytes()
    return _columns(projection.shape[1], {"bits": BITS}, content, len(texts))


def _fitting_sample(documents: DataFrame) -> pa.Array:
    """Return the beginnings of the texts with the least hashes, in FITTED_DOCUMENTS and FITTED_CHARACTERS."""
    texts = documents.where("text IS NOT NULL")
    most_characters: Column = F.least("n_bytes", F.lit(FITTED_OF_A_DOCUMENT))  # counted without the text
    [totals] = texts.agg(F.count("*").alias("n_documents"), F.sum(most_characters).alias("most")).collect()
    if not totals.n_documents:
        raise NotFound(
            "The rounds before `clusters` keep no document with text to fit the embedder on. Loosen them."
        )
    share = min(FITTED_DOCUMENTS / totals.n_documents, FITTED_CHARACTERS / max(totals.most, 1))
    unit = unit_interval()
    beginning = F.substring("text", 1, FITTED_OF_A_DOCUMENT)
    rows = (
        texts.where(unit < share)
        .select(unit.alias("unit"), "doc_id", F.char_length(beginning).alias("size"), beginning.alias("text"))
        .toArrow()
        .sort_by([("unit", "ascending"), ("doc_id", "ascending")])
    )
    sizes = np.cumsum(rows["size"].to_numpy())
    n_fitted = min(FITTED_DOCUMENTS, int(np.searchsorted(sizes, FITTED_CHARACTERS, side="right")))
    return rows["text"].combine_chunks()[:n_fitted]


def _onnx(spec: EmbedderSpec) -> dict[str, Any]:
    assert spec.path is not None
    [row] = onnx_table(spec.path).to_pylist()
    output = open_model(row["content"]).outputs(pa.array([udf.PROBE]))
    if output.ndim != 2:
        raise ConfigurationError(
            f"The first output of {spec.path.name} has the shape {output.shape} for one text. An embedder's "
            "has the shape (1, d)."
        )
    return _columns(output.shape[1], {}, row["content"])


def _column(documents: DataFrame, spec: EmbedderSpec) -> dict[str, Any]:
    """The document with the least id gives the dimensions, which every other vector must have."""
    lists = documents.select("doc_id", F.col("metadata")[spec.name].alias("list")).where("list IS NOT NULL")
    first = lists.orderBy("doc_id").limit(1).collect()
    if not first:
        raise NotFound(f"No document has the field `metadata.{spec.name}`. Name the field of the vectors.")
    try:
        n_dimensions = len(udf.numbers(first[0].list))
    except ValueError as error:
        raise ConfigurationError(
            f"`metadata.{spec.name}` of document {first[0].doc_id} is not a JSON list of numbers. Name the "
            "field of the vectors."
        ) from error
    return _columns(n_dimensions, {"key": spec.name})


def _unchanged(spec: EmbedderSpec | None, kind: str, source: str) -> Callable[[], udf.Embedder]:
    """Return a function that opens the files of `spec`, if they are the ones that the table was made of."""
    if spec is None or spec.kind != kind:
        raise ConfigurationError(
            f"The embedder is of the kind `{kind}`, and its files are not named. Name them in the datasets "
            "file, or make the embedder again."
        )
    if spec.source != source:
        raise ConfigurationError(
            f"The files of the embedder `{spec.reference}` have changed since its table was made. "
            "Restore them, or make the table again, and all clusters with it."
        )
    if kind == "sentence_transformers":
        return partial(udf.open_sentence_transformer, str(spec.path), source)
    own = _own_embedder(spec)
    register_pickle_by_value(sys.modules[type(own).__module__])  # no worker can import a user's file
    return partial(udf.PythonEmbedder, spec.reference, own)


def _file_dimensions(spec: EmbedderSpec) -> int:
    if spec.kind == "sentence_transformers":
        return udf.open_sentence_transformer(str(spec.path), spec.source).dimensions
    return udf.PythonEmbedder(spec.reference, _own_embedder(spec)).dimensions


def _own_embedder(spec: EmbedderSpec) -> Any:
    """Return an object of the class of a user's file; raises ConfigurationError if it is incomplete."""
    own_class = class_of_file(spec)
    try:
        own = own_class()
    except Exception as error:
        raise ConfigurationError(
            f"The embedder `{spec.reference}` cannot be made ({type(error).__name__}: {error}). Give it a "
            "constructor without arguments."
        ) from error
    if not isinstance(getattr(own, "dimensions", None), int) or own.dimensions < 1:
        raise ConfigurationError(
            f"The embedder `{spec.reference}` has no `dimensions`. Give it the numbers of a vector."
        )
    return own
