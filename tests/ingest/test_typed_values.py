"""Numbers, times and keys mean the same in every type in which exports write them."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from email.utils import format_datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_udfs.ingest.records import Fields, record
from spark_udfs.ingest.rows import BadRecord, Origin
from spark_udfs.ingest.typed_values import exact_key, finite_number, instant, is_blank, whole_number

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
INT64 = st.integers(-(2**63), 2**63 - 1)
SAFE = st.integers(1 - 2**53, 2**53 - 1)
SECONDS = st.integers(10**8, 10**10 - 1)  # March 1973 to November 2286
OFFSETS = st.integers(-12 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
MOMENTS = st.datetimes(datetime(1000, 1, 3), datetime(2999, 12, 29), timezones=OFFSETS)

WHOLE_FORMS: dict[str, Callable[[int], Any]] = {
    "int": int,
    "float": float,
    "decimal": Decimal,
    "decimal with a scale": lambda number: Decimal(number).quantize(Decimal("1.00")),
    "text": str,
    "text of a float": lambda number: f"{number}.0",
    "text with blanks": lambda number: f" {number} ",
}


@given(SAFE, st.sampled_from(list(WHOLE_FORMS)))
def test_a_whole_number_is_the_same_in_every_type(number: int, form: str) -> None:
    assert whole_number(WHOLE_FORMS[form](number)) == number
    assert finite_number(WHOLE_FORMS[form](number)) == number


@given(INT64)
def test_whole_numbers_of_64_bits_lose_no_digit(number: int) -> None:
    for value in (number, Decimal(number), str(number), f"{number}.000"):
        assert whole_number(value) == number


@pytest.mark.parametrize(
    "value",
    [
        *(1.5, "1.5", Decimal("1.5"), "3 stars", "1,000", "1e3", "0x10", "١٢", True, [3], {"n": 3}, b"3"),
        *(
            2**63,
            -(2**63) - 1,
            2.0**53,
            2.0**53 * 2,
            math.inf,
            Decimal("Infinity"),
            Decimal("1E+999999"),
            "9" * 31,
        ),
    ],
)
def test_anything_else_is_no_whole_number(value: Any) -> None:
    assert whole_number(value) is None


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_is_the_same_in_every_type(number: float) -> None:
    for value in (number, str(number), repr(number), Decimal(number)):
        assert finite_number(value) == number


@pytest.mark.parametrize(
    "value", ["", "nan", "inf", "1_000", "0,5", "high", math.nan, Decimal("sNaN"), 10**400, False, [1.0]]
)
def test_anything_else_is_no_number(value: Any) -> None:
    assert finite_number(value) is None


@given(SECONDS, st.sampled_from([1, 10**3, 10**6, 10**9]), st.booleans())
def test_a_number_of_seconds_or_a_finer_unit_since_1970_is_a_moment(
    seconds: int, per_second: int, negative: bool
) -> None:
    number = seconds * per_second * (-1 if negative else 1)
    moment = EPOCH + timedelta(seconds=-seconds if negative else seconds)
    forms = [number, str(number), Decimal(number), f"{number}.0"]
    if abs(number) <= 2**53:
        forms.append(float(number))
    assert {instant(form) for form in forms} == {moment}


def test_a_fraction_of_a_second_is_kept() -> None:
    expected = datetime(2011, 5, 4, 12, 30, 0, 250_000, tzinfo=UTC)
    assert instant(1304512200.25) == instant("1304512200.25") == instant(1304512200250) == expected


TEXT_FORMS: dict[str, Callable[[datetime], str]] = {
    "ISO 8601": lambda moment: moment.isoformat(),
    "with a blank": lambda moment: moment.isoformat(" "),
    "with a blank before the offset": lambda moment: moment.strftime("%Y-%m-%d %H:%M:%S.%f %z"),
    "UTC by name": lambda moment: f"{moment.astimezone(UTC).strftime('%Y-%m-%d %H:%M:%S.%f')} UTC",
    "Z": lambda moment: f"{moment.astimezone(UTC).strftime('%Y-%m-%dT%H:%M:%S.%f')}Z",
    "without an offset": lambda moment: moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f"),
    "with slashes": lambda moment: moment.astimezone(UTC).strftime("%Y/%m/%d %H:%M:%S.%f"),
}
WHOLE_SECOND_FORMS: dict[str, Callable[[datetime], str]] = {
    "RFC 2822": format_datetime,
    "HTTP": lambda moment: format_datetime(moment.astimezone(UTC), usegmt=True),
    "C": lambda moment: moment.astimezone(UTC).ctime(),
    "C with an offset": lambda moment: f"{moment.ctime()[:-4]}{moment.strftime('%z')} {moment.year}",
    "digits": lambda moment: moment.astimezone(UTC).strftime("%Y%m%d%H%M%S"),
}


@pytest.mark.invariant(
    "A value means the same in every type of an export; a value that does not fit its column is counted."
)
@given(MOMENTS, st.sampled_from(list(TEXT_FORMS)))
def test_a_moment_is_the_same_in_every_form_of_text(moment: datetime, form: str) -> None:
    assert instant(TEXT_FORMS[form](moment)) == moment


@given(MOMENTS, st.sampled_from(list(WHOLE_SECOND_FORMS)))
def test_a_moment_of_whole_seconds_is_the_same_in_every_form(moment: datetime, form: str) -> None:
    moment = moment.replace(microsecond=0)
    assert instant(WHOLE_SECOND_FORMS[form](moment)) == moment


@given(st.dates(date(1000, 1, 1), date(2999, 12, 31)))
def test_a_date_is_its_first_moment_in_utc(day: date) -> None:
    midnight = datetime(day.year, day.month, day.day, tzinfo=UTC)
    digits = f"{day.year}{day.month:02}{day.day:02}"
    slashes = f"{day.year}/{day.month}/{day.day}"
    for value in (day, day.isoformat(), slashes, digits, int(digits), float(digits), midnight):
        assert instant(value) == midnight
    first_of_month = midnight.replace(day=1)
    assert instant(day.isoformat()[:7]) == first_of_month
    assert instant(str(day.year)) == instant(day.year) == first_of_month.replace(month=1)


@pytest.mark.parametrize(
    "value",
    [
        *(
            "05/04/2011",
            "04.05.2011",
            "2011-05-04 12:30:00 CEST",
            "2011-13-01",
            "201105",
            "12:30",
            "May 2011",
        ),
        *("yesterday", "2011-05-04-05:00", "", "0000", "9" * 40, "-", "0", "4 May 11 12:30 GMT", "20111304"),
        *(0, -1, 7, 201105, 10**10, 10**13, 10**19, 1e300, math.nan, math.inf, Decimal("1E+99999"), True),
        *([2011], {"$date": 1}, b"2011-05-04"),
    ],
)
def test_a_value_with_two_meanings_or_none_is_no_moment(value: Any) -> None:
    assert instant(value) is None


@pytest.mark.invariant(
    "A value means the same in every type of an export; a value that does not fit its column is counted."
)
@given(SAFE)
def test_a_whole_number_is_one_key_in_every_type(number: int) -> None:
    assert {exact_key(value) for value in (number, float(number), Decimal(number))} == {str(number)}


@pytest.mark.parametrize(
    "value", [1.5, math.nan, math.inf, 2.0**60, -(2.0**53), Decimal("1.5"), True, "7", None, b"7"]
)
def test_a_value_without_exact_digits_is_no_number_of_a_key(value: Any) -> None:
    assert exact_key(value) is None


@pytest.mark.parametrize(
    "value, blank",
    [
        (None, True),
        (math.nan, True),
        (Decimal("NaN"), True),
        (Decimal("sNaN"), True),
        (" ", True),
        ("0", False),
        (0, False),
        ("-", False),
    ],
)
def test_a_gap_is_blank(value: Any, blank: bool) -> None:
    assert is_blank(value) is blank


def test_a_float_that_has_lost_digits_is_no_key() -> None:
    fields = Fields(key="id")
    assert record(Origin("s"), fields, "f:1", {"text": "a", "id": 12.0})["key"] == "12"
    with pytest.raises(BadRecord, match=r"a float of 2\^53 or more.*Export it as whole numbers or text"):
        record(Origin("s"), fields, "f:1", {"text": "a", "id": float(2**53 + 1)})


def test_gaps_of_a_data_frame_are_no_values_and_no_misfits() -> None:
    fields = Fields(columns={"stars": "n", "created_at": "when", "quality": "q", "repository": "repo"})
    values = {"text": "a", "n": math.nan, "when": " ", "q": math.nan, "repo": math.nan}
    row = record(Origin("s"), fields, "f:1", values)
    assert row["metadata"] is None
    assert [row.get(column) for column in fields.columns] == [None] * 4
