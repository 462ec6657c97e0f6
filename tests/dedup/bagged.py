"""Bags of texts for tests: packed ones, their signatures, and a table of them as stages are given it."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from factory import _native
from factory.dedup.bags import LARGE, MAX_DISTINCT, bags

_FILES = tempfile.TemporaryDirectory(prefix="dedup-bags-")


def packed(
    texts: Sequence[str | None], kind: str = "code", max_distinct: int = MAX_DISTINCT
) -> pa.BinaryArray:
    """The packed bag of each text."""
    return _native.BagMaker(kind, max_distinct, 64).make(pa.array(texts, pa.string()))["bag"]


def idf_table(document_frequencies: Mapping[int, int], n_documents: int) -> pa.UInt8Array:
    """A table of these tokens."""
    builder = _native.IdfBuilder()
    counted = (document_frequencies.keys(), document_frequencies.values())
    builder.add(*(pa.array(column, pa.int64()) for column in counted))
    return builder.finish(n_documents)


def sign(
    texts: Sequence[str | None],
    idf: pa.UInt8Array,
    kind: str,
    scheme: str,
    values: int,
    value_bits: int,
    seed: int,
) -> pa.RecordBatch:
    """(signature, n_distinct) of each text."""
    return _native.sign_packed(packed(texts, kind), idf, scheme, values, value_bits, seed)


def located_bags(documents: DataFrame, lexer: str = "code") -> DataFrame:
    """The bags of `documents`, located in a new file, which lives as long as this process."""
    made = bags(documents, lexer).toArrow()
    with tempfile.NamedTemporaryFile(suffix=".parquet", dir=_FILES.name, delete=False) as file:
        pq.write_table(made, file, row_group_size=50)
    places = made.drop_columns(list(LARGE)).append_column("file", pa.array([f"file:{file.name}"] * len(made)))
    return documents.sparkSession.createDataFrame(
        places.append_column("row", pa.array(range(len(made)), pa.int64()))
    )
