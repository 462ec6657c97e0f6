"""Documents from the rows of a Parquet file, read in batches of bounded size.

Each row is one record and yields exactly one row: a document, or a rejected record with `row N` (from 0). A
file that cannot be opened, or has no text column, is one rejected record. So is the rest of a row group from
its first damaged row; the row groups behind it are read.

A part of a file has the row groups with the middle byte in it, and the first part records the faults of the
file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from factory.lake.files.location import local_path
from factory.lake.files.parquet import fault, open_parquet
from factory.lake.files.registered import TextLocation
from factory.lake.files.storage import stamp_of
from spark_udfs.ingest.bounds import most_bytes
from spark_udfs.ingest.compression import bomb
from spark_udfs.ingest.field_paths import cell_or_none
from spark_udfs.ingest.files import Input, bad_read, decode_utf8, opened
from spark_udfs.ingest.parquet_columns import (
    PathColumn,
    declared_columns,
    every_column,
    is_list,
    is_string,
    is_text,
)
from spark_udfs.ingest.parquet_schema import refuse_deep_columns, refuse_deep_footer
from spark_udfs.ingest.place import FilePart, size_of
from spark_udfs.ingest.records import Fields, FirstRecords, record
from spark_udfs.ingest.rows import (
    BATCH_BYTES,
    BATCH_ROWS,
    SAMPLE_BYTES,
    BadRecord,
    Origin,
    Row,
    picture_bytes,
    rejection,
)

BUFFER_BYTES = 1 << 20  # of a column chunk held at a time
# A batch copies a dictionary's value into each of its rows, however long the value is.
_LARGE_DICTIONARY, _ROWS_OF_DICTIONARIES = 256 << 10, 8
_ROW_BYTES = 16  # bytes that a row counts besides its text: millions of nulls take a few bytes of a file
_MOST_KEY_BYTES = 256  # mean bytes of a column whose values may identify records
_FEW_ROWS, _FEW_LETTERS = 8, 1_000  # of a wide column of text, which tell words from data in letters
_OF_READING = {"vanished", "unreadable", "changed_while_read"}  # one part may find them alone
RowsOf = Callable[[int, dict[str, Any]], Iterator[Row]]
_UNREADABLE = (OSError, pa.ArrowException, ValueError)  # what pyarrow raises for damaged files


def parquet_file(source: Input, fields: Fields, *, registered: bool = False) -> Iterator[Row]:
    """Yield one row per row of the file, and one more for a damaged file or for each damaged row group.

    Documents of a `registered` file have the location of their text.
    """
    n_bytes = 0
    try:
        with opened(source) as file:
            n_bytes = size_of(file)
            text_at = None
            if registered:
                state, location = source.place.state(source.name), source.place.location(source.name)
                stamp = stamp_of(state.version) if local_path(location) is None else state.modified_ns
                text_at = TextLocation(location, fields.text, -1, n_bytes, stamp)

            def rows_of(number: int, values: dict[str, Any]) -> Iterator[Row]:
                yield _row(source.origin, fields, source.key, number, values)

            columns_of = partial(declared_columns, fields=fields)
            for row in rows_of_table(source, file, columns_of, rows_of):
                if text_at is not None and "reason" not in row:
                    row["text_at"] = text_at._replace(row=row["row"])._asdict()
                yield row
    except BadRecord as bad:
        yield rejection(source.origin, source.fault_key, bad, n_bytes)


def rows_of_table(
    source: Input, file: BinaryIO, columns_of: Callable[[pa.Schema], list[PathColumn]], rows_of: RowsOf
) -> Iterator[Row]:
    """Yield the rows of an open file or of a part, as `rows_of` makes them of the number and values of each.

    `columns_of` chooses columns, or raises BadRecord. Raises it as `_rows` does, and for a damaged footer.
    """
    n_bytes = size_of(file)
    try:
        refuse_deep_footer(file)
        try:
            parquet = open_parquet(file, buffer_size=BUFFER_BYTES, pre_buffer=False)
            schema = parquet.schema_arrow
        except _UNREADABLE as error:
            raise _broken(error) from None
        refuse_deep_columns(schema)
        columns = columns_of(schema)
    except BadRecord as bad:
        if bad.reason in _OF_READING or source.part is None or not source.part.begin:
            raise
        return  # the first part finds the same in the footer or the schema, and records it
    yield from _rows(source, rows_of, parquet, columns, n_bytes)


def _rows(
    source: Input, rows_of: RowsOf, parquet: pq.ParquetFile, columns: Sequence[PathColumn], n_bytes: int
) -> Iterator[Row]:
    """Yield the rows of a file or of a part; raises BadRecord `bomb`, and `empty` for a file without row."""
    groups = [parquet.metadata.row_group(group) for group in range(parquet.num_row_groups)]
    own = {group for group, facts in enumerate(groups) if _is_own(source.part, facts, n_bytes)}
    allowance = n_bytes
    if source.part is not None:
        n_own = sum(_place_of(groups[group], n_bytes)[1] for group in own)
        allowance = max(source.part.end - source.part.begin, min(n_own, n_bytes))
    first, budget = 0, most_bytes(allowance)
    for group, facts in enumerate(groups):
        following = first + max(0, facts.num_rows)
        if group in own:
            for number, row in _row_group(source, rows_of, parquet, group, columns, first, allowance):
                if source.part is not None and number >= following:
                    yield _behind_last_row(source, row, first, number)
                    break
                budget -= _ROW_BYTES + (row["n_bytes"] if "reason" not in row else 0) + picture_bytes(row)
                if budget < 0:
                    raise bomb(f"row {number}")
                yield row
                following = max(following, number + 1)
        first = following
    if not first and not (source.part and source.part.begin):
        raise BadRecord("empty", "The file holds no row.", "row 0")


def _is_own(part: FilePart | None, facts: pq.RowGroupMetaData, n_bytes: int) -> bool:
    if part is None:
        return True
    begin, length = _place_of(facts, n_bytes)
    return part.begin <= min(begin + length // 2, n_bytes - 1) < part.end


def _place_of(facts: pq.RowGroupMetaData, n_bytes: int) -> tuple[int, int]:
    """Return the first byte and the length of a row group; zeros if a damaged footer does not tell."""
    try:
        chunks = [facts.column(number) for number in range(facts.num_columns)]
        begins = [chunk.dictionary_page_offset or chunk.data_page_offset for chunk in chunks]
        length = sum(chunk.total_compressed_size for chunk in chunks)
    except _UNREADABLE:
        return 0, 0
    return max(0, min([*begins, n_bytes])), max(0, length)


def _behind_last_row(source: Input, row: Row, first: int, number: int) -> Row:
    """Return the rejected record for bytes behind the rows that the footer tells of.

    The next row group, which another part may have, has a row of this number.
    """
    detail = row.get("detail") or "The row group holds more rows than the footer of the file tells."
    bad = BadRecord("corrupt", detail, f"row {number}")
    return rejection(source.origin, f"{source.key}:{first}-{number}", bad, row["n_bytes"])


def _broken(error: Exception) -> BadRecord:
    if isinstance(error, OSError) and error.errno is not None:
        return bad_read(error)
    return BadRecord("corrupt", f"The Parquet data cannot be read: {' '.join(str(error).split())}")


def _page(source: Input, names: list[str], group: int) -> str | None:
    """Describe the first damaged page of a row group, None if each page can be read alone."""
    try:
        with opened(source) as file:
            return fault(source.key, names, pa.PythonFile(file, mode="r"), group)
    except (BadRecord, OSError):  # `opened` reports a file that vanishes or changes while it is read
        return None


def _row_group(
    source: Input,
    rows_of: RowsOf,
    parquet: pq.ParquetFile,
    group: int,
    columns: Sequence[PathColumn],
    first: int,
    n_bytes: int,
) -> Iterator[tuple[int, Row]]:
    """Yield the rows of a row group by number, and one rejected record for its damaged rest.

    The reader loses the whole damaged batch, so the rows before the damage are read again one by one.
    """
    facts = parquet.metadata.row_group(group)
    names = [".".join(column.names) for column in columns]
    row, broken = first, None
    for one_by_one in (False, True):
        next_row = first
        try:
            chunks = [facts.column(number) for number in range(facts.num_columns)]
            if _bytes_of(chunks, names) > most_bytes(n_bytes):
                raise bomb(f"row {first}")
            n_rows = 1 if one_by_one else _batch_rows(facts, chunks)
            for batch in parquet.iter_batches(n_rows, row_groups=[group], columns=names, use_threads=False):
                next_row += batch.num_rows
                if next_row <= row:  # yielded before
                    continue
                for values in _values(batch.slice(batch.num_rows - (next_row - row)), columns):
                    yield from ((row, made_row) for made_row in rows_of(row, values))
                    row += 1
            return
        except _UNREADABLE as error:
            broken = _broken(error)
    assert broken is not None
    end = max(row, first + facts.num_rows - 1)
    tops = [column.names[0] for column in columns]
    page = _page(source, tops, group) if broken.reason == "corrupt" else None
    detail = f"Rows {row} to {end}: {page or broken.detail}"
    bad = BadRecord(broken.reason, detail, f"row {row}")
    yield row, rejection(source.origin, f"{source.key}:{row}", bad, max(0, facts.total_byte_size))


def _bytes_of(chunks: list[pq.ColumnChunkMetaData], names: list[str]) -> int:
    """Return the decompressed size of the columns `names`, according to the file."""
    sizes = ((chunk.path_in_schema, chunk.total_uncompressed_size) for chunk in chunks)
    return sum(
        size for path, size in sizes if any(path == name or path.startswith(f"{name}.") for name in names)
    )


def _batch_rows(facts: pq.RowGroupMetaData, chunks: list[pq.ColumnChunkMetaData]) -> int:
    if any(
        chunk.has_dictionary_page and chunk.total_uncompressed_size > _LARGE_DICTIONARY for chunk in chunks
    ):
        return _ROWS_OF_DICTIONARIES
    row_bytes = max(1, facts.total_byte_size // max(1, facts.num_rows))
    return min(BATCH_ROWS, max(1, BATCH_BYTES // row_bytes))


def _values(batch: pa.RecordBatch, columns: Sequence[PathColumn]) -> Iterator[dict[str, Any]]:
    """Yield the rows of a batch by path, with text as bytes, since pyarrow does not check for UTF-8."""
    arrays = {}
    for column in columns:
        array = column.values_in(batch)
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        if is_string(array.type):
            array = array.cast(pa.large_binary())
        arrays[column.path] = array
    for index in range(batch.num_rows):
        yield {path: array[index] for path, array in arrays.items()}


def _row(origin: Origin, fields: Fields, path: str, row: int, scalars: dict[str, Any]) -> Row:
    location, key = f"row {row}", f"{path}:{row}"
    text_column = fields.text_column_among(scalars)
    if text_column is None:
        return _composed_row(origin, fields, path, row, scalars)
    text_scalar = scalars[text_column]
    n_bytes = text_scalar.as_buffer().size if text_scalar.is_valid else 0
    if n_bytes > fields.max_bytes:  # known without a copy
        bad = BadRecord("too_long", f"The text is longer than {fields.max_bytes:,} bytes.", location)
        return rejection(origin, key, bad, n_bytes, text_scalar.as_buffer()[:SAMPLE_BYTES].to_pybytes())
    text = text_scalar.as_py() or b""
    try:
        values = {name: _value(name, scalar) for name, scalar in scalars.items()}
        return {**record(origin, fields, key, values), "file": path, "row": row, "location": location}
    except BadRecord as bad:
        return rejection(origin, key, BadRecord(bad.reason, bad.detail, location), len(text), text)


def _composed_row(origin: Origin, fields: Fields, path: str, row: int, scalars: dict[str, Any]) -> Row:
    """Return the row of a text that is made of messages, or of several fields."""
    location, key = f"row {row}", f"{path}:{row}"
    try:
        values = {name: _value(name, scalar) for name, scalar in scalars.items()}
        return {**record(origin, fields, key, values), "file": path, "row": row, "location": location}
    except BadRecord as bad:
        content = b" ".join(_as_bytes(scalars[name]) for name in fields.contents if name in scalars)
        return rejection(origin, key, BadRecord(bad.reason, bad.detail, location), len(content), content)


def _as_bytes(scalar: Any) -> bytes:
    is_text_column = is_text(scalar.type) and scalar.is_valid
    return scalar.as_buffer().to_pybytes() if is_text_column else str(scalar).encode("utf-8", "replace")


def _value(name: str, scalar: Any) -> Any:
    try:
        value = scalar.as_py()
    except (ValueError, OverflowError, ArithmeticError) as error:
        raise BadRecord("bad_value", f"Column `{name}` holds a value that cannot be read: {error}.") from None
    return decode_utf8(value) if isinstance(value, bytes) else value


def first_records(source: Input, n_records: int) -> FirstRecords:
    """Return the columns of a file, nested ones too, and the values of the narrow ones in its first rows.

    Of a file that cannot be read it returns none, and behind damage no values.
    """
    columns: list[PathColumn] = []
    texts: dict[str, int] = {}
    lists: dict[str, frozenset[str]] = {}
    rows: list[dict[str, Any]] = []
    narrow: list[str] = []
    beginnings: dict[str, list[str]] = {}
    with suppress(BadRecord, *_UNREADABLE), opened(source) as file:
        refuse_deep_footer(file)
        parquet = open_parquet(file, buffer_size=BUFFER_BYTES, pre_buffer=False)
        schema = parquet.schema_arrow
        refuse_deep_columns(schema)
        columns = list(every_column(schema))
        sizes = _column_sizes(parquet)
        texts = {column.path: sizes.get(column.path, 0) for column in columns if is_string(column.type)}
        lists = {
            column.path: frozenset(part.name for part in column.type.value_type)
            for column in columns
            if is_list(column.type) and pa.types.is_struct(column.type.value_type)
        }
        narrow = [
            column.path for column in columns if _may_be_key(column.type, sizes.get(column.path), parquet)
        ]
        for batch in parquet.iter_batches(n_records, columns=narrow, use_threads=False) if narrow else ():
            rows += batch.slice(0, n_records - len(rows)).to_pylist()
            if len(rows) == n_records:
                break
        wide = [path for path in texts if path not in narrow]
        if sum(sizes.get(path, 0) for path in wide) <= most_bytes(size_of(file)):
            beginnings = _beginnings(parquet, wide)
    values = {path: [cell_or_none(row, path) for row in rows] for path in narrow if rows}
    return FirstRecords(len(rows), tuple(column.path for column in columns), texts, values, lists, beginnings)


def _beginnings(parquet: pq.ParquetFile, paths: Sequence[str]) -> dict[str, list[str]]:
    """Return the first letters of the first few texts of wide columns; they may be data in letters."""
    if not paths or not parquet.num_row_groups:
        return {}
    batches = parquet.iter_batches(_FEW_ROWS, row_groups=[0], columns=paths, use_threads=False)
    rows = next(batches, pa.RecordBatch.from_pylist([])).to_pylist()
    cells = {path: [cell_or_none(row, path) for row in rows] for path in paths}
    return {path: [cell[:_FEW_LETTERS] for cell in column if cell] for path, column in cells.items()}


def _column_sizes(parquet: pq.ParquetFile) -> dict[str, int]:
    """Return the decompressed bytes of each column in the first row group, none of a file without rows."""
    if not parquet.num_row_groups or not parquet.metadata.num_rows:
        return {}
    group = parquet.metadata.row_group(0)
    chunks = [group.column(number) for number in range(group.num_columns)]
    return {chunk.path_in_schema: chunk.total_uncompressed_size for chunk in chunks}


def _may_be_key(kind: pa.DataType, n_bytes: int | None, parquet: pq.ParquetFile) -> bool:
    if n_bytes is None or not (is_string(kind) or pa.types.is_integer(kind)):
        return False
    return n_bytes <= _MOST_KEY_BYTES * max(1, parquet.metadata.row_group(0).num_rows)
