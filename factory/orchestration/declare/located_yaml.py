"""A YAML file as plain values with their lines; errors are sentences with file, line and field.

    my.yaml, line 7, datasets[1].textt: Unknown field `textt`. Did you mean `text`?

A place is a location of pydantic's, such as ("datasets", 1, "textt"). The place of a missing field has the
line of the value that should contain it. A key repeated in one mapping is refused, since YAML's own readers
would keep the last value and drop the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import yaml
from pydantic import BaseModel, ValidationError

from factory.errors import ConfigurationError
from factory.suggestions import unknown_name

YamlPath = tuple[str | int, ...]
M = TypeVar("M", bound=BaseModel)

_MOST_VALUES = 100_000  # counts repeats by aliases, which cost time and memory in merged mappings
_SHOWN = 5  # errors listed before the number of further ones
_KEY = "[key]"  # ends pydantic's place of an invalid key
_FIELD = "field"  # in the context of a model's own error: the field at fault


class InvalidValue(Exception):
    """A value of the file is wrong; raised with its place and turned into a sentence by the caller."""

    def __init__(self, place: YamlPath, message: str) -> None:
        super().__init__(message)
        self.place, self.message = place, message


@dataclass(frozen=True)
class LocatedYaml:
    """The values of a file, and the line (from 1) of each, by place."""

    path: Path
    values: Any
    lines: Mapping[YamlPath, int]

    @classmethod
    def read(cls, path: Path) -> LocatedYaml:
        """The file's values; raises ConfigurationError if it cannot be read or is not YAML."""
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as error:
            raise ConfigurationError(f"{path} cannot be read ({error.strerror}). Name a file.") from error
        except UnicodeDecodeError as error:
            raise ConfigurationError(
                f"{path} is not UTF-8 (byte {error.start}). Save it as UTF-8."
            ) from error
        try:
            loader = yaml.SafeLoader(text)
            node = loader.get_single_node()
            if node is not None and _n_values(node, {}) > _MOST_VALUES:
                raise ConfigurationError(
                    f"{path.name} holds more than {_MOST_VALUES:,} values, counting repeats by aliases "
                    "(`*name`). Write fewer."
                )
            lines = {} if node is None else _lines(node, loader, path.name)
            return cls(path, None if node is None else loader.construct_document(node), lines)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            raise ConfigurationError(
                f"{path.name}, line {mark.line + 1 if mark else 1}: this is not YAML "
                f"({error.problem or error.context}). Look there and just above for a missing quote, a tab "
                "or a wrong indent."
            ) from error
        except RecursionError as error:
            raise ConfigurationError(f"{path.name} is nested too deeply. Write it flatter.") from error
        except yaml.YAMLError as error:  # a forbidden character
            said = " ".join(str(error).split())
            raise ConfigurationError(f"{path.name} is not YAML ({said}). Correct or quote it.") from error

    @contextmanager
    def naming_places(self) -> Iterator[None]:
        """Turn InvalidValue into ConfigurationError with file, line and field."""
        try:
            yield
        except InvalidValue as error:
            raise ConfigurationError(self.sentence(error.place, error.message)) from error

    def sentence(self, place: YamlPath, message: str) -> str:
        """`message` with file, line and field in front."""
        return f"{self.path.name}, line {self.line(place)}{_field(place)}: {message}"

    def line(self, place: YamlPath) -> int:
        """The line of a place, or of the nearest enclosing place in the file."""
        while place and place not in self.lines:
            place = place[:-1]
        return self.lines.get(place, 1)

    def build(self, model: type[M]) -> M:
        """The file as `model`; raises ConfigurationError with a sentence for each error."""
        return self.part((), model, self.values)

    def part(self, place: YamlPath, model: type[M], values: Any) -> M:
        """The values at `place` as `model`; raises ConfigurationError with a sentence for each error."""
        try:
            return model.model_validate(values, context={"folder": self.path.parent})
        except ValidationError as error:
            found: list[tuple[int, str]] = []
            for it in error.errors():
                at, said = _at(values, it), _said(model, it)
                follows = it["type"] == "too_short" and it["input"]  # its items are wrong, and reported
                if not (follows or _inherited(at, values)):
                    found.append((self.line(place + at), self.sentence(place + at, said)))
            lines = [said for _, said in sorted(dict.fromkeys(found))]
            more = [f"... and {len(lines) - _SHOWN} more."] if len(lines) > _SHOWN else []
            raise ConfigurationError("\n".join(lines[:_SHOWN] + more)) from error


