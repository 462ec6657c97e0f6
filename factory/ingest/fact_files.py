"""Files of external facts about keys, hosts or repositories, a row each.

CSV with a header, JSON lines and Parquet, by their endings. Each row has a column that it is joined by, and
every other column is a fact. The driver reads the files; larger ones are better a table.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from io import TextIOWrapper
from itertools import islice
from pathlib import PurePosixPath
from typing import BinaryIO, Literal, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from factory.errors import ConfigurationError
from factory.lake.schemas.ingest import FACT_ROWS
from factory.suggestions import quoted, unknown_name
from spark_udfs.ingest.place import Place
from spark_udfs.ingest.rows import BadRecord
from spark_udfs.ingest.typed_values import exact_key

T = TypeVar("T")
By = Literal["key", "host", "repository"]
MAX_BYTES = 2 << 30  # of all files of facts of a dataset
_NUMBER = "number of the row"
_HEAD_LINES = 1_000  # of a file of JSON lines, whose columns a declaration knows
ENDINGS = (".csv", ".jsonl", ".parquet")
_CSV = pa_csv.ParseOptions(newlines_in_values=True)


@dataclass(frozen=True)
class FactFiles:
    """Files of facts, joined `by` a field of documents; `column` has its values.

    `columns` are the facts to take, all others if there are none named.
    """

    paths: tuple[Place, ...]
    by: By
    column: str
    columns: tuple[str, ...] = ()


def fact_rows(sources: Sequence[FactFiles]) -> pa.Table:
    """Return FACT_ROWS of the files, in order.

    Raises ConfigurationError, which names the file, for one that cannot be read, lacks a column or has two of
    one name, and for files that are too large.
    """
    files = [
        (number, source, name, file)
        for number, source in enumerate(sources)
        for name, file in _files(source).items()
    ]
    n_bytes = sum(file.canonical().state(b"").n_bytes for *_, file in files)
    if n_bytes > MAX_BYTES:
        raise ConfigurationError(
            f"The files of facts have {n_bytes:,} bytes, and at most {MAX_BYTES:,} are read. Make a dataset "
            "of them, and join its table."
        )
    schema = FACT_ROWS.columns
    tables = [_rows(number, source, name, file) for number, source, name, file in files]
    return pa.concat_tables(tables) if tables else schema.empty_table()


def columns_of(file: Place) -> list[str]:
    """Return the columns of a file of facts; for lines of JSON, of its first `_HEAD_LINES` lines.

    Raises ConfigurationError if the file cannot be read.
    """
    match _ending(file):
        case ".parquet":
            return list(_read(file, pq.read_schema).names)
        case ".csv":
            return list(_read(file, lambda stream: pa_csv.open_csv(stream, parse_options=_CSV).schema).names)
    return list(_read(file, partial(_json_lines, file, most=_HEAD_LINES)).column_names)


def _files(source: FactFiles) -> dict[str, Place]:
    """The files of a source by a name of their own: the path below the folder, or that and its number."""
    files: dict[str, Place] = {}
    for number, path in enumerate(source.paths):
        below = _files_by_name(path)
        if not below:
            raise ConfigurationError(
                f"`{path.display()}` holds no file of facts. Name one of {quoted(ENDINGS)}."
            )
        for name, file in below.items():
            files[f"{number}/{name}" if name in files else name] = file
    return files


def files_at(path: Place) -> list[Place]:
    """Return the files of facts at a path, a file or a folder; links to files are followed."""
    return list(_files_by_name(path).values())


def _files_by_name(path: Place) -> dict[str, Place]:
    """The files of facts by name: below the folder, or the name of the file itself."""
    places = {path.name: path}
    if path.kind() == "folder":
        names = sorted(path.walk(lambda _: True), key=lambda name: name.split(b"/"))
        places = {os.fsdecode(name): path.below(name) for name in names if not name.endswith(b"/")}
    return {name: file for name, file in places.items() if _ending(file) in ENDINGS and file.kind() == "file"}


def _ending(file: Place) -> str:
    return PurePosixPath(file.name).suffix.lower()


def _rows(number: int, source: FactFiles, name_of_file: str, file: Place) -> pa.Table:
    """FACT_ROWS of a file; a row without a value to join by is left out."""
    table = _read(file, partial(_table, file, column=source.column))
    twice = [name for name, n in Counter(table.column_names).items() if n > 1]
    if twice:
        raise ConfigurationError(f"The facts `{file.name}` have two columns `{twice[0]}`. Rename one.")
    for name in (source.column, *source.columns):
        if name not in table.column_names:
            raise ConfigurationError(unknown_name(f"column of `{file.name}`:", name, table.column_names))
    with_numbers = table.append_column(_NUMBER, pa.array(range(1, len(table) + 1), pa.int64()))
    rows = with_numbers.filter(pc.is_valid(table[source.column]))
    values = _words(file, rows, source.column, _key_or_none)
    if source.by == "host":
        values = pc.utf8_lower(pc.utf8_rtrim(pc.utf8_trim_whitespace(values), "."))
    names = source.columns or [name for name in table.column_names if name != source.column]
    size, schema = len(rows), FACT_ROWS.columns
    columns = {
        "source": pa.repeat(pa.scalar(number, pa.int32()), size),
        "by": pa.repeat(source.by, size),
        "value": values,
        "facts": _facts(file, rows, names),
        "file": pa.repeat(name_of_file, size),
        "row": rows[_NUMBER],
        "partition": pa.nulls(size, pa.string()),
    }
    return pa.table([columns[name] for name in schema.names], schema=schema)


def _facts(file: Place, rows: pa.Table, names: Sequence[str]) -> pa.Array:
    """The facts of each row by name, in the order of `names`; one that is null is left out."""
    n_rows, n_names = len(rows), len(names)
    if not n_names:
        none = pa.array([], pa.string())
        return pa.MapArray.from_arrays(np.zeros(n_rows + 1, np.int32), none, none)
    by_column = pa.concat_arrays([_words(file, rows, name) for name in names])
    by_row = by_column.take(pa.array(np.arange(n_rows * n_names).reshape(n_names, n_rows).T.ravel()))
    is_known = pc.is_valid(by_row)
    keys = pa.array(list(names), pa.string()).take(pa.array(np.tile(np.arange(n_names), n_rows)))
    counts = is_known.to_numpy(zero_copy_only=False).reshape(n_rows, n_names).sum(axis=1)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    return pa.MapArray.from_arrays(offsets, keys.filter(is_known), by_row.filter(is_known))


def _words(
    file: Place, rows: pa.Table, name: str, spell: Callable[[object], str | None] | None = None
) -> pa.Array:
    """A column as `metadata` spells its values; ConfigurationError for a value that cannot be spelled."""
    column = rows[name].combine_chunks()
    if pa.types.is_string(column.type):
        return column
    try:
        return pa.array(map(spell or _word_or_none, column.to_pylist()), pa.string())
    except (ValueError, OverflowError) as error:  # bytes that are not UTF-8, a time beyond year 9999
        raise ConfigurationError(
            f"Column `{name}` of the facts `{file.name}` holds a value that cannot be written as text: "
            f"{error}. Store it as text, or leave it out of `columns`."
        ) from error


def _read(file: Place, read: Callable[[BinaryIO], T]) -> T:
    try:
        source = file.canonical()
        with source.parent.open(os.fsencode(source.name)) as stream:
            return read(stream)
    except (OSError, ValueError, TypeError, AttributeError, BadRecord) as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise ConfigurationError(
            f"The facts `{file.name}` cannot be read: {reason}. Correct the file."
        ) from error


def _table(file: Place, stream: BinaryIO, column: str) -> pa.Table:
    match _ending(file):
        case ".parquet":
            return pq.read_table(stream)
        case ".csv":
            strings = dict.fromkeys(columns_of(file), pa.string())
            options = pa_csv.ConvertOptions(column_types=strings, strings_can_be_null=True, null_values=[""])
            return pa_csv.read_csv(stream, parse_options=_CSV, convert_options=options)
    return _json_lines(file, stream, column=column)


def _json_lines(
    file: Place, stream: BinaryIO, most: int | None = None, column: str | None = None
) -> pa.Table:
    """The lines as words, `column` as keys of documents."""
    text = TextIOWrapper(stream, encoding="utf-8-sig", newline="\n")
    lines = [
        _json_object(file, number, line) for number, line in enumerate(islice(text, most), 1) if line.strip()
    ]
    columns = list(dict.fromkeys(name for line in lines for name in line))
    spell = {name: _key_or_none if name == column else _word_or_none for name in columns}
    return pa.table({name: [spell[name](line.get(name)) for line in lines] for name in columns})


def _json_object(file: Place, number: int, line: str) -> dict[str, object]:
    with suppress(ValueError, RecursionError):
        row = json.loads(line)
        if isinstance(row, dict):
            return row
    raise ConfigurationError(
        f"Line {number} of the facts `{file.name}` is not a JSON object. Write one object per line: "
        "`jq -c .` does so for objects of several lines, `jq -c '.[]'` for a list."
    )


def _key_or_none(fact: object) -> str | None:
    """Return a fact as the key of a document spells it: a whole number has the same digits in every type."""
    return exact_key(fact) or _word_or_none(fact)


def _word_or_none(fact: object) -> str | None:
    return None if fact is None else _word(fact)


def _word(fact: object) -> str:
    """Return a fact as `metadata` spells its values."""
    if isinstance(fact, bool | int | float | list | dict):
        return json.dumps(fact, ensure_ascii=False, default=_word)
    return fact.decode() if isinstance(fact, bytes) else str(fact)
