"""The registered kinds, and kinds in users' own files.

load_kind("docstrings", Path(), {})
load_kind("my_kinds.py:Upper", folder, {"least": 3})
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from factory.errors import ConfigurationError, first_line
from factory.models.python_file import run_file
from factory.suggestions import unknown_name
from factory.synthesis.kind import WorkerKind
from factory.synthesis.kinds.docstrings import Docstrings

KINDS: Mapping[str, type[Any]] = {"docstrings": Docstrings}


def load_kind(reference: str, folder: Path, options: Mapping[str, object]) -> WorkerKind:
    """Return the kind that `reference` names, made with `options`; files are relative to `folder`.

    Raises ConfigurationError for an unknown name, a file that fails, options that it does not take, and a
    class that is no kind.
    """
    kind_class = _class_of_file(reference, folder) if ":" in reference else KINDS.get(reference)
    if kind_class is None:
        raise ConfigurationError(unknown_name("kind", reference, KINDS))
    try:
        kind: WorkerKind = kind_class(options)
    except ConfigurationError:
        raise
    except Exception as error:
        raise ConfigurationError(
            f"Kind `{reference}` cannot be made of its options "
            f"({type(error).__name__}: {first_line(error)}). "
            "Correct the options, or the kind."
        ) from error
    _require_kind(reference, kind)
    return kind


def _class_of_file(reference: str, folder: Path) -> type[Any]:
    file, _, name = reference.rpartition(":")
    path = (folder / file).resolve()
    if not path.is_file():
        raise ConfigurationError(
            f"Kind `{reference}` names a file that does not exist. Paths are relative to {folder.resolve()}."
        )
    module = run_file(path)
    classes = {
        name: member
        for name, member in vars(module).items()
        if isinstance(member, type) and member.__module__ == module.__name__ and callable(member)
    }
    if name not in classes:
        raise ConfigurationError(unknown_name(f"kind of {path.name}:", name, classes))
    return classes[name]


def _require_kind(reference: str, kind: object) -> None:
    """Raise ConfigurationError unless `kind` has what every kind has."""
    if not callable(kind):
        raise ConfigurationError(
            f"Kind `{reference}` has no `__call__`. Let it take a WorkItem and yield outcomes."
        )
    if not isinstance(getattr(kind, "version", None), str):
        raise ConfigurationError(
            f"Kind `{reference}` has no `version`. Give it a text, and a new one when it changes."
        )
    schema = getattr(kind, "schema", None)
    if not isinstance(schema, pa.Schema):
        raise ConfigurationError(
            f"Kind `{reference}` has no `schema`. Give it a pyarrow.Schema of its columns."
        )
    for column in schema:
        if not _is_simple(column.type):
            raise ConfigurationError(
                f"Column `{column.name}` of kind `{reference}` is {column.type}. "
                "Use string, an integer, a float or bool."
            )


def _is_simple(kind: pa.DataType) -> bool:
    simple = (pa.types.is_string, pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean)
    return any(is_of(kind) for is_of in simple)
