"""Rules that Python alone measures, over batches of documents in Spark's workers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import pyarrow as pa

from factory.errors import ConfigurationError


class Measure(Protocol):
    """A rule: its name, and the number of a text, None where the rule does not apply."""

    @property
    def name(self) -> str: ...

    def measure(self, text: Any, /) -> float | None: ...


def measure(
    doc_ids: pa.Array, texts: pa.Array, *, rules: Sequence[Measure], view: Callable[[str], Any]
) -> dict[str, pa.Array]:
    """Return a column of float64 for each rule, null where a text is null.

    All rules see one `view` of a text, which remembers its words and lines. Raises ConfigurationError, which
    names the rule and the document, for an error of the rule and for a value that is not a finite number.
    """
    columns: dict[str, list[float | None]] = {rule.name: [] for rule in rules}
    for doc_id, text in zip(doc_ids.to_pylist(), texts.to_pylist(), strict=True):
        seen = None if text is None else view(text)
        for rule in rules:
            columns[rule.name].append(None if seen is None else _value(rule, seen, doc_id))
    return {name: pa.array(values, pa.float64()) for name, values in columns.items()}


def _value(rule: Measure, text: Any, doc_id: str) -> float | None:
    try:
        measurement = rule.measure(text)
        number = None if measurement is None else float(measurement)
    except Exception as error:
        raise ConfigurationError(
            f"The rule `{rule.name}` fails on document {doc_id} with {type(error).__name__}: {error}. "
            "Correct its `measure`, or return None where it does not apply."
        ) from error
    if number is not None and not math.isfinite(number):
        raise ConfigurationError(
            f"The rule `{rule.name}` measures {number} on document {doc_id}. Return a finite number or None."
        )
    return number
