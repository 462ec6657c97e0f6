"""Fields of nested records by their path: `doc.text` is the field `text` of the object `doc`.

A field of exactly that name comes first, on every level, so a name with a dot in it stays a name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

_MOST_CHILDREN = 100  # an object with more names is a map, whose names are data
_MOST_IN_OBJECTS = 1_000  # fields of objects that are listed of a file


class _Absent:
    """The type of `ABSENT`."""


ABSENT: Final = _Absent()  # stands for a field that a record lacks, in contrast to null


def cell_at(record: Mapping[str, Any], path: str) -> Any:
    """Return the value at a path, `ABSENT` if the record has no such field."""
    if path in record:
        return record[path]
    for name, rest in splits(path):
        parent = record.get(name)
        if isinstance(parent, Mapping) and (cell := cell_at(parent, rest)) is not ABSENT:
            return cell
    return ABSENT


def cell_or_none(record: Mapping[str, Any], path: str) -> Any:
    """Return the value at a path, None if it is null or the record has no such field."""
    cell = cell_at(record, path)
    return None if cell is ABSENT else cell


def splits(path: str) -> Iterator[tuple[str, str]]:
    """Yield the ways to read a path as a name and a path below it, the longest name first."""
    end = path.rfind(".")
    while end >= 0:
        yield path[:end], path[end + 1 :]
        end = path.rfind(".", 0, end)


def field_names(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the paths of all fields of the records, those in an object right behind its own.

    Objects of very many names are maps, and their names are not listed.
    """
    columns = _cells_by_name(records)
    most_names = len(columns) + _MOST_IN_OBJECTS
    names: list[str] = []
    stack = list(columns.items())[::-1]
    while stack:
        path, cells = stack.pop()
        names.append(path)
        children = _cells_by_name([cell for cell in cells if isinstance(cell, Mapping)])
        if len(children) <= _MOST_CHILDREN and len(names) + len(stack) + len(children) <= most_names:
            stack += [(f"{path}.{name}", cells_below) for name, cells_below in children.items()][::-1]
    return list(dict.fromkeys(names))


def _cells_by_name(records: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return the values of each field in the records that have it, in one pass: a map has many names."""
    cells: dict[str, list[Any]] = {}
    for record in records:
        for name, cell in record.items():
            cells.setdefault(name, []).append(cell)
    return cells
