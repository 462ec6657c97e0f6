"""Texts made of several fields of a record, by a template: the field `question` replaces `{question}`.

    "{instruction}\\n{input}\\n{output}"

    {"instruction": "Add.", "input": "1, 2", "output": "3"}     {"instruction": "Say hi.", "output": "Hi!"}

    Add.                                                        Say hi.
    1, 2                                                        Hi!
    3

A line is left out, with its other words, if all its fields are empty, and so is a paragraph: lines between
blank ones. `{{` and `}}` are braces.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby

_TOKEN = re.compile(r"(?P<brace>\{\{|\}\})|\{(?P<name>[^{}]+)\}|(?P<words>[^{}]+)|(?P<stray>\{\}|[{}])")


@dataclass(frozen=True)
class _Piece:
    """Words of a template, or the name of a field."""

    content: str
    is_field: bool = False


@dataclass(frozen=True)
class _Line:
    pieces: tuple[_Piece, ...]

    @property
    def fields(self) -> list[str]:
        return [piece.content for piece in self.pieces if piece.is_field]

    @property
    def is_blank(self) -> bool:
        return not any(piece.is_field or piece.content.strip() for piece in self.pieces)

    def render(self, texts: Mapping[str, str]) -> str:
        return "".join(texts[piece.content] if piece.is_field else piece.content for piece in self.pieces)


@dataclass(frozen=True)
class _Paragraph:
    """Adjacent lines that are not blank, and the gap between them and the paragraph before."""

    gap: str
    lines: tuple[_Line, ...]

    def render(self, texts: Mapping[str, str]) -> str | None:
        """Return its text; None if it has fields and all of them are empty."""
        if _are_empty([name for line in self.lines for name in line.fields], texts):
            return None
        return "\n".join(line.render(texts) for line in self.lines if not _are_empty(line.fields, texts))


@dataclass(frozen=True)
class TextTemplate:
    """A parsed template: the fields that it reads, and the text that it makes of their texts."""

    fields: tuple[str, ...]
    _paragraphs: tuple[_Paragraph, ...]
    _head: str
    _tail: str

    def render(self, texts: Mapping[str, str]) -> str:
        """Return the text of a record; `texts` has the text of each field, an empty one for no value."""
        pairs = [(paragraph.gap, paragraph.render(texts)) for paragraph in self._paragraphs]
        present = [(gap, text) for gap, text in pairs if text is not None]
        body = "".join(text if number == 0 else gap + text for number, (gap, text) in enumerate(present))
        return f"{self._head}{body}{self._tail}"


def is_template(text: str) -> bool:
    """Whether the declaration of a text is a template, in contrast to the name of a field."""
    return "{" in text or "}" in text


@lru_cache(maxsize=64)
def text_template(template: str) -> TextTemplate:
    """Return the parsed template.

    Raises ValueError with a sentence for a brace without its partner, and for a template without a field.
    """
    lines = [_Line(tuple(pieces)) for pieces in _pieces_by_line(template)]
    fields = tuple(dict.fromkeys(name for line in lines for name in line.fields))
    if not fields:
        raise ValueError(
            f"The template `{template}` names no field. Write one in braces, such as `{{text}}`."
        )
    runs = [(is_blank, tuple(run)) for is_blank, run in groupby(lines, key=lambda line: line.is_blank)]
    head = _joined(runs.pop(0)[1]) + "\n" if runs[0][0] else ""
    tail = "\n" + _joined(runs.pop()[1]) if runs[-1][0] else ""
    gaps = ["", *(f"\n{_joined(run)}\n" for is_blank, run in runs if is_blank)]
    paragraphs = [run for is_blank, run in runs if not is_blank]
    return TextTemplate(fields, tuple(map(_Paragraph, gaps, paragraphs)), head, tail)


def _joined(lines: Sequence[_Line]) -> str:
    return "\n".join(line.render({}) for line in lines)


def _are_empty(fields: Sequence[str], texts: Mapping[str, str]) -> bool:
    """Whether there are fields, and none has a text."""
    return bool(fields) and not any(texts[name].strip() for name in fields)


def _pieces_by_line(template: str) -> Iterator[list[_Piece]]:
    """Yield the pieces of each line; raises ValueError for a brace without its partner."""
    line: list[_Piece] = []
    for token in _TOKEN.finditer(template):
        if token["stray"] is not None:
            raise ValueError(_stray_brace(token["stray"], token.start()))
        if token["name"] is not None:
            line.append(_Piece(token["name"], is_field=True))
            continue
        first, *following = (token["words"] or token["brace"][0]).split("\n")
        line.append(_Piece(first))
        for words in following:
            yield line
            line = [_Piece(words)]
    yield line


def _stray_brace(brace: str, start: int) -> str:
    if brace == "{}":
        return f"Character {start + 1} of the template begins `{{}}`, which names no field. Name one."
    partner = "}" if brace == "{" else "{"
    return (
        f"Character {start + 1} of the template is a `{brace}` without its `{partner}`. Write "
        f"`{brace}{brace}` for a brace in the text."
    )