def _n_values(node: yaml.Node, known_of: dict[int, int]) -> int:
    """The number of values in a node, with the values of an anchor counted again for each alias."""
    if id(node) not in known_of:
        known_of[id(node)] = 1
        inner = node.value if isinstance(node, yaml.CollectionNode) else ()
        pairs = (child if isinstance(child, tuple) else (child,) for child in inner)
        known_of[id(node)] = 1 + sum(_n_values(it, known_of) for pair in pairs for it in pair)
    return known_of[id(node)]


def _lines(root: yaml.Node, loader: yaml.SafeLoader, file: str) -> dict[YamlPath, int]:
    """The line of every value.

    Raises ConfigurationError for a repeated key, a key that is not a scalar, and a value that `loader` cannot
    read, such as a date that does not exist.
    """
    line_of: dict[YamlPath, int] = {(): root.start_mark.line + 1}
    node_ids: set[int] = set()  # an alias is its anchor's node again, and an anchor may even contain itself

    def walk(node: yaml.Node, place: YamlPath) -> None:
        if id(node) in node_ids:
            return
        node_ids.add(id(node))
        if isinstance(node, yaml.ScalarNode):
            try:
                loader.construct_object(node)
            except ValueError as error:
                line = node.start_mark.line + 1
                raise ConfigurationError(
                    f"{file}, line {line}{_field(place)}: `{node.value}` cannot be read ({error}). "
                    "Correct or quote it."
                ) from error
        if isinstance(node, yaml.SequenceNode):
            for number, item in enumerate(node.value):
                line_of[*place, number] = item.start_mark.line + 1
                walk(item, (*place, number))
        elif isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                line = key.start_mark.line + 1
                if not isinstance(key, yaml.ScalarNode):
                    raise ConfigurationError(
                        f"{file}, line {line}: a list or mapping cannot be a name. Write `name: value`."
                    )
                first_line = line_of.get((*place, key.value))
                if first_line is not None:
                    raise ConfigurationError(
                        f"{file}, line {line}: `{key.value}` is already on line {first_line}. Keep one."
                    )
                line_of[*place, key.value] = line
                walk(value, (*place, key.value))

    walk(root, ())
    return line_of


def _field(place: YamlPath) -> str:
    """A place as messages show it after the line; empty for the whole file."""
    shown = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).lstrip(".")
    return f", {shown}" if shown else ""


def _at(values: Any, error: Any) -> YamlPath:
    """The place of an error in `values`: pydantic's, without the tags of unions and the mark of a key."""
    place: list[str | int] = []
    for part in (*error["loc"], *([error["ctx"][_FIELD]] if _FIELD in error.get("ctx", {}) else [])):
        if isinstance(values, Mapping) and part not in values and part in values.values():
            continue  # the tag that selected the model
        if part == _KEY and not (isinstance(values, Mapping) and part in values):
            continue
        place.append(part)
        try:
            values = values[part]
        except (KeyError, IndexError, TypeError):
            values = None
    if error["type"].startswith("union_tag"):
        place.append(_tag(error))
    return tuple(place)


def _tag(error: Any) -> str:
    return str(error["ctx"]["discriminator"]).strip("'")


