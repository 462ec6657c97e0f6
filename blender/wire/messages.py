"""Between the messages of the protocol and plain records, driven by the names of their fields.

A field that a message and its record both declare needs no code here. A nested message has the name of its
record in `blender.records`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any, NamedTuple, TypeVar

from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from blender import records

M = TypeVar("M", bound=Message)
R = TypeVar("R")


class _Field(NamedTuple):
    name: str
    has_presence: bool
    """Whether a message can omit the field."""
    has_default: bool
    """Whether the record has a default for the field."""
    from_message: Callable[[Any], Any]
    to_message: Callable[[Any], Any]


def to_record(kind: type[R], message: Message) -> R:
    """`message` as a record; omitted fields take the record's defaults."""
    values = {}
    for field in _fields(kind, type(message)):
        if field.has_presence and not message.HasField(field.name):
            continue
        value = getattr(message, field.name)
        if value or field.has_presence or not field.has_default:
            values[field.name] = field.from_message(value)
    return kind(**values)


def to_message(kind: type[M], record: Any) -> M:
    """`record` as a message; None leaves a field out. A tuple fills in for a named one."""
    found = _fields(type(record), kind)
    given = record if isinstance(record, tuple) else [getattr(record, field.name) for field in found]
    pairs = zip(found, given, strict=True)
    return kind(**{field.name: field.to_message(value) for field, value in pairs if value is not None})


def to_request(kind: type[M], values: Mapping[str, Any]) -> M:
    """The message with these values by field, records among them; None leaves a field out."""
    given = {name: value for name, value in values.items() if value is not None}
    found = {name: _field(kind.DESCRIPTOR.fields_by_name[name], has_default=False) for name in given}
    return kind(**{name: found[name].to_message(value) for name, value in given.items()})


def _find_fields(record: Any, message: Any) -> tuple[_Field, ...]:
    if record is tuple:
        record = getattr(records, message.DESCRIPTOR.name)
    defaults = (
        {field.name: field.default is not MISSING for field in fields(record)}
        if is_dataclass(record)
        else dict.fromkeys(record._fields, False)
    )
    return tuple(
        _field(message.DESCRIPTOR.fields_by_name[name], has_default) for name, has_default in defaults.items()
    )


_fields: Callable[[Any, Any], tuple[_Field, ...]] = cache(_find_fields)


def _field(declared: Any, has_default: bool) -> _Field:
    nested, repeated = declared.message_type, declared.is_repeated

    def field(from_message: Callable[[Any], Any], to_message: Callable[[Any], Any]) -> _Field:
        return _Field(declared.name, declared.has_presence, has_default, from_message, to_message)

    if nested is None:
        return field(tuple, list) if repeated else field(_same, _same)
    if nested.GetOptions().map_entry:
        return field(dict, dict)
    record, message = getattr(records, nested.name), GetMessageClass(nested)
    if repeated:
        return field(
            lambda found: tuple(to_record(record, one) for one in found),
            lambda given: [to_message(message, one) for one in given],
        )
    return field(lambda found: to_record(record, found), lambda given: to_message(message, given))


def _same(value: Any) -> Any:
    return value
