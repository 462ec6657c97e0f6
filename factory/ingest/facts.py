"""External facts joined to documents by their key, their host or their repository.

A document of a host has the facts of the longest listed part of its name: of `www.a.example`, or else of
`a.example`. Of several rows of one key the first counts, by file and row.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from factory.lake.schemas.ingest import FACT_ROWS, FACTS, REJECTED

_ADDRESS = r"^[a-zA-Z][a-zA-Z0-9+.-]*://(?:[^/@]*@)?([^/:?#]+)"


def rows_of_table(
    table: DataFrame, name: str, number: int, by: str, column: str, facts: dict[str, str]
) -> DataFrame:
    """Return FACT_ROWS of a table of the lake; `facts` are its columns by the name of the fact."""
    joined_by = _field(column).cast("string")
    pairs = [(F.lit(fact), _field(field).cast("string")) for fact, field in sorted(facts.items())]
    entries = F.filter(F.array(*(F.struct(*pair) for pair in pairs)), lambda entry: entry["col2"].isNotNull())
    rows = table.select(
        F.lit(number).alias("source"),
        F.lit(by).alias("by"),
        (F.lower(joined_by) if by == "host" else joined_by).alias("value"),
        F.map_from_entries(entries).alias("facts"),
        F.lit(name).alias("file"),
        F.lit(None).cast("string").alias("partition"),
    ).where("value IS NOT NULL")
    order = Window.partitionBy("source").orderBy("value", F.map_entries("facts"))
    return rows.withColumn("row", F.row_number().over(order).cast("long")).select(FACT_ROWS.names)


def first_of_each(rows: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Return the first row of each key of a source, and the others."""
    order = Window.partitionBy("source", "value").orderBy("file", "row")
    with_numbers = rows.withColumn("number", F.row_number().over(order))
    return with_numbers.where("number = 1").drop("number"), with_numbers.where("number > 1").drop("number")


def facts_of(documents: DataFrame, rows: DataFrame) -> DataFrame:
    """Return FACTS of the documents that a row is about; `rows` are the first of each key."""
    values = _values(documents)
    matches = values.join(rows.select("source", "by", "value", "facts"), ["by", "value"])
    nearest = matches.groupBy("doc_id", "partition", "source").agg(
        F.min(F.struct("distance", F.map_entries("facts").alias("entries"))).alias("nearest")
    )
    entries = F.array_sort(F.flatten(F.collect_list("nearest.entries")))
    facts = nearest.groupBy("doc_id", "partition").agg(F.map_from_entries(entries).alias("facts"))
    return facts.select(FACTS.names)


def rows_about_nothing(documents: DataFrame, rows: DataFrame) -> DataFrame:
    """Return the rows that are about no document."""
    return rows.join(_values(documents), ["by", "value"], "left_anti")


def rejected_rows(rows: DataFrame, reason: str, detail: str) -> DataFrame:
    """Return REJECTED for rows of facts; `detail` is a format with the field and the value."""
    place = F.concat_ws(":", "file", "row")
    columns = {
        "doc_id": F.md5(F.concat_ws(":", place, "source")),
        "source": F.col("file"),
        "key": place,
        "file": F.col("file"),
        "location": F.format_string("row %d", "row"),
        "reason": F.lit(reason),
        "detail": F.format_string(detail, "by", "value"),
        "n_bytes": F.lit(0).cast("long"),
        "sample": F.lit(None).cast("binary"),
        "n_records": F.lit(None).cast("long"),
        "partition": F.col("partition"),
    }
    return rows.select(*(columns[name].alias(name) for name in REJECTED.names))


def _values(documents: DataFrame) -> DataFrame:
    """The values of each document that rows may be about: (doc_id, partition, by, value, distance)."""
    partition = F.col("partition") if "partition" in documents.columns else F.lit(None).cast("string")
    fields = [("key", F.col("key")), ("repository", F.col("repository"))]
    single = F.array(*(_value(by, column, F.lit(0)) for by, column in fields))
    labels = F.split(_host(), r"\.")
    hosts = F.transform(
        F.sequence(F.lit(1), F.size(labels)),
        lambda first: _value(
            "host", F.array_join(F.slice(labels, first, F.size(labels)), "."), first.cast("int")
        ),
    )
    every = F.when(_host().isNull(), single).otherwise(F.concat(single, hosts))
    rows = documents.select("doc_id", partition.alias("partition"), F.explode(every).alias("stated"))
    return rows.select("doc_id", "partition", "stated.*").where("value IS NOT NULL")


def _value(by: str, column: Column, distance: Column) -> Column:
    return F.struct(F.lit(by).alias("by"), column.alias("value"), distance.alias("distance"))


def _host() -> Column:
    """The host that a page states, or the host of its address, which may be its key."""
    facts = F.col("metadata")
    addresses = [F.regexp_extract(address, _ADDRESS, 1) for address in (facts["url"], F.col("key"))]
    hosts = [F.lower(host) for host in (facts["host"], *addresses)]
    return F.coalesce(*(F.when(host != "", host) for host in hosts))


def _field(name: str) -> Column:
    key = name.removeprefix("metadata.")
    return F.col("metadata")[key] if key != name else F.col(name)