def _inherited(place: YamlPath, values: Any) -> bool:
    """Whether a variant inherits the value at this place, so that the error is reported at its dataset."""
    if "variants" not in place[:-2]:
        return False
    for part in place[: place.index("variants") + 3]:
        if values is None or (isinstance(values, Mapping) and part not in values):
            return True
        values = values[part]
    return False


def _said(model: type[BaseModel], error: Any) -> str:
    """A sentence of fact and a sentence of remedy for a pydantic error."""
    kind, name, value = error["type"], str(error["loc"][-1]) if error["loc"] else "", error["input"]
    if kind in ("extra_forbidden", "unexpected_keyword_argument"):
        return unknown_name("field", name, _fields(model, error["loc"][:-1]))
    if kind == "missing":
        return f"`{name}` is missing. Add it."
    if kind == "union_tag_not_found":
        return f"`{_tag(error)}` is missing. Add it."
    if kind == "union_tag_invalid":
        return unknown_name("value", error["ctx"]["tag"], _quoted(error["ctx"]["expected_tags"]))
    if kind == "literal_error":
        return unknown_name("value", str(value), _quoted(error["ctx"]["expected"]))
    if kind == "too_short":
        return "It is empty. Give at least one."
    if kind == "value_error":
        return str(error["ctx"]["error"])
    if _FIELD in error.get("ctx", {}):
        return str(error["msg"])
    if kind == "string_type" and not isinstance(value, list | Mapping):
        return f"YAML reads this as {value!r}, which is not text. Put it in quotes."
    shown = "nothing" if value is None else f"`{value}`"
    if kind == "int_from_float" and {"weight", "weights"} & set(error["loc"]):
        return f"The weight is {value}. Weights are whole rows per step, such as 1 and 4."
    if kind in ("less_than", "less_than_equal") and 1 in error["ctx"].values() and _is_percent(value):
        return f"{shown} is out of range. Write {value / 100:g} for {value:g} %."
    if kind in ("model_type", "model_attributes_type", "dataclass_type", "dict_type", "mapping_type"):
        return f"Expected fields with values, found {shown}. Write them as `name: value`."
    said = re.sub("^Input", "It", error["msg"]).replace("tuple", "list").replace("dictionary", "mapping")
    return f"{shown} does not fit. {said}."


def _is_percent(value: float) -> bool:
    return 1 < value <= 100 and float(value).is_integer()


def _quoted(expected: str) -> list[str]:
    """The values that pydantic lists: words in quotes, numbers without."""
    return re.findall(r"'([^']*)'", expected) or re.findall(r"\d+", expected)


def _fields(model: Any, place: YamlPath) -> list[str]:
    """The names of the fields of the model at `place` below `model`."""
    for part in place:
        model = _inner(model, part)
    plain = _plain(model)
    if is_dataclass(plain):
        return [field.name for field in fields(plain)]
    return [field.alias or name for name, field in plain.model_fields.items()]


def _inner(annotation: Any, part: str | int) -> Any:
    """The annotation of the value at `part`; a tag selects the model of a union."""
    annotation = _plain(annotation)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation.model_fields[str(part)].annotation
    arguments = get_args(annotation)
    if get_origin(annotation) in (Union, UnionType):
        return next(argument for argument in arguments if part in _tags(argument))
    return arguments[0 if isinstance(part, int) else 1]


def _plain(annotation: Any) -> Any:
    """An annotation without its wrappers, Annotated and `| None`."""
    if get_origin(annotation) is Annotated:
        return _plain(get_args(annotation)[0])
    rest = [argument for argument in get_args(annotation) if argument is not type(None)]
    if get_origin(annotation) in (Union, UnionType) and len(rest) == 1:
        return _plain(rest[0])
    return annotation


def _tags(model: Any) -> set[Any]:
    """The tags that select a model of a union."""
    literals = (
        field.annotation for field in model.model_fields.values() if get_origin(field.annotation) is Literal
    )
    return {word for literal in literals for word in get_args(literal)}
