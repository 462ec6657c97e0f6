"""The fields of a file of records, guessed from the first: their texts, keys and columns, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from factory.orchestration.datasets.formats import MessageFields, RecordFiles
from factory.orchestration.datasets.record_fields import (
    key_field,
    messages_field,
    template_fields,
    text_field,
    usual_text_field,
)
from factory.suggestions import quoted
from spark_udfs.ingest.files import Input
from spark_udfs.ingest.records import FirstRecords

FIRST_RECORDS, FIRST_BYTES = 1_000, 16 << 20  # read of a file of records

_COLUMN_FIELDS = {
    "repository": ("repository", "repo_name", "repo", "max_stars_repo_name"),
    "path": ("path", "file_path", "max_stars_repo_path"),
    "language": ("language", "lang"),
}


@dataclass(frozen=True)
class RecordFields:
    """The fields of records that seem to fill the columns of raw documents.

    `text` is a field, or a template of the fields `parts`. Records of conversations have `messages` in place
    of a `text`. `reason` is a sentence that names the field taken for the text, and why.
    """

    text: str | None = None
    key: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    others: Sequence[str] = ()
    messages: MessageFields | None = None
    parts: tuple[str, ...] = ()
    reason: str = field(default="", compare=False)


def guess_fields(
    format_class: type[RecordFiles], source: Input, n_records: int = FIRST_RECORDS
) -> RecordFields:
    """Return the fields of the first records; none if they cannot be read, which a check will report."""
    first = format_class.first_records(source, n_records)
    messages = messages_field(first)
    parts = template_fields(first) or () if messages is None else ()
    text = _template(parts) if parts else text_field(first) if messages is None else None
    contents: set[str | None] = {messages.field} if messages is not None else {*parts} or {text}
    columns = {
        column: name
        for column, candidates in _COLUMN_FIELDS.items()
        if (name := _first_of(candidates, first, contents)) is not None
    }
    key = key_field([first], [*contents, *columns.values()])
    others = tuple(name for name in first.texts if name not in {*contents, key, *columns.values()})
    return RecordFields(text, key, columns, others, messages, parts, _reason(first, text, parts, messages))


def _first_of(candidates: Sequence[str], first: FirstRecords, contents: set[str | None]) -> str | None:
    """Return the first candidate that is a field of text, else such a field of an object."""
    names = [name for name in first.texts if name not in contents]
    in_objects = [name for candidate in candidates for name in names if name.endswith(f".{candidate}")]
    return next((candidate for candidate in candidates if candidate in names), next(iter(in_objects), None))


def _template(parts: Sequence[str]) -> str:
    return "\n".join(f"{{{name}}}" for name in parts)


def _reason(
    first: FirstRecords, text: str | None, parts: Sequence[str], messages: MessageFields | None
) -> str:
    if messages is not None:
        return f"its texts are the conversations in `{messages.field}`, a list of messages"
    if parts:
        return f"each text is made of {quoted(parts)}, because no field holds all of it"
    if text is None:
        return "no field of its first records looks like a text" if first.fields else ""
    if text == usual_text_field(first):
        return f"its texts are in `{text}`, a usual name for them"
    if len(first.texts) == 1:
        return f"its texts are in `{text}`, the only text field"
    if not first.values.get(text) and not first.beginnings.get(text):
        return f"its texts seem to be in `{text}`, by the names and sizes of the fields: no value was read"
    return f"its texts are in `{text}`, which has the most words of {len(first.texts)} text fields"
