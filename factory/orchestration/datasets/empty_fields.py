"""Documents that a template makes without one of its fields: advice about the first, and a check of all.

A record that lacks a field of the template, or has null or blank text there, is still a document; its fact
`empty_fields` names the fields.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from factory.counted import counted
from factory.orchestration.datasets.column_types import literal
from factory.orchestration.datasets.formats import RecordFiles
from factory.orchestration.declare.ingest_dataset import Dataset
from factory.orchestration.table.checks import Check, alarm
from spark_udfs.ingest.records import EMPTY_FIELDS, name_in_fact
from spark_udfs.ingest.rows import Row

_MOST_EMPTY = 0.99  # of the documents; a field that nearly all of them lack is probably the wrong one


def empty_field_advice(entry: RecordFiles, rows: Sequence[Row]) -> Iterator[str]:
    """Yield a sentence if the template found empty fields in some of the first documents."""
    documents = [row for row in rows if "reason" not in row]
    names = [dict(row["metadata"] or ()).get(EMPTY_FIELDS, "").split(",") for row in documents]
    counts = Counter(name for names_of_row in names for name in names_of_row)
    by_field = {field: counts[name_in_fact(field)] for field in entry.options.contents}
    empty = ", ".join(f"`{field}` in {n:,}" for field, n in by_field.items() if n)
    if entry.options.template is None or not empty:
        return
    yield (
        f"In the first {counted(len(documents), 'document')} of `{entry.name}`, fields of the template are "
        f"empty: {empty}. Lines of empty fields are left out of the text; to leave out the documents, add a "
        f"predicate on `metadata.{EMPTY_FIELDS}`."
    )


def empty_field_checks(entry: Dataset) -> Iterator[Check]:
    """Yield the checks that measure the share of documents in which a field of the template is empty."""
    if not isinstance(entry, RecordFiles) or entry.options.template is None:
        return
    names = f"split(metadata['{EMPTY_FIELDS}'], ',')"
    for number, field in enumerate(entry.options.contents, 1):
        word = re.sub("[^A-Za-z0-9_]+", "_", field)
        yield alarm(
            f"{word}_is_filled" if word == field else f"{word}_{number}_is_filled",
            f"count_if(array_contains({names}, {literal(name_in_fact(field))})) / count(1)",
            f"The share of documents whose `{field}` is empty; `metadata.{EMPTY_FIELDS}` names such fields.",
            "metadata",
            limit=_MOST_EMPTY,
        )
