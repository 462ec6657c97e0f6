"""A record of named values (a JSON object, a Parquet row) as a document."""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, time
from decimal import Decimal
from itertools import chain
from typing import Any

from factory.errors import ConfigurationError
from factory.suggestions import quoted, unknown_name
from spark_udfs.ingest.bounds import MAX_KEY_BYTES, MAX_TEXT_BYTES
from spark_udfs.ingest.field_paths import ABSENT, cell_at, cell_or_none, field_names, splits
from spark_udfs.ingest.file_types import PLAIN
from spark_udfs.ingest.messages import Conversation, text_of
from spark_udfs.ingest.rows import BadRecord, Origin, Row, document
from spark_udfs.ingest.text_template import TextTemplate, is_template, text_template
from spark_udfs.ingest.typed_values import exact_key, finite_number, instant, is_blank, whole_number

EMPTY_FIELDS = "empty_fields"  # the fact that names the fields of a template without a value
TEXT_COLUMNS = ("language", "repository", "path", "revision", "license", "fork_of")
MAPPED_COLUMNS = (*TEXT_COLUMNS, "stars", "created_at", "quality")  # columns of `RAW` that a field may fill
_TYPED: Mapping[str, Callable[[Any], Any]] = {
    "stars": whole_number,
    "created_at": instant,
    "quality": finite_number,
}


@dataclass(frozen=True)
class Fields:
    """The fields of a record (a JSON object, a Parquet row) that fill the columns of `RAW`.

    A field is named by its path: `doc.text` is the field `text` of the object `doc`, unless the record has a
    field of exactly that name. `text` is the field of the text, or a template of several fields, such as
    `{question}\\n{answer}`, unless the record has a field of exactly that name; a `conversation` makes the
    text of messages instead. `key` is the field that identifies a record in its source; the default is the
    record's file and number. `columns` maps columns of `RAW` to fields; a value that does not fit its column,
    in any of the types that exports give it, goes to `metadata` under the field's name. `metadata` lists
    further fields to keep there as text. `language` is the default of records without one. A record or text
    longer than `max_bytes` is rejected.

    Raises ConfigurationError for a column that no field can fill, for a mistake in a template, and for a
    field that would replace a fact of the template.
    """

    text: str = "text"
    key: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    metadata: Sequence[str] = ()
    language: str | None = None
    media_type: str = PLAIN.media_type
    max_bytes: int = MAX_TEXT_BYTES
    conversation: Conversation | None = None

    def __post_init__(self) -> None:
        for column in self.columns:
            if column not in MAPPED_COLUMNS:
                raise ConfigurationError(unknown_name("column", column, MAPPED_COLUMNS))
        try:
            template = self.template
        except ValueError as error:
            raise ConfigurationError(str(error)) from error
        if template is not None and EMPTY_FIELDS in (*self.columns.values(), *self.metadata):
            raise ConfigurationError(
                f"Field `{EMPTY_FIELDS}` would replace the fact of that name, which lists the empty fields "
                "of the template. Leave the field out, or rename it in the files."
            )

    @property
    def template(self) -> TextTemplate | None:
        """The template of the text, None for a text that is one field or made of messages."""
        return text_template(self.text) if self.conversation is None and is_template(self.text) else None

    @property
    def text_column(self) -> str | None:
        """The one field that is the text, None for a text that is made of others."""
        return self.text if self.conversation is None and self.template is None else None

    @property
    def contents(self) -> Sequence[str]:
        """The fields that become the text: one, the fields of a template, or the field of the messages."""
        if self.conversation is not None:
            return [self.conversation.field]
        return [self.text] if self.template is None else self.template.fields

    @property
    def names(self) -> list[str]:
        """The fields to read, each once, in order; a field may be named like the template."""
        key = [] if self.key is None else [self.key]
        exact = [] if self.template is None else [self.text]
        return list(dict.fromkeys([*exact, *self.contents, *key, *self.columns.values(), *self.metadata]))

    def text_column_among(self, paths: Container[str]) -> str | None:
        """Return the one column of a file that is the text, None for a text made of several."""
        return self.text if self.template is not None and self.text in paths else self.text_column


