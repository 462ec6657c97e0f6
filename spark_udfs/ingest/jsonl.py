"""Documents from JSON lines, plain or compressed by gzip or Zstandard, in bounded memory.

Each line is one record and yields exactly one row: a document, or a rejected record with `line N` (from 1).
Adjacent lines of white space are one record together, rejected as `empty` with their number, and so is a file
without a line. A stream that ends early or cannot be decompressed yields one more rejected record, for the
file, at the line of the damage.

A part may be read alone of a plain file and of one of Zstandard (`spark_udfs.ingest.part_numbers`).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, BinaryIO

from spark_udfs.ingest.bounds import MAX_JSON_VALUES, MAX_NESTING, MAX_TEXT_BYTES
from spark_udfs.ingest.compression import EndOfPreview, content, is_compressed
from spark_udfs.ingest.files import Input, decode_utf8, opened
from spark_udfs.ingest.frames import FramesPart
from spark_udfs.ingest.lines import Line, PlainPart, lines, lines_of_part
from spark_udfs.ingest.part_numbers import number_of_lines
from spark_udfs.ingest.place import size_of
from spark_udfs.ingest.records import Fields, FirstRecords, as_text, record
from spark_udfs.ingest.rows import BadRecord, Origin, Row, rejection


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        name = next(name for name, n in Counter(name for name, _ in pairs).items() if n > 1)
        raise BadRecord("repeated_field", f"Field `{as_text(name)}` occurs more than once in one object.")
    return fields


def _no_constant(name: str) -> None:
    raise BadRecord("not_json", f"The line holds `{name}`, which is not a JSON value.")


# Python's default decoder accepts NaN and takes the last of repeated fields; neither is JSON as specified.
_DECODER = json.JSONDecoder(object_pairs_hook=_without_repetition, parse_constant=_no_constant)


# An unclosed string reaches to the end: otherwise the search would try each quote behind it as a start.
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
_MARKS = (b",", b"[", b"{")  # one precedes each value but the first
_TOO_DEEP = f"Its lists and objects are nested deeper than {MAX_NESTING}."


def _refuse_complex(encoded: bytes) -> None:
    """Raise BadRecord `too_complex` for too many values; marks inside strings do not count."""
    if sum(map(encoded.count, _MARKS)) > MAX_JSON_VALUES:
        bare = _STRING.sub(b"", encoded)
        if sum(map(bare.count, _MARKS)) > MAX_JSON_VALUES:
            raise BadRecord("too_complex", f"The line holds more than {MAX_JSON_VALUES:,} values.")


def _nesting(value: Any) -> int:
    """Return how deep lists and objects nest, at most one more than `MAX_NESTING`."""
    depth, level = 0, [value] if isinstance(value, dict | list) else []
    while level and depth <= MAX_NESTING:
        below: list[Any] = []
        for container in level:
            inner = container.values() if type(container) is dict else container
            below += [child for child in inner if type(child) is dict or type(child) is list]
        depth, level = depth + 1, below
    return depth


def parsed(encoded: bytes) -> dict[str, Any]:
    """Return the object that a line holds.

    Raises BadRecord `empty`, `not_utf8`, `not_json`, `too_complex`, `repeated_field`, `not_an_object`.
    """
    text = decode_utf8(encoded)
    if not text.strip():
        raise BadRecord("empty", "The line is empty.")
    if len(encoded) > MAX_JSON_VALUES:
        _refuse_complex(encoded)
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise BadRecord("not_json", f"Character {error.pos} of the line: {error.msg}.") from None
    except RecursionError:
        raise BadRecord("too_complex", _TOO_DEEP) from None
    except ValueError as error:  # an integer of thousands of digits
        raise BadRecord("not_json", f"The line holds more than can be read: {error}.") from None
    if _nesting(value) > MAX_NESTING:
        raise BadRecord("too_complex", _TOO_DEEP)
    if not isinstance(value, dict):
        raise BadRecord("not_an_object", f"The line holds {type(value).__name__}, not an object.")
    return value


def line_row(origin: Origin, fields: Fields, path: str, line: Line, key: str) -> Row:
    """Return the row of one line of the file `path`, or of adjacent blank lines.

    `key` is the default for a record without a key of its own.
    """
    location = f"line {line.number}"
    try:
        if line.n_bytes > fields.max_bytes * line.n_lines:
            raise BadRecord(
                "too_long", f"The line has {line.n_bytes:,} bytes, the limit is {fields.max_bytes:,}."
            )
        if line.n_lines > 1:
            last = line.number + line.n_lines - 1
            raise BadRecord("empty", f"The lines {line.number:,} to {last:,} are empty.")
        row = record(origin, fields, key, parsed(line.data))
        return {**row, "file": path, "row": line.number, "location": location}
    except BadRecord as bad:
        located = BadRecord(bad.reason, bad.detail, location)
        return rejection(origin, key, located, line.n_bytes, line.data, n_records=line.n_lines)


def jsonl_file(source: Input, fields: Fields) -> Iterator[Row]:
    """Yield one row per line of the file or per run of blank lines, and one more for a damaged stream.

    Of a part the last row has the number of its lines, and behind the first part keys by line are empty.
    """
    number = n_bytes = 0
    is_later = source.part is not None and source.part.begin > 0
    try:
        with opened(source) as file:
            n_bytes = size_of(file)
            for line in _lines(source, file, fields.max_bytes):
                key = "" if is_later else f"{source.key}:{line.number}"
                number = line.number + line.n_lines - 1
                yield line_row(source.origin, fields, source.key, line, key)
        if not number and source.part is None:
            raise BadRecord("empty", "The file holds no line.")
    except BadRecord as bad:
        location = f"line {number + 1}"
        yield rejection(source.origin, source.fault_key, BadRecord(bad.reason, bad.detail, location), n_bytes)
    if source.part is not None:
        yield number_of_lines(source, number)


def _lines(source: Input, file: BinaryIO, max_bytes: int) -> Iterator[Line]:
    if source.part is None:
        return lines(content(file, source.shown, source.first_bytes), max_bytes)
    part = (FramesPart if is_compressed(source.shown) else PlainPart)(file, source.part)
    return lines_of_part(part, max_bytes, is_first=not source.part.begin)


def first_records(source: Input, n_records: int) -> FirstRecords:
    """Return the fields of the first records of a file, without broken lines and records behind damage."""
    records: list[dict[str, Any]] = []
    with suppress(BadRecord, EndOfPreview), opened(source) as file:
        for line in lines(content(file, source.shown, source.first_bytes), MAX_TEXT_BYTES):
            with suppress(BadRecord):
                records.append(parsed(line.data))
            if len(records) == n_records:
                break
    return FirstRecords.from_records(records)
