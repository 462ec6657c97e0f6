"""Values of records that do not fit the column of `raw` that the declaration maps them to.

Such a value stays in `metadata` under the name of its field, and its document has none in the column. If no
first value fits, the field is probably another one, or in a form with two meanings, and `factory check`
refuses it; single values are counted by a check of the run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from factory.counted import counted
from factory.orchestration.datasets.formats import RecordFiles
from factory.orchestration.declare.ingest_dataset import Dataset
from factory.orchestration.declare.located_yaml import YamlPath
from factory.orchestration.table.checks import Check, alarm
from spark_udfs.ingest.rows import Row

_MOST_LETTERS = 60  # of an example
_GAP = r"^\s*(NaN)?\s*$"  # a gap, as `metadata` has it
_EXPECTED = {
    "stars": "a whole number",
    "quality": "a number",
    "created_at": "a date or time with one meaning, such as `2011-05-04 12:30`, or a number of seconds or "
    "milliseconds since 1970",
}


@dataclass(frozen=True)
class Misfit:
    """Values that do not fit a column: its place in the declaration, a sentence, and whether none fits."""

    place: YamlPath
    sentence: str
    of_all: bool


def column_misfits(entry: RecordFiles, rows: Sequence[Row]) -> Iterator[Misfit]:
    """Yield a misfit for each mapped column that some of the first values do not fit."""
    documents = [row for row in rows if "reason" not in row]
    for column, field in entry.columns.items():
        n_fitting = sum(row.get(column) is not None for row in documents)
        texts = [
            text
            for row in documents
            if row.get(column) is None
            for name, text in row.get("metadata") or ()
            if name == field and not (field in entry.metadata and _is_gap(text))
        ]
        if not texts:
            continue
        n_values = n_fitting + len(texts)
        which = "None of the first" if not n_fitting else f"{len(texts):,} of the first"
        values = f"{counted(n_values, 'value')} of `{field}`"
        verb = "fits" if not n_fitting else "do not fit" if len(texts) > 1 else "does not fit"
        example = texts[0] if len(texts[0]) <= _MOST_LETTERS else f"{texts[0][:_MOST_LETTERS]}..."
        fact = f"{which} {values} {verb} `{column}`, such as `{example}`: it takes {_expected(column)}."
        remedy = (
            "Name another field, or convert the values."
            if not n_fitting
            else f"Documents without a fitting value have it in `metadata.{field}` alone."
        )
        yield Misfit(("columns", column), f"{fact} {remedy}", of_all=not n_fitting)


def misfit_checks(entry: Dataset) -> Iterator[Check]:
    """Yield the checks that count the documents with a value that does not fit its column."""
    if not isinstance(entry, RecordFiles):
        return
    for column, field in entry.columns.items():
        cell = f"metadata[{literal(field)}]"
        misfit = f"`{column}` IS NULL AND {cell} IS NOT NULL"
        if field in entry.metadata:
            misfit += f" AND NOT {cell} RLIKE {literal(_GAP)}"
        yield alarm(
            f"every_{column}_fits",
            f"count_if({misfit})",
            f"Every value of `{field}` fits `{column}`, which takes {_expected(column)}; one that does not "
            f"is in `metadata.{field}` alone.",
            column,
            "metadata",
        )


def literal(text: str) -> str:
    """Return text as a literal of Spark SQL."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _is_gap(text: str) -> bool:
    """Whether the text of a field in `metadata` means a missing value, such as NaN of a data frame."""
    return re.fullmatch(_GAP, text) is not None


def _expected(column: str) -> str:
    return _EXPECTED.get(column, "text")
