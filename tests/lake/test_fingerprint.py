"""The fingerprint of every type of column that a table of the lake may have."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from factory.lake.fingerprint import fingerprint

NOON = datetime(2024, 2, 29, 12, 0, 0, 1)
AMOUNT = pa.decimal128(10, 2)
# The type, a value, another value that must differ, and the fingerprint of the value and a null.
CASES: dict[str, tuple[pa.DataType, Any, Any, str]] = {
    "bool": (pa.bool_(), True, False, "4458087b5d4da779bd2f9c47b2ee2c1d-2"),
    "int32": (pa.int32(), -7, 7, "76d3932b92d9766133d2b2b471f54e7f-2"),
    "int64": (pa.int64(), 1 << 40, 1 << 41, "47e7acbd0fb9f9d3a134050a87fe0759-2"),
    "float32": (pa.float32(), 0.5, 0.25, "be86ed4c792bbeb816e74d28186fd116-2"),
    "float64": (pa.float64(), 0.1, 0.2, "e0721aa97a89677ea607233b3d66544c-2"),
    "string": (pa.string(), "größe", "grösse", "0a6545269d182b81015fb255278b4fab-2"),
    "binary": (pa.binary(), b"\xff", b"\xfe", "c1a842d865eb83af6c1e1a31dd615320-2"),
    "date": (pa.date32(), date(2024, 2, 29), date(2024, 3, 1), "8425898da296725d318eb83003cded02-2"),
    "timestamp": (
        pa.timestamp("us", tz="UTC"),
        NOON.replace(tzinfo=UTC),
        datetime(2024, 3, 1, tzinfo=UTC),
        "f3edddd64e08d47da8485fe2a2731ffa-2",
    ),
    "timestamp_ntz": (pa.timestamp("us"), NOON, datetime(2024, 3, 1), "f3edddd64e08d47da8485fe2a2731ffa-2"),
    "decimal": (
        AMOUNT,
        Decimal("12345678.90"),
        Decimal("-12345678.90"),
        "ff6524300d2fe19e59985c43a4231b41-2",
    ),
    "wide decimal": (
        pa.decimal128(38, 0),
        Decimal(10**38 - 1),
        Decimal(10**38 - 2),
        "5ec9b5c235d865a782ff043c756f0a0c-2",
    ),
    "list": (
        pa.list_(AMOUNT),
        [Decimal("1.50"), None],
        [None, Decimal("1.50")],
        "15c4f85a503e7bc22ed44fffab5bb5c9-2",
    ),
    "struct": (
        pa.struct({"a": AMOUNT, "b": pa.string()}),
        {"a": Decimal(2), "b": "x"},
        {"a": Decimal(2)},
        "905d7b19b6f3c51326e9fb76d08f255d-2",
    ),
    "map": (
        pa.map_(pa.string(), pa.list_(pa.int64())),
        [("a", [1])],
        [("a", [2])],
        "f4325667f2c4546383e3b4e0ccc3afaa-2",
    ),
}


def content_of(kind: pa.DataType, *values: Any) -> str:
    batch = pa.record_batch({"x": pa.array(values, kind)})
    return str(fingerprint([batch], ["x"]))


@pytest.mark.invariant("The fingerprint of a value never changes, for any type of column.")
@pytest.mark.parametrize("name", CASES)
def test_the_fingerprint_of_a_type_never_changes(name: str) -> None:
    kind, cell, other, golden = CASES[name]
    assert content_of(kind, cell, None) == golden
    assert content_of(kind, None, cell) == golden
    assert content_of(kind, other, None) != golden


def test_a_decimal_of_another_scale_or_precision_has_the_fingerprint_of_its_value() -> None:
    half = content_of(pa.decimal128(2, 1), Decimal("0.5"))
    assert (
        half
        == content_of(pa.decimal128(38, 20), Decimal("0.5"))
        != content_of(pa.decimal128(2, 1), Decimal("5.0"))
    )


def test_a_type_without_a_fingerprint_is_named() -> None:
    with pytest.raises(ValueError, match="Column `x` holds Duration"):
        content_of(pa.duration("us"), 1)
