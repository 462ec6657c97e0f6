"""The types of columns of a DataFrame as the lake stores them, or the sentence that refuses one.

A type that the lake lacks is refused with its place in the column and a cast that Spark accepts: a part of a
list, struct or map cannot be cast alone, so the cast names the type of the whole column.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence

import pyarrow as pa
from pyspark.sql import types as T

from factory.errors import ConfigurationError
from factory.lake.names import TableName
from factory.lake.schemas.base import list_of

_PLAIN: Mapping[type[T.DataType], pa.DataType] = {
    T.StringType: pa.string(),
    T.VarcharType: pa.string(),
    T.CharType: pa.string(),
    T.BinaryType: pa.binary(),
    T.BooleanType: pa.bool_(),
    T.ByteType: pa.int32(),  # Iceberg has no narrower integer
    T.ShortType: pa.int32(),
    T.IntegerType: pa.int32(),
    T.LongType: pa.int64(),
    T.FloatType: pa.float32(),
    T.DoubleType: pa.float64(),
    T.DateType: pa.date32(),
    T.TimestampType: pa.timestamp("us", tz="UTC"),
    T.TimestampNTZType: pa.timestamp("us"),
}


def is_name(name: str) -> bool:
    """Whether Iceberg writes the name of a column into its files as it is."""
    return name.isidentifier() and not any(unicodedata.category(letter).startswith("M") for letter in name)


def column_type(table: TableName, name: str, kind: T.DataType) -> pa.DataType:
    """Return the type of a column as the lake has it; raises ConfigurationError for one that it lacks."""
    try:
        return _arrow_type(name, kind)
    except _Unstorable as part:
        remedy = f'Cast it: `F.col("{name}").cast("{_storable(kind).simpleString()}")`, or drop it.'
        if isinstance(part.kind, T.NullType):
            remedy = f"All its values are null. {remedy}"
        if isinstance(part.kind, T.UserDefinedType):
            remedy = "Take plain columns from it, or drop it."
        raise ConfigurationError(
            f"Column `{part.path}` of {table} is {part.kind.simpleString()}, which the lake does not store. "
            f"{remedy}"
        ) from None
    except _WrongField as wrong:
        raise ConfigurationError(
            f"Column `{wrong.path}` of {table} has {wrong.fault}. Use letters, digits and underscores, no "
            "digit first, and each name once."
        ) from None


class _Unstorable(Exception):
    """A type that the lake lacks; `path` names the column, or the part of one."""

    def __init__(self, path: str, kind: T.DataType) -> None:
        super().__init__(path)
        self.path, self.kind = path, kind


class _WrongField(Exception):
    """A field of a struct with a name that no file can have."""

    def __init__(self, path: str, fault: str) -> None:
        super().__init__(path)
        self.path, self.fault = path, fault


def _arrow_type(path: str, kind: T.DataType) -> pa.DataType:
    if isinstance(kind, T.ArrayType):
        return list_of(_arrow_type(f"{path}.element", kind.elementType))
    if isinstance(kind, T.MapType):
        key, cells = (kind.keyType, kind.valueType)
        return pa.map_(_arrow_type(f"{path}.key", key), _arrow_type(f"{path}.value", cells))
    if isinstance(kind, T.StructType) and kind.fields:
        _require_fields(path, kind.names)
        return pa.struct(
            [(field.name, _arrow_type(f"{path}.{field.name}", field.dataType)) for field in kind.fields]
        )
    if isinstance(kind, T.DecimalType):
        return pa.decimal128(kind.precision, kind.scale)
    plain = _PLAIN.get(type(kind))
    if plain is None:
        raise _Unstorable(path, kind)
    return plain


def _require_fields(path: str, names: Sequence[str]) -> None:
    for number, name in enumerate(names):
        if not is_name(name):
            raise _WrongField(path, f"a field named `{name}`")
        for other in names[:number]:
            if other.lower() == name.lower():
                raise _WrongField(path, f"the fields `{other}` and `{name}`, which are one name to Spark")


def _storable(kind: T.DataType) -> T.DataType:
    """Return a type with text in place of every part that the lake lacks."""
    if isinstance(kind, T.ArrayType):
        return T.ArrayType(_storable(kind.elementType))
    if isinstance(kind, T.MapType):
        return T.MapType(_storable(kind.keyType), _storable(kind.valueType))
    if isinstance(kind, T.StructType) and kind.fields:
        return T.StructType([T.StructField(field.name, _storable(field.dataType)) for field in kind.fields])
    return kind if isinstance(kind, T.DecimalType) or type(kind) in _PLAIN else T.StringType()
