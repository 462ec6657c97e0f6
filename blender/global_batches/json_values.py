"""JSON values: the offsets and origins that a producer adds to its batches, and their form in records."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from blender.global_batches.errors import InvalidBatch
from factory.errors import first_line

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"

MOST_BYTES = 4096
_RECORD_LEVELS = 100  # more than a record nests around a value


def small_json(value: Json, name: str) -> Json:
    """A copy of the value as a reader gets it; `name` is the subject of errors.

    numpy numbers become Python numbers. Raises InvalidBatch unless it is JSON that reads back equal, of
    at most MOST_BYTES.
    """
    try:
        text = compact_json(value, _number)
        copy: Json = json.loads(text)
        nested = copy
        for _ in range(_RECORD_LEVELS):
            nested = [nested]
        compact_json(nested)  # raises RecursionError for what no record could hold
        if copy != value:
            raise ValueError("it has tuples, or keys that are not strings")
    except (ValueError, TypeError, RecursionError) as error:
        raise InvalidBatch(
            f"The {name} of a batch is not JSON: {first_line(error)}. Give numbers, strings, lists and dicts."
        ) from error
    if len(text) > MOST_BYTES:
        raise InvalidBatch(
            f"The {name} of a batch has {len(text):,} bytes of JSON. Give at most {MOST_BYTES:,}, such as a "
            "reference to the rest."
        )
    return copy


def compact_json(value: object, default: Callable[[object], object] | None = None) -> bytes:
    """ASCII without spaces, keys sorted; `default` translates other values to JSON.

    Raises ValueError, TypeError or RecursionError for values that it cannot translate.
    """
    text = json.dumps(value, separators=(",", ":"), sort_keys=True, allow_nan=False, default=default)
    return text.encode("ascii")


def _number(number: object) -> object:
    if isinstance(number, np.bool_ | np.integer | np.floating):
        return number.item()
    raise TypeError(f"it has a {type(number).__name__}")
