"""Files of facts: what others know about keys, hosts or repositories, a row each.

CSV with a header, JSON lines and Parquet, by their endings. Each row has a column that it is joined by, and
every other column is a fact. The driver reads the files; what is too large for it is better a table.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq

from factory.errors import ConfigurationError
from factory.lake.schemas.ingest import FACT_ROWS
from factory.suggestions import quoted, unknown_name

T = TypeVar("T")
By = Literal["key", "host", "repository"]
MAX_BYTES = 2 << 30  # of all files of facts of a dataset
_ENDINGS = (".csv", ".jsonl", ".parquet")


@dataclass(frozen=True)
class FactFiles:
    """Files of facts, joined `by` a field of documents, whose value stands in `column`.

    `columns` are the facts to take, all others if there are none named.
    """

    paths: tuple[Path, ...]
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
    n_bytes = sum(file.stat().st_size for *_, file in files)
    if n_bytes > MAX_BYTES:
        raise ConfigurationError(
            f"The files of facts have {n_bytes:,} bytes, and at most {MAX_BYTES:,} are read. Make a dataset "
            "of them, and join its table."
        )
    rows = [row for number, source, name, file in files for row in _rows(number, source, name, file)]
    return pa.Table.from_pylist(rows, schema=FACT_ROWS.columns)


def columns_of(file: Path) -> list[str]:
    """Return the columns of a file of facts; raises ConfigurationError if it cannot be read."""
    match file.suffix.lower():
        case ".parquet":
            return list(_read(file, pq.read_schema).names)
        case ".csv":
            return list(_read(file, lambda path: pc.open_csv(path).schema).names)
    return list(_read(file, _json_lines).column_names)


def _files(source: FactFiles) -> dict[str, Path]:
    """The files of a source by a name of their own: the path below the folder, or that and its number."""
    files: dict[str, Path] = {}
    for number, path in enumerate(source.paths):
        below = files_at(path)
        if not below:
            raise ConfigurationError(f"`{path}` holds no file of facts. Name one of {quoted(_ENDINGS)}.")
        for file in below:
            name = file.relative_to(path if path.is_dir() else path.parent).as_posix()
            files[f"{number}/{name}" if name in files else name] = file
    return files


def files_at(path: Path) -> list[Path]:
    """Return the files of facts at a path, a file or a folder."""
    below = sorted(path.rglob("*")) if path.is_dir() else [path]
    return [file for file in below if file.is_file() and file.suffix.lower() in _ENDINGS]


def _rows(number: int, source: FactFiles, name_of_file: str, file: Path) -> Iterator[dict[str, Any]]:
    table = _read(file, _table)
    twice = [name for name, n in Counter(table.column_names).items() if n > 1]
    if twice:
        raise ConfigurationError(f"The facts `{file.name}` have two columns `{twice[0]}`. Rename one.")
    for name in (source.column, *source.columns):
        if name not in table.column_names:
            raise ConfigurationError(unknown_name(f"column of `{file.name}`:", name, table.column_names))
    facts = source.columns or [name for name in table.column_names if name != source.column]
    for number_of_row, row in enumerate(table.to_pylist(), start=1):
        if row[source.column] is not None:
            word = _word(row[source.column])
            yield {
                "source": number,
                "by": source.by,
                "value": word.strip().rstrip(".").lower() if source.by == "host" else word,
                "facts": [(name, _word(row[name])) for name in facts if row[name] is not None],
                "file": name_of_file,
                "row": number_of_row,
                "partition": None,
            }


def _read(file: Path, read: Callable[[Path], T]) -> T:
    try:
        return read(file)
    except (OSError, ValueError, TypeError, AttributeError) as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise ConfigurationError(
            f"The facts `{file.name}` cannot be read: {reason}. Correct the file."
        ) from error


def _table(file: Path) -> pa.Table:
    match file.suffix.lower():
        case ".parquet":
            return pq.read_table(file)
        case ".csv":
            strings = dict.fromkeys(columns_of(file), pa.string())
            options = pc.ConvertOptions(column_types=strings, strings_can_be_null=True, null_values=[""])
            return pc.read_csv(file, convert_options=options)
    return _json_lines(file)


def _json_lines(file: Path) -> pa.Table:
    lines = [json.loads(line) for line in file.read_text("utf-8-sig").split("\n") if line.strip()]
    columns = list(dict.fromkeys(name for line in lines for name in dict(line)))
    return pa.table({name: [_word_or_none(line.get(name)) for line in lines] for name in columns})


def _word_or_none(fact: object) -> str | None:
    return None if fact is None else _word(fact)


def _word(fact: object) -> str:
    """Return a fact as `metadata` spells its values."""
    if isinstance(fact, bool | int | float | list | dict):
        return json.dumps(fact, ensure_ascii=False, default=str)
    return str(fact)
