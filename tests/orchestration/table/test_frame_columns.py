"""The columns of own tables: a table takes those of a DataFrame, or refuses them by name and type."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.ml.linalg import VectorUDT
from pyspark.sql import types as T

from factory.errors import ConfigurationError
from factory.lake.names import TableName
from factory.lake.schemas.base import TableSchema, columns, list_of
from factory.orchestration.table.frame_columns import (
    frame_columns,
    require_declared,
    require_no_partition,
    union,
)

TABLE = TableName("own", "books")
DECIMAL = T.DecimalType(10, 2)
REFUSED: list[T.DataType] = [
    T.DayTimeIntervalType(),
    T.YearMonthIntervalType(),
    T.CalendarIntervalType(),
    T.VariantType(),
    T.TimeType(),
    T.StructType([]),
]


def of_frame(**types: T.DataType) -> pa.Schema:
    return frame_columns(TABLE, T.StructType([T.StructField(name, kind) for name, kind in types.items()]))


def test_every_type_of_iceberg_is_taken_and_every_column_may_be_null() -> None:
    parts = T.StructType([T.StructField("a", T.ArrayType(T.ShortType()), nullable=False)])
    schema = of_frame(
        n=T.ByteType(), t=T.TimestampType(), local=T.TimestampNTZType(), m=T.MapType(T.StringType(), parts)
    )
    assert schema.field("n").type == pa.int32()
    assert schema.field("t").type == pa.timestamp("us", tz="UTC")
    assert schema.field("local").type == pa.timestamp("us")
    assert schema.field("m").type == pa.map_(pa.string(), pa.struct([("a", list_of(pa.int32()))]))
    assert all(field.nullable for field in schema)


def test_a_decimal_keeps_its_digits_also_in_other_types() -> None:
    schema = of_frame(a=DECIMAL, b=T.MapType(DECIMAL, T.ArrayType(T.DecimalType(38, 18))))
    assert schema.field("a").type == pa.decimal128(10, 2)
    assert schema.field("b").type == pa.map_(pa.decimal128(10, 2), list_of(pa.decimal128(38, 18)))
    before = [pa.field("a", pa.decimal128(12, 2))]
    assert union(TABLE, before, schema)[0] == before[0]
    for other in (pa.decimal128(9, 2), pa.decimal128(12, 3), pa.float64()):
        with pytest.raises(ConfigurationError, match="Cast it in the function"):
            union(TABLE, [pa.field("a", other)], schema)


def test_the_partition_of_upstream_rows_is_no_column_of_the_table() -> None:
    assert of_frame(a=T.LongType(), partition=T.StringType()).names == ["a"]


def test_a_partition_of_no_upstream_rows_is_refused() -> None:
    require_no_partition(TABLE, ["a", "part"])
    with pytest.raises(ConfigurationError, match="have a column `partition`, which every table keeps"):
        require_no_partition(TABLE, ["a", "partition"])


@pytest.mark.parametrize(
    "fields, sentence",
    [
        ({}, "have no column. Return"),
        ({"a b": T.LongType()}, "have a column named `a b`. Use letters"),
        ({"a.b": T.LongType()}, "have a column named `a.b`"),
        ({"1a": T.LongType()}, "have a column named `1a`"),
        ({"id": T.LongType(), "ID": T.StringType()}, "have the columns `id` and `ID`"),
        ({"Partition": T.StringType()}, "have a column `Partition`, which every table keeps"),
        ({"partition": T.LongType()}, "have a column `partition`"),
        ({"text_at": T.StringType()}, "have a column `text_at`"),
        ({"_file": T.StringType()}, "have a column `_file`, which every table keeps"),
        ({"_Pos": T.LongType()}, "have a column `_Pos`, which every table keeps"),
        (
            {"x": T.NullType()},
            "Column `x` of own.books is void, which the lake does not store. All its values are null. Cast "
            'it: `F.col("x").cast("string")`, or drop it.',
        ),
        *(
            (
                {"x": kind},
                f"Column `x` of own.books is {kind.simpleString()}, which the lake does not store. Ca",
            )
            for kind in REFUSED
        ),
        (
            {"x": T.ArrayType(T.MapType(T.StringType(), T.NullType()))},
            "Column `x.element.value` of own.books is void, which the lake does not store. All its values "
            'are null. Cast it: `F.col("x").cast("array<map<string,string>>")`, or drop it.',
        ),
        (
            {"x": T.StructType([T.StructField("a", T.YearMonthIntervalType()), T.StructField("b", DECIMAL)])},
            "Column `x.a` of own.books is interval year to month, which the lake does not store. Cast it: "
            '`F.col("x").cast("struct<a:string,b:decimal(10,2)>")`, or drop it.',
        ),
        ({"x": T.StructType([T.StructField("a-b", T.LongType())])}, "has a field named `a-b`"),
        (
            {"x": T.ArrayType(T.StructType([T.StructField("a", T.LongType()), T.StructField("A", DECIMAL)]))},
            "Column `x.element` of own.books has the fields `a` and `A`, which are one name to Spark",
        ),
        ({"x": VectorUDT()}, "Column `x` of own.books is vector, which the lake does not store. Take plain"),
    ],
)
def test_what_no_table_can_have_is_refused_by_column(fields: dict[str, T.DataType], sentence: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        of_frame(**fields)
    assert sentence in str(caught.value)
    assert "own.books" in str(caught.value)


def test_a_table_grows_by_new_columns_keeps_old_ones_and_takes_narrower_numbers() -> None:
    before = [pa.field("a", pa.int64()), pa.field("b", pa.string())]
    rows = pa.schema({"c": pa.date32(), "a": pa.int32()})
    assert union(TABLE, before, rows) == [*before, pa.field("c", pa.date32())]
    assert union(TABLE, [], rows) == list(rows)


def test_a_later_column_of_the_same_name_in_other_letters_is_refused_with_both() -> None:
    before = [pa.field("Title", pa.string())]
    with pytest.raises(ConfigurationError, match="has column `Title`, and its function returns `title`, whi"):
        union(TABLE, before, pa.schema({"title": pa.string()}))
    assert union(TABLE, before, pa.schema({"Title": pa.string()})) == before


@pytest.mark.parametrize(
    "before, after", [(pa.int32(), pa.int64()), (pa.string(), pa.int64()), (pa.float64(), pa.int64())]
)
def test_another_type_is_refused_with_both(before: pa.DataType, after: pa.DataType) -> None:
    sentence = f"Table own.books has column `a` as {before}, and its function returns {after}. Cast it"
    with pytest.raises(ConfigurationError, match=sentence):
        union(TABLE, [pa.field("a", before)], pa.schema({"a": after}))


def test_a_declared_schema_is_neither_more_nor_less() -> None:
    schema = TableSchema(columns(pa.field("id", pa.int64()), pa.field("title", pa.large_string())), ())
    require_declared(TABLE, pa.schema({"title": pa.string(), "id": pa.int32()}), schema)
    for rows, sentence in (
        ({"id": pa.int64()}, "lack column `title`, which its schema declares. Select"),
        (
            {"id": pa.int64(), "title": pa.string(), "x": pa.string()},
            "have column `x`, which its schema does not",
        ),
        (
            {"id": pa.string(), "title": pa.string()},
            "have column `id` as string, and its schema declares int64",
        ),
    ):
        with pytest.raises(ConfigurationError, match=sentence):
            require_declared(TABLE, pa.schema(rows), schema)
