"""The signals of documents: every value that filter rules need, measured in Spark's Python workers.

Batches of (doc_id, text, partition) and columns to carry over become batches of the signals' schema. Nothing
is decided here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from factory import _native
from spark_udfs.filters import language_id
from spark_udfs.filters.small_files import small_files


def measure(
    batches: Iterator[pa.RecordBatch],
    schema: pa.Schema,
    of_bulk: Sequence[str] = (),
    measurers: Sequence[Callable[[pa.Array, pa.Array], Mapping[str, pa.Array]]] = (),
) -> Iterator[pa.RecordBatch]:
    """Yield the columns of `schema`, one row per document, in the order of the input.

    A column of the batch is carried over and the others are measured; each of `measurers` gives its columns
    from ids and texts, and the native pass the rest. A document without a text has null values, and a small
    file of a repository has null values of the signals `of_bulk`, where the batch has `repository` and
    `path`. Raises ValueError for a name that the native pass does not know.
    """
    for batch in batches:
        columns = {name: batch.column(name) for name in batch.schema.names if name != "text"}
        texts = batch.column("text")
        for measurer in measurers:
            columns |= measurer(columns["doc_id"], texts)
        if waiting := [name for name in schema.names if name not in columns]:
            columns |= _measured(texts, waiting)
        if of_bulk and {"repository", "path"} <= columns.keys():
            small = small_files(texts, columns["repository"], columns["path"])
            columns |= {name: pc.if_else(small, None, columns[name]) for name in of_bulk}
        yield pa.RecordBatch.from_arrays(
            [columns[field.name].cast(field.type) for field in schema], schema=schema
        )


def _measured(texts: pa.Array, names: list[str]) -> dict[str, pa.Array]:
    of_language = (language_id.LABEL, language_id.SCORE)
    native = [name for name in names if name not in of_language]
    columns = dict(zip(native, _native.text_signals(texts, native).columns, strict=True))
    if len(native) < len(names):
        columns |= zip(of_language, language_id.measure(texts), strict=True)
    return columns