@dataclass(frozen=True)
class FirstRecords:
    """The fields and values of the first `n_records` of a file, for a person to check and for guesses.

    `fields` are the paths of their fields in order, `texts` the fields of text with the bytes or letters of
    their values, and `values` the values by field, None where a record lacks one; fields of long values may
    be left out, and then `beginnings` has the first letters of a few. `lists` are the fields of lists of
    objects, each with the names that the objects have.
    """

    n_records: int
    fields: tuple[str, ...]
    texts: Mapping[str, int]
    values: Mapping[str, Sequence[Any]]
    lists: Mapping[str, frozenset[str]] = field(default_factory=dict)
    beginnings: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @classmethod
    def from_records(cls, records: Sequence[Mapping[str, Any]]) -> FirstRecords:
        """The fields of records; each record may have other fields."""
        values = {name: [cell_or_none(record, name) for record in records] for name in field_names(records)}
        lengths = {
            name: sum(len(cell) for cell in column if isinstance(cell, str))
            for name, column in values.items()
            if any(isinstance(cell, str) for cell in column)
        }
        parts = {name: _names_in_lists(column) for name, column in values.items()}
        lists = {name: names for name, names in parts.items() if names}
        return cls(len(records), tuple(values), lengths, values, lists)

    def has(self, path: str) -> bool:
        """Whether a record has a field of this path, which may be a name in a map."""
        return path in self.fields or any(
            isinstance(cell, Mapping) and cell_at(cell, rest) is not ABSENT
            for name, rest in splits(path)
            for cell in self.values.get(name, ())
        )


def _names_in_lists(column: Iterable[Any]) -> frozenset[str]:
    """The names of the objects in those cells of a field that are lists."""
    entries = chain.from_iterable(cell for cell in column if isinstance(cell, list))
    return frozenset(chain.from_iterable(entry for entry in entries if isinstance(entry, dict)))


def as_text(value: Any) -> str:
    """Return a value as text for `metadata`, with `?` for half surrogates.

    Text, dates, times and decimals are themselves, bytes are UTF-8 or hex digits, everything else is JSON.
    """
    if isinstance(value, str | bytes | date | time | Decimal):
        text = _plain_text(value)
    else:
        try:
            text = json.dumps(value, sort_keys=True, ensure_ascii=False, default=_plain_text)
        except TypeError:  # keys that are neither text nor numbers, or of several types
            text = json.dumps(_with_text_keys(value), sort_keys=True, ensure_ascii=False, default=_plain_text)
    return text.encode("utf-8", "replace").decode()


def _plain_text(cell: object) -> str:
    if not isinstance(cell, bytes):
        return str(cell)
    try:
        return cell.decode()
    except UnicodeDecodeError:
        return cell.hex()


def _with_text_keys(cell: Any) -> Any:
    """Return a nested value with the keys of its maps as text."""
    if isinstance(cell, Mapping):
        return {as_text(key): _with_text_keys(inner) for key, inner in cell.items()}
    return [_with_text_keys(inner) for inner in cell] if isinstance(cell, list | tuple) else cell


def as_column(column: str, value: Any) -> Any:
    """Return the value in the type of `column`, None if it does not fit."""
    if column in _TYPED:
        return _TYPED[column](value)
    return as_text(value) if isinstance(value, str) else None


