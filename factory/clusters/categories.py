"""The categories of documents: clusters, lengths, columns, metadata, facts, classes, and their combinations.

A length is the largest power of two up to the bytes of the text: `4096` means 4,096 to 8,191 bytes. The
tokenizer is trained on the documents that balance keeps, so lengths in tokens do not exist yet. A document
without a value has the category `none`. The parts of a combination are joined by ` x `, as in `17 x 4096`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from factory.clusters.balance_options import FACTS, LENGTH, METADATA, table_of

NONE = "none"
JOINT = " x "


def categories(documents: DataFrame, over: Sequence[str], tables: Mapping[str, DataFrame]) -> DataFrame:
    """Return CATEGORIES of `documents` (RAW); `category` combines the categories of `over`.

    `tables` are by role (`balance_options.table_of`): `clusters` (CLUSTERS), `facts` (FACTS), and for each
    classifier a table of `doc_id` and its class in a column of the classifier's name.
    """
    values, columns = values_of(documents, over, tables)
    return values.select("doc_id", combination(columns).alias("category"), "partition")


def values_of(
    documents: DataFrame, over: Sequence[str], tables: Mapping[str, DataFrame]
) -> tuple[DataFrame, list[Column]]:
    """Return a row per document with `doc_id` and `partition`, and the column of each field of `over`."""
    names = {field: f"category_{number}" for number, field in enumerate(over)}
    own = [_of_document(field).alias(names[field]) for field in over if table_of(field) is None]
    rows = documents.select("doc_id", "partition", *own)
    for role in sorted({role for role in map(table_of, over) if role}):
        columns = [_of_table(field).alias(names[field]) for field in over if table_of(field) == role]
        rows = rows.join(tables[role].select("doc_id", *columns), "doc_id", "left")
    return rows, [F.coalesce(name, F.lit(NONE)) for name in names.values()]


def combination(columns: Sequence[Column]) -> Column:
    """Return the categories of several fields as one."""
    if len(columns) == 1:
        return columns[0]
    return F.concat_ws(JOINT, *(F.replace(column, F.lit(JOINT), F.lit(" × ")) for column in columns))


def _of_document(field: str) -> Column:
    if field == LENGTH:
        power = F.expr("shiftleft(1L, length(bin(n_bytes)) - 1)")  # exact, unlike a logarithm
        return F.when(F.col("n_bytes") > 0, power).otherwise(F.lit(0)).cast("string")
    if field.startswith(METADATA):
        return F.col("metadata")[field.removeprefix(METADATA)]
    return F.col(field).cast("string")


def _of_table(field: str) -> Column:
    if field.startswith(FACTS):
        return F.col("facts")[field.removeprefix(FACTS)]
    return F.col(field).cast("string")
