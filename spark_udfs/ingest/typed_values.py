"""Values in the types that exports give them, as the numbers and instants of columns of `RAW`.

A DataFrame turns whole numbers with a gap into floats, a database unloads them as decimals, a CSV as text;
dumps write times as seconds or milliseconds since 1970, or as text in one of a dozen forms. A value with one
meaning is read. Any other is None: `05/04/2011` is a day in May or in April, and the number 7 is no time.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from email.utils import parsedate_to_datetime
from fractions import Fraction
from typing import Any

_INT64 = 1 << 63
_FIRST_INEXACT = 1 << 53  # as a float this is 2^53 + 1 too; beyond it floats skip whole numbers
_WHOLE = re.compile(r"[+-]?[0-9]{1,30}(?:\.0{1,30})?")
_NUMBER = re.compile(r"[+-]?(?:[0-9]{1,400}(?:\.[0-9]{0,400})?|\.[0-9]{1,400})(?:[eE][+-]?[0-9]{1,4})?")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# Numbers of seconds from 1973 to 2286 and the same in finer units overlap nowhere; others are not read.
_UNITS = {10**8: 1, 10**11: 10**3, 10**14: 10**6, 10**17: 10**9}
_WIDTH = 100  # the greatest number of a unit over the least
_DIGITS = re.compile(r"[0-9]+")
_COMPACT = {4: "%Y", 8: "%Y%m%d", 14: "%Y%m%d%H%M%S"}  # a year, a date, a time, by the number of digits
_YEARS = range(1000, 3000)
_ISO_ZONE = re.compile(  # behind a clock, because `2011-05` ends like an offset
    r"(?i)(?<=[:t][0-9]{2})([0-9]*(?:[.,][0-9]+)?)\s*(?:(z|utc|gmt)|([+-][0-9]{2}):?([0-9]{2})?)$"
)
_ISO_DATE = re.compile(r"([0-9]{4})[-/]([0-9]{1,2})(?:[-/]([0-9]{1,2}))?(?=[ Tt]|$)")
_ISO_WEEK = re.compile(r"[0-9]{4}-?W[0-9]{2}-?[1-7](?=[ Tt]|$)|[0-9]{8}[Tt]")
_OF_MAIL = re.compile(  # RFC 2822 and 850; only zones that mean one offset
    r"(?i)(?:[a-z]{3,9},?\s+)?[0-9]{1,2}[ -][a-z]{3}[ -][0-9]{4}\s+[0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?"
    r"\s+(?:[+-][0-9]{4}|gmt|utc|ut|z|[ecmp][sd]t)"
)
_OF_C = re.compile(  # `Wed May 04 12:30:00 2011`, with an offset before the year or without
    r"(?i)[a-z]{3}\s+([a-z]{3})\s+([0-9]{1,2})\s+([0-9]{1,2}:[0-9]{2}:[0-9]{2})(?:\s+([+-][0-9]{4}|utc|gmt))?"
    r"\s+([0-9]{4})"
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def is_blank(cell: Any) -> bool:
    """Whether a value says that there is none: null, text without a letter, NaN."""
    if isinstance(cell, Decimal):
        return cell.is_nan()
    if isinstance(cell, float):
        return math.isnan(cell)
    return cell is None or (isinstance(cell, str) and not cell.strip())


def whole_number(cell: Any) -> int | None:
    """Return a whole number of 64 bits that a number or text is, None for anything else."""
    if isinstance(cell, str):
        number = int(cell.strip().partition(".")[0]) if _WHOLE.fullmatch(cell.strip()) else None
    else:
        number = _exact_integer(cell)
    return number if number is not None and -_INT64 <= number < _INT64 else None


def finite_number(cell: Any) -> float | None:
    """Return the finite number that a number or text is, None for anything else."""
    if isinstance(cell, str):
        text = cell.strip()
        cell = float(text) if _NUMBER.fullmatch(text) else None
    if isinstance(cell, bool) or not isinstance(cell, int | float | Decimal):
        return None
    try:
        number = float(cell)
    except (OverflowError, ValueError):  # beyond floats; a signaling NaN
        return None
    return number if math.isfinite(number) else None


def instant(cell: Any) -> datetime | None:
    """Return the moment in UTC that a date, time, number or text means, None if that is not clear.

    A time without an offset is in UTC. A number counts seconds, milliseconds, microseconds or nanoseconds
    since 1970, if it means a time from 1973 to 2286 in one of these units; fewer digits are a year (`2011`),
    a date (`20110504`) or, with 14, a time.
    """
    if isinstance(cell, str):
        return _of_text(cell.strip())
    if isinstance(cell, bool):
        return None
    if isinstance(cell, int):
        return _of_digits(str(cell)) or _since_1970(Fraction(cell))
    if isinstance(cell, float | Decimal):
        return _of_number(cell)
    if isinstance(cell, date) and not isinstance(cell, datetime):
        cell = datetime.combine(cell, time())
    return _in_utc(cell) if isinstance(cell, datetime) else None


def exact_key(cell: Any) -> str | None:
    """Return a whole number as the digits of a key, the same for every type of number; None for no number.

    Floats from 2^53 on give none: a float represents several whole numbers there, so two keys could be one.
    """
    number = _exact_integer(cell)
    return None if number is None else str(number)


def _exact_integer(cell: Any) -> int | None:
    """Return the whole number that a number is; None for other values and for floats from 2^53 on."""
    if isinstance(cell, int):
        return None if isinstance(cell, bool) else cell
    if isinstance(cell, float):
        return int(cell) if cell.is_integer() and abs(cell) < _FIRST_INEXACT else None
    is_whole = isinstance(cell, Decimal) and cell.is_finite() and _is_short(cell) and cell == int(cell)
    return int(cell) if is_whole else None


def _is_short(number: Decimal) -> bool:
    """Whether a finite decimal has few enough digits to be written out: 1E+999999 would fill memory."""
    return number.adjusted() < 100


def _of_number(number: float | Decimal) -> datetime | None:
    if not math.isfinite(number) or (isinstance(number, Decimal) and not _is_short(number)):
        return None
    exact = Fraction(number)
    if exact.denominator == 1 and (moment := _of_digits(str(exact.numerator))):
        return moment
    return _since_1970(exact)


def _since_1970(number: Fraction) -> datetime | None:
    for least, per_second in _UNITS.items():
        if least <= abs(number) < least * _WIDTH:
            return _EPOCH + timedelta(microseconds=round(number * 10**6 / per_second))
    return None


def _of_digits(digits: str) -> datetime | None:
    """Return the moment of digits that are a year, a date or a time of a calendar."""
    form = _COMPACT.get(len(digits))
    if form is None or not _DIGITS.fullmatch(digits) or int(digits[:4]) not in _YEARS:
        return None
    try:
        return datetime.strptime(digits, form).replace(tzinfo=UTC)
    except ValueError:
        return None


def _of_text(text: str) -> datetime | None:
    if _DIGITS.fullmatch(text):
        return _of_digits(text) or (_since_1970(Fraction(int(text))) if len(text) < 30 else None)
    if _NUMBER.fullmatch(text):
        return _of_number(Decimal(text))
    try:
        if _OF_MAIL.fullmatch(text):
            return _in_utc(parsedate_to_datetime(text))
        if match := _OF_C.fullmatch(text):
            month, day, clock, zone, year = match.groups()
            text = f"{year}-{_MONTHS.index(month.lower()) + 1:02}-{int(day):02} {clock:0>8}{zone or ''}"
        return _in_utc(datetime.fromisoformat(_iso(text)))
    except ValueError:
        return None


def _iso(text: str) -> str:
    """Return a time of ISO 8601 in the form that Python reads: with a day, and an offset without a name.

    Raises ValueError for text that does not begin with a date.
    """
    text = _ISO_ZONE.sub(
        lambda zone: f"{zone[1]}+00:00" if zone[2] else f"{zone[1]}{zone[3]}:{zone[4] or '00'}", text
    )
    date_alone = _ISO_DATE.match(text)
    if date_alone is None:
        if not _ISO_WEEK.match(text):
            raise ValueError(text)
        return text
    year, month, day = date_alone.groups()
    return f"{year}-{int(month):02}-{int(day or 1):02}{text[date_alone.end() :]}"


def _in_utc(moment: datetime) -> datetime | None:
    if moment.tzinfo is None:
        return moment.replace(tzinfo=UTC)
    try:
        return moment.astimezone(UTC)
    except OverflowError:  # in the first or last hours of the calendar
        return None