def record_key(fields: Fields, values: Mapping[str, Any]) -> str | None:
    """Return a record's own key, None if `fields` names none; raises BadRecord `no_key` and `too_long`."""
    if fields.key is None:
        return None
    key = cell_or_none(values, fields.key)
    if (digits := exact_key(key)) is not None:
        return digits
    if isinstance(key, float) and key.is_integer():
        detail = f"Field `{fields.key}` holds a float of 2^53 or more, where floats skip whole numbers."
        raise BadRecord("no_key", f"{detail} Export it as whole numbers or text.")
    if not isinstance(key, str) or not key or as_text(key) != key:
        raise BadRecord("no_key", f"Field `{fields.key}` holds neither text nor a whole number.")
    if len(key.encode()) > MAX_KEY_BYTES:
        raise BadRecord("too_long", f"The key is longer than {MAX_KEY_BYTES:,} bytes.")
    return key


def _text(fields: Fields, values: Mapping[str, Any]) -> tuple[str, Mapping[str, str]]:
    """Return the text of a record, and facts that follow from how it is made."""
    if fields.conversation is not None:
        return text_of(fields.conversation, values)
    text = cell_at(values, fields.text)
    if text is ABSENT and fields.template is not None:
        return _text_of_template(fields.template, values)
    if text is ABSENT or text is None:
        raise BadRecord("no_text", f"Field `{fields.text}` is missing or null.")
    if not isinstance(text, str):
        raise BadRecord("text_not_a_string", f"Field `{fields.text}` holds {type(text).__name__}, not text.")
    return text, {}


def _text_of_template(template: TextTemplate, values: Mapping[str, Any]) -> tuple[str, Mapping[str, str]]:
    """Return the text that a template makes of a record, and the names of the fields that are empty."""
    cells = {name: cell_or_none(values, name) for name in template.fields}
    for name, cell in cells.items():
        if isinstance(cell, list | dict):
            detail = f"Field `{name}` of the template holds {type(cell).__name__}, not text."
            raise BadRecord("text_not_a_string", detail)
    empty_fields = [name for name, cell in cells.items() if is_blank(cell)]
    if len(empty_fields) == len(cells):
        if any(cell is not None for cell in cells.values()):
            raise BadRecord("empty", "All fields of the template are blank.")
        raise BadRecord("no_text", f"The fields {quoted(template.fields)} are missing or null.")
    texts = {name: "" if name in empty_fields else _in_template(cell) for name, cell in cells.items()}
    names = ",".join(map(name_in_fact, empty_fields))
    return template.render(texts), {EMPTY_FIELDS: names} if names else {}


def name_in_fact(field: str) -> str:
    """Return the name of a field as the fact `empty_fields` has it, where commas separate the names."""
    return field.replace(",", "%2C")


def _in_template(cell: Any) -> str:
    """Return a value as words of a text; numbers and truth values are as in JSON."""
    return as_text(cell) if isinstance(cell, bool | int | float) else str(cell)


def record(origin: Origin, fields: Fields, key: str, values: Mapping[str, Any]) -> Row:
    """Return the document of a record; `key` is the default for a record without a key of its own.

    Raises BadRecord `no_text`, `text_not_a_string`, `too_long`, `no_key`, `empty`, `not_unicode`, and for a
    conversation as `text_of`.
    """
    text, facts = _text(fields, values)
    columns: dict[str, Any] = {"language": fields.language or origin.language}
    metadata = dict(facts)
    for name in fields.metadata:
        if (cell := cell_or_none(values, name)) is not None:
            metadata[as_text(name)] = as_text(cell)
    for column, name in fields.columns.items():
        value = cell_or_none(values, name)
        if is_blank(value) and (column in _TYPED or not isinstance(value, str)):
            continue
        fitting = as_column(column, value)
        if fitting is None:
            metadata[as_text(name)] = as_text(value)
        else:
            columns[column] = fitting
    own = record_key(fields, values) or key
    row = document(origin, own, text, media_type=fields.media_type, metadata=metadata, **columns)
    if row["n_bytes"] > fields.max_bytes:
        raise BadRecord("too_long", f"The text is longer than {fields.max_bytes:,} bytes.")
    return row
